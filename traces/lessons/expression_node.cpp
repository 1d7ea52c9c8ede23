// Expressions: arithmetic and the functions that need no scope.
#include "traces/lessons/expression_node.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace stagewright::lessons {

namespace {

using Node = Expression::Node;

constexpr std::size_t longestList = 4096;

tl::unexpected<Error> wrong(std::string message, std::string remedy = {})
{
    return fail(ErrorCode::Usage, std::move(message), std::move(remedy));
}

// combine(a, b) for numbers, by element where one or both are lists; nothing gives `absent`.
template <typename Combine>
Result<Value> byElement(const Value& a, const Value& b, const char* what, const Value& absent, const Combine& combine)
{
    const List* la = a.list();
    const List* lb = b.list();
    if (la || lb) {
        if (la && lb && la->size() != lb->size())
            return wrong(fmt::format("{} of lists of lengths {} and {}", what, la->size(), lb->size()),
                         "lists must have the same length");
        List out;
        const std::size_t size = la ? la->size() : lb->size();
        for (std::size_t i = 0; i < size; ++i) {
            auto one = byElement(la ? (*la)[i] : a, lb ? (*lb)[i] : b, what, absent, combine);
            if (!one) return one;
            out.push_back(std::move(*one));
        }
        return Value(std::move(out));
    }
    if (a.isNothing() || b.isNothing()) return absent;
    return combine(a, b);
}

Result<Value> arithmetic(const std::string& sign, const Value& a, const Value& b)
{
    return byElement(a, b, sign.c_str(), Value(), [&](const Value& x, const Value& y) -> Result<Value> {
        if (!x.number() || !y.number())
            return wrong(fmt::format("'{}' of {} and {}", sign, kindOf(x), kindOf(y)), "it takes numbers");
        const double p = *x.number();
        const double q = *y.number();
        double value = 0;
        switch (sign[0]) {
        case '+': value = p + q; break;
        case '-': value = p - q; break;
        case '*': value = p * q; break;
        case '/':
            if (q == 0) return wrong(fmt::format("{} is divided by 0", numberText(p)));
            value = p / q;
            break;
        default: value = std::pow(p, q); break;
        }
        if (!std::isfinite(value))
            return wrong(fmt::format("{} {} {} is out of range", numberText(p), sign, numberText(q)));
        return Value(value);
    });
}

Result<Value> compare(const std::string& sign, const Value& a, const Value& b)
{
    return byElement(a, b, "comparison", Value(sign == "!="), [&](const Value& x, const Value& y) -> Result<Value> {
        if (x.number() && y.number()) {
            const int is = orderOf(*x.number(), *y.number());
            if (sign == "==") return Value(is == 0);
            if (sign == "!=") return Value(is != 0);
            if (sign == "<") return Value(is < 0);
            if (sign == "<=") return Value(is <= 0);
            if (sign == ">") return Value(is > 0);
            return Value(is >= 0);
        }
        const bool alike = (x.text() && y.text()) || (x.truth() && y.truth());
        if (!alike) return wrong(fmt::format("{} {} {}: these can't be compared", kindOf(x), sign, kindOf(y)));
        if (sign == "==") return Value(same(x, y));
        if (sign == "!=") return Value(!same(x, y));
        return wrong(fmt::format("{} {} {}: these have no order", kindOf(x), sign, kindOf(y)), "write == or !=");
    });
}

Result<Value> near(const Value& a, const Value& b, const Value& within, bool relative)
{
    if (!within.number()) return wrong("the tolerance must be a number");
    return byElement(a, b, "~", Value(false), [&](const Value& x, const Value& y) -> Result<Value> {
        if (!x.number() || !y.number())
            return wrong(fmt::format("'~' of {} and {}", kindOf(x), kindOf(y)), "it takes numbers");
        const double room = *within.number() * (relative ? std::abs(*y.number()) : 1);
        return Value(std::abs(*x.number() - *y.number()) <= room * (1 + 1e-12) + 1e-12);
    });
}

// Every number of the values, lists opened.
Result<void> flatten(const Value& value, const std::string& function, std::vector<double>& out)
{
    if (const List* list = value.list()) {
        for (const Value& one : *list)
            if (auto added = flatten(one, function, out); !added) return added;
        return {};
    }
    if (!value.number()) return wrong(fmt::format("{}(): {} is not a number", function, kindOf(value)));
    out.push_back(*value.number());
    return {};
}

Result<Value> mapNumbers(const Value& value, const std::string& function, double (*map)(double))
{
    if (value.isNothing()) return Value();
    if (const List* list = value.list()) {
        List out;
        for (const Value& one : *list) {
            auto mapped = mapNumbers(one, function, map);
            if (!mapped) return mapped;
            out.push_back(std::move(*mapped));
        }
        return Value(std::move(out));
    }
    if (!value.number()) return wrong(fmt::format("{}(): {} is not a number", function, kindOf(value)));
    const double result = map(*value.number());
    if (!std::isfinite(result))
        return wrong(fmt::format("{}({}) is not a number", function, numberText(*value.number())));
    return Value(result);
}

Result<Value> rangeOf(const std::vector<double>& n)
{
    if (n.size() != 2 && n.size() != 3) return wrong("range() takes first, last and step", "range(0,2,0.125)");
    const double step = n.size() == 3 ? n[2] : 1;
    if (step <= 0 || n[1] < n[0] || (n[1] - n[0]) / step > 1000)
        return wrong("range() gives at most 1,000 ascending values");
    List out;
    for (int i = 0; n[0] + i * step <= n[1] + 1e-9; ++i) out.emplace_back(n[0] + i * step);
    return Value(std::move(out));
}

Result<Value> firstWhere(const std::vector<Value>& arguments)
{
    const List* values = arguments.size() == 2 ? arguments[0].list() : nullptr;
    const List* truths = arguments.size() == 2 ? arguments[1].list() : nullptr;
    if (!values || !truths || values->size() != truths->size())
        return wrong("first() takes a list of values and a list of conditions of the same length",
                     "first(range(0,2,0.125), …)");
    for (std::size_t i = 0; i < values->size(); ++i) {
        STAGEWRIGHT_TRY(auto here, holds((*truths)[i]));
        if (here) return (*values)[i];
    }
    return Value();
}

Result<Value> bySize(const std::string& function, const std::vector<double>& numbers)
{
    if (numbers.empty()) return wrong(fmt::format("{}() needs a value", function));
    if (function == "min") return Value(*std::min_element(numbers.begin(), numbers.end()));
    if (function == "max") return Value(*std::max_element(numbers.begin(), numbers.end()));
    if (function == "argmin")
        return Value(static_cast<double>(std::min_element(numbers.begin(), numbers.end()) - numbers.begin()));
    if (function == "argmax")
        return Value(static_cast<double>(std::max_element(numbers.begin(), numbers.end()) - numbers.begin()));
    std::vector<int> places(numbers.size()); // argsort
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
        return numbers[static_cast<std::size_t>(a)] < numbers[static_cast<std::size_t>(b)];
    });
    return Value(List(places.begin(), places.end()));
}

