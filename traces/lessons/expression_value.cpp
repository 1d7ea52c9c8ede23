#include "traces/lessons/expression_value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagewright::lessons {

std::string numberText(double value)
{
    if (!std::isfinite(value)) return "none";
    if (std::abs(value) >= 1e15) return fmt::format("{:.6g}", value);
    std::string text = fmt::format("{:.4f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    if (text == "-0" || text == "0") return value != 0 && std::abs(value) < 5e-5 ? fmt::format("{:.2g}", value) : "0";
    return text.front() == '-' ? "−" + text.substr(1) : text;
}

const char* kindOf(const Value& value)
{
    if (value.isNothing()) return "nothing";
    if (value.truth()) return "a truth";
    if (value.number()) return "a number";
    if (value.text()) return "a text";
    if (value.list()) return "a list";
    return "a set of figures";
}

int orderOf(double a, double b)
{
    const double tolerance = 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
    return std::abs(a - b) <= tolerance ? 0 : a < b ? -1 : 1;
}

const List* Value::list() const
{
    const auto* held = std::get_if<std::shared_ptr<const List>>(&m_held);
    return held ? held->get() : nullptr;
}

const Report* Value::report() const
{
    const auto* held = std::get_if<std::shared_ptr<const Report>>(&m_held);
    return held ? held->get() : nullptr;
}

std::string toText(const Value& value)
{
    if (value.isNothing()) return "none";
    if (const bool* truth = value.truth()) return *truth ? "yes" : "no";
    if (const double* number = value.number()) return numberText(*number);
    if (const std::string* text = value.text()) return *text;
    if (const List* list = value.list()) {
        std::string text;
        for (std::size_t i = 0; i < list->size(); ++i) {
            if (i == 64) return text + ", …";
            text += (i ? ", " : "") + toText((*list)[i]);
        }
        return text.empty() ? "none" : text;
    }
    return "a set of figures";
}

Result<bool> holds(const Value& value)
{
    if (value.isNothing()) return false;
    if (const bool* truth = value.truth()) return *truth;
    if (const List* list = value.list()) {
        for (const Value& one : *list) {
            auto here = holds(one);
            if (!here || !*here) return here;
        }
        return !list->empty();
    }
    return fail(ErrorCode::Usage, fmt::format("{} is not a condition", kindOf(value)), "compare it with something");
}

bool same(const Value& a, const Value& b)
{
    if (a.number() && b.number()) return orderOf(*a.number(), *b.number()) == 0;
    if (a.text() && b.text()) return *a.text() == *b.text();
    if (a.truth() && b.truth()) return *a.truth() == *b.truth();
    if (!a.list() || !b.list() || a.list()->size() != b.list()->size()) return false;
    return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), same);
}

} // namespace stagewright::lessons
