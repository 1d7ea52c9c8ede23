#include "app/cli/text/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "schedules/base/shown_text.h"

namespace stagewright {

namespace {

constexpr int indent = 2;

// What JSON lets stand and a terminal obeys, or shows as other text than it is: U+007F to U+009F, marks of direction
// and the like. shownText() writes them as JSON does, but for the first.
std::string escaped(const std::string& quoted)
{
    std::string out;
    for (const char letter : quoted) letter == 0x7f ? out.append("\\u007f") : out.append(1, letter);
    return shownText(out);
}

void writeText(std::string& out, const std::string& text)
{
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), plain))
        out.append(1, '"').append(text).append(1, '"');
    else
        out += escaped(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

template <typename Number>
void writeNumber(std::string& out, Number number)
{
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

} // namespace

Json::Json() : m_value(nullptr) {}
Json::Json(std::nullptr_t) : m_value(nullptr) {}
Json::Json(Number, Whole value)
{
    std::visit([this](auto one) { m_value = one; }, value);
}
Json::Json(double value)
{
    if (std::isfinite(value))
        m_value = value;
    else
        m_value = nullptr;
}
Json::Json(std::string text) : m_value(std::move(text)) {}
Json::Json(std::string_view text) : m_value(std::string(text)) {}
Json::Json(const char* text) : m_value(std::string(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json::~Json() = default;

Json& Json::operator=(Json other) noexcept
{
    m_value = std::move(other.m_value);
    return *this;
}

Json::Json(std::initializer_list<Item> items)
{
    const bool pairs = std::all_of(items.begin(), items.end(), [](const Item& item) {
        return item.m_value.isArray() && item.m_value.size() == 2 && item.m_value.at(0).text() != nullptr;
    });
    if (!pairs) {
        auto& list = m_value.emplace<Items>();
        list.reserve(items.size());
        for (const Item& item : items) list.push_back(std::move(item.m_value));
        return;
    }
    auto& members = m_value.emplace<Members>();
    members.reserve(items.size());
    for (const Item& item : items) {
        auto& pair = std::get<Items>(item.m_value.m_value);
        members.emplace_back(std::move(std::get<std::string>(pair[0].m_value)), std::move(pair[1]));
    }
}

Json Json::array()
{
    Json out;
    out.m_value.emplace<Items>();
    return out;
}

Json Json::object()
{
    Json out;
    out.m_value.emplace<Members>();
    return out;
}

bool Json::isNull() const { return std::holds_alternative<std::nullptr_t>(m_value); }
bool Json::isArray() const { return std::holds_alternative<Items>(m_value); }
bool Json::isObject() const { return std::holds_alternative<Members>(m_value); }
bool Json::isTruth() const { return std::holds_alternative<bool>(m_value); }
bool Json::isNumber() const { return number().has_value(); }

std::optional<double> Json::number() const
{
    if (const auto* whole = std::get_if<std::int64_t>(&m_value)) return static_cast<double>(*whole);
    if (const auto* whole = std::get_if<std::uint64_t>(&m_value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&m_value)) return *real;
    return std::nullopt;
}

const std::string* Json::text() const { return std::get_if<std::string>(&m_value); }

std::size_t Json::size() const
{
    if (const auto* items = std::get_if<Items>(&m_value)) return items->size();
    if (const auto* members = std::get_if<Members>(&m_value)) return members->size();
    return 0;
}

const Json& Json::at(std::size_t index) const { return std::get<Items>(m_value)[index]; }
const Json::Members& Json::members() const { return std::get<Members>(m_value); }

const Json* Json::find(std::string_view key) const
{
    const auto* members = std::get_if<Members>(&m_value);
    if (!members) return nullptr;
    const auto found =
        std::find_if(members->begin(), members->end(), [key](const auto& member) { return member.first == key; });
    return found == members->end() ? nullptr : &found->second;
}

Json& Json::operator[](std::string_view key)
{
    const Json* found = find(key);
    return found != nullptr ? const_cast<Json&>(*found) : add(key);
}

Json& Json::add(std::string_view key)
{
    if (isNull()) m_value.emplace<Members>();
    return std::get<Members>(m_value).emplace_back(std::string(key), Json()).second;
}

void Json::reserve(std::size_t count)
{
    if (auto* items = std::get_if<Items>(&m_value)) return items->reserve(count);
    if (isNull()) m_value.emplace<Members>();
    std::get<Members>(m_value).reserve(count);
}

Json& Json::operator[](std::size_t index)
{
    if (isNull()) m_value.emplace<Items>();
    auto& items = std::get<Items>(m_value);
    if (index >= items.size()) items.resize(index + 1);
    return items[index];
}

void Json::push_back(Json value)
{
    if (isNull()) m_value.emplace<Items>();
    std::get<Items>(m_value).push_back(std::move(value));
}

Json& Json::back() { return std::get<Items>(m_value).back(); }

void Json::update(Json object)
{
    for (auto& [key, value] : std::get<Members>(object.m_value)) (*this)[key] = std::move(value);
}

std::string Json::line() const
{
    std::string out;
    write(out, -1);
    return out;
}

std::string Json::page(int depth) const
{
    std::string out;
    write(out, depth);
    return out;
}

void Json::write(std::string& out, int depth) const
{
    const bool paged = depth >= 0;
    const int inner = paged ? depth + 1 : depth;
    const auto newLine = [&](int at) {
        if (paged) out.append(1, '\n').append(static_cast<std::size_t>(at * indent), ' ');
    };
    const auto list = [&](const auto& all, const char* brackets, const auto& one) {
        out += brackets[0];
        for (const auto& item : all) {
            if (&item != &all.front()) out += ',';
            newLine(inner);
            one(item);
        }
        if (!all.empty()) newLine(depth);
        out += brackets[1];
    };
    if (const auto* items = std::get_if<Items>(&m_value))
        list(*items, "[]", [&](const Json& item) { item.write(out, inner); });
    else if (const auto* members = std::get_if<Members>(&m_value))
        list(*members, "{}", [&](const auto& member) {
            writeText(out, member.first);
            out += paged ? ": " : ":";
            member.second.write(out, inner);
        });
    else if (const auto* text = std::get_if<std::string>(&m_value))
        writeText(out, *text);
    else if (const auto* real = std::get_if<double>(&m_value))
        out += nlohmann::json(*real).dump(); // the same digits as ever
    else if (const auto* whole = std::get_if<std::int64_t>(&m_value))
        writeNumber(out, *whole);
    else if (const auto* natural = std::get_if<std::uint64_t>(&m_value))
        writeNumber(out, *natural);
    else if (const auto* truth = std::get_if<bool>(&m_value))
        out += *truth ? "true" : "false";
    else
        out += "null";
}

Json textOrNull(std::string text) { return text.empty() ? Json() : Json(std::move(text)); }

Json countOrNull(int count) { return count > 0 ? Json(count) : Json(nullptr); }

namespace {

Json valueOf(const nlohmann::ordered_json& value)
{
    if (value.is_object()) {
        Json out = Json::object();
        for (const auto& [key, member] : value.items()) out[key] = valueOf(member);
        return out;
    }
    if (value.is_array()) {
        Json out = Json::array();
        for (const auto& item : value) out.push_back(valueOf(item));
        return out;
    }
    if (value.is_string()) return Json(value.get<std::string>());
    if (value.is_boolean()) return Json(value.get<bool>());
    if (value.is_number_integer()) return Json(value.get<std::int64_t>());
    return value.is_number() ? Json(value.get<double>()) : Json(nullptr);
}

} // namespace

Json ownJson(std::string_view text) { return valueOf(nlohmann::ordered_json::parse(text, nullptr, false)); }

} // namespace stagewright