bool holdsNothing(const Value& value)
{
    return value.isNothing() || (value.list() && std::ranges::any_of(*value.list(), holdsNothing));
}

// Nothing: not one of these.
Result<std::optional<Value>> builtIn(const std::string& function, const std::vector<Argument>& arguments)
{
    std::vector<Value> values;
    values.reserve(arguments.size());
    for (const Argument& argument : arguments) values.push_back(argument.value);
    const auto numbers = [&]() -> Result<std::vector<double>> {
        std::vector<double> out;
        for (const Value& value : values) STAGEWRIGHT_CHECK(flatten(value, function, out));
        return out;
    };
    const auto given = [](Result<Value> value) -> Result<std::optional<Value>> {
        if (!value) return tl::unexpected(std::move(value.error()));
        return std::optional(std::move(*value));
    };
    const auto takesOne = [&]() { return values.size() == 1; };
    static constexpr std::string_view ofNumbers[] = {"floor", "ceil", "abs", "sqrt",   "round",  "percent",
                                                     "sum",   "min",  "max", "argmin", "argmax", "argsort"};
    if (std::ranges::find(ofNumbers, function) != std::end(ofNumbers) && std::ranges::any_of(values, holdsNothing))
        return std::optional<Value>(Value());
    if (function == "floor" || function == "ceil" || function == "abs" || function == "sqrt") {
        if (!takesOne()) return wrong(fmt::format("{}() takes one value, not {}", function, values.size()));
        double (*map)(double) = function == "floor"  ? +[](double x) { return std::floor(x + 1e-9); }
                                : function == "ceil" ? +[](double x) { return std::ceil(x - 1e-9); }
                                : function == "abs"  ? +[](double x) { return std::abs(x); }
                                                     : +[](double x) { return std::sqrt(x); };
        return given(mapNumbers(values[0], function, map));
    }
    if (function == "round") {
        STAGEWRIGHT_TRY(auto n, numbers());
        if (n.empty() || n.size() > 2) return wrong("round() takes a number and the count of decimals");
        const double scale = std::pow(10, n.size() == 2 ? std::clamp(n[1], 0.0, 9.0) : 0);
        return std::optional<Value>(std::round(n[0] * scale) / scale);
    }
    if (function == "percent") {
        STAGEWRIGHT_TRY(auto n, numbers());
        if (n.size() != 1) return wrong("percent() takes one number");
        return std::optional<Value>(fmt::format("{} %", numberText(std::round(n[0] * 1000) / 10)));
    }
    if (function == "size") {
        if (!takesOne() || !values[0].list()) return wrong("size() takes a list");
        return std::optional<Value>(static_cast<double>(values[0].list()->size()));
    }
    if (function == "all" || function == "any") {
        List truths = takesOne() && values[0].list() ? *values[0].list() : List(values.begin(), values.end());
        bool every = true, some = false;
        for (const Value& value : truths) {
            STAGEWRIGHT_TRY(auto here, holds(value));
            every = every && here;
            some = some || here;
        }
        return std::optional<Value>(function == "all" ? every : some);
    }
    if (function == "first") return given(firstWhere(values));
    if (function == "sum" || function == "min" || function == "max" || function == "argmin" || function == "argmax" ||
        function == "argsort" || function == "range") {
        STAGEWRIGHT_TRY(auto n, numbers());
        if (function == "range") return given(rangeOf(n));
        if (function == "sum") return std::optional<Value>(std::accumulate(n.begin(), n.end(), 0.0));
        return given(bySize(function, n));
    }
    return std::optional<Value>();
}

Result<Value> figureOf(const Value& value, const std::string& key)
{
    if (const Report* report = value.report()) return report->figure(key);
    if (const List* list = value.list()) {
        List out;
        for (const Value& one : *list) {
            auto figure = figureOf(one, key);
            if (!figure) return figure;
            out.push_back(std::move(*figure));
        }
        return Value(std::move(out));
    }
    if (value.isNothing()) return Value();
    return wrong(fmt::format("{} has no '{}'", kindOf(value), key));
}

Result<Value> indexed(const Value& value, const Value& index)
{
    if (value.isNothing()) return Value();
    const List* list = value.list();
    if (!list) return wrong(fmt::format("{} has no positions", kindOf(value)));
    if (!index.number()) return wrong(fmt::format("a position is a whole number, not {}", kindOf(index)));
    const double at = *index.number() < 0 ? static_cast<double>(list->size()) + *index.number() : *index.number();
    if (!(at >= 0) || at >= static_cast<double>(list->size()) || at != std::floor(at))
        return wrong(
            fmt::format("there is no position {}; the list has {} values", numberText(*index.number()), list->size()));
    return (*list)[static_cast<std::size_t>(at)];
}

Result<Value> called(const Node& node, const Scope& scope)
{
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
        const Node& part = *node.parts[i];
        const std::string& name = node.argumentNames[i];
        if (part.kind == Node::Kind::Name && name.empty() && quotesNames(node.text)) {
            arguments.push_back({name, Value(part.text)});
            continue;
        }
        auto value = evaluateNode(part, scope);
        if (!value && part.kind == Node::Kind::Name && !name.empty()) value = Value(part.text); // sends=rendezvous
        if (!value) return value;
        arguments.push_back({name, std::move(*value)});
    }
    STAGEWRIGHT_TRY(auto known, builtIn(node.text, arguments));
    if (known) return std::move(*known);
    return scope.call(node.text, arguments);
}

} // namespace

// 1+1+…: each term has the ones before it at its left. In a loop, as there may be hundreds.
static Result<Value> chainOf(const Node& node, const Scope& scope)
{
    std::vector<const Node*> chain;
    const Node* first = &node;
    for (; first->kind == Node::Kind::Binary; first = &*first->parts[0]) chain.push_back(first);
    auto value = evaluateNode(*first, scope);
    for (auto one = chain.rbegin(); one != chain.rend() && value; ++one) {
        auto right = evaluateNode(*(*one)->parts[1], scope);
        if (!right) return right;
        value = arithmetic((*one)->text, *value, *right);
    }
    return value;
}

Result<Value> evaluateNode(const Node& node, const Scope& scope)
{
    using Kind = Node::Kind;
    const auto part = [&](std::size_t i) { return evaluateNode(*node.parts[i], scope); };
    switch (node.kind) {
    case Kind::Number: return Value(node.number);
    case Kind::Text: return Value(node.text);
    case Kind::Truth: return Value(node.number != 0);
    case Kind::Name: return scope.name(node.text);
    case Kind::Call: return called(node, scope);
    case Kind::Listing: {
        List out;
        for (std::size_t i = 0; i < node.parts.size(); ++i) {
            auto value = part(i);
            if (!value) return value;
            out.push_back(std::move(*value));
        }
        if (out.size() > longestList)
            return wrong(fmt::format("a list of {} values, at most {} are allowed", out.size(), longestList));
        return Value(std::move(out));
    }
    case Kind::And:
    case Kind::Or: {
        auto left = part(0);
        if (!left) return left;
        STAGEWRIGHT_TRY(auto first, holds(*left));
        if (first != (node.kind == Kind::And)) return Value(first);
        auto right = part(1);
        if (!right) return right;
        STAGEWRIGHT_TRY(auto second, holds(*right));
        return Value(second);
    }
    case Kind::Binary: return chainOf(node, scope);
    default: break;
    }
    auto first = part(0);
    if (!first) return first;
    if (node.kind == Kind::Figure) return figureOf(*first, node.text);
    if (node.kind == Kind::Minus) return arithmetic("-", Value(0.0), *first);
    if (node.kind == Kind::Not) {
        STAGEWRIGHT_TRY(auto truth, holds(*first));
        return Value(!truth);
    }
    auto second = part(1);
    if (!second) return second;
    if (node.kind == Kind::Index) return indexed(*first, *second);
    if (node.kind == Kind::Compare) return compare(node.text, *first, *second);
    auto within = part(2);
    if (!within) return within;
    return near(*first, *second, *within, node.text == "%");
}

} // namespace stagewright::lessons
