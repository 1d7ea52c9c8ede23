// The tree of an expression. Internal to traces/lessons.
#pragma once

#include "traces/lessons/expression.h"

namespace stagewright::lessons {

struct Expression::Node {
    enum class Kind {
        Number,  // number
        Text,    // text
        Truth,   // number is 0 or 1
        Listing, // parts
        Name,    // text
        Figure,  // parts[0].text
        Index,   // parts[0][parts[1]]
        Minus,   // −parts[0]
        Not,     // not parts[0]
        Binary,  // text: + - * / ^
        Compare, // text: == != < <= > >=
        Near,    // parts[0] ~ parts[1] ±parts[2]; text "%": relative
        And,     // parts[0], parts[1]
        Or,
        Call, // text(parts), names of arguments in argumentNames
    };
    Kind kind = Kind::Number;
    std::string text;
    double number = 0;
    std::vector<std::shared_ptr<const Node>> parts;
    std::vector<std::string> argumentNames;
    std::size_t begin = 0; // in the expression's text
    std::size_t end = 0;
};

// Functions whose bare names are words, not values: answer(total), count(F), deadlock(sends=rendezvous).
bool quotesNames(std::string_view function);

Result<Value> evaluateNode(const Expression::Node& node, const Scope& scope);

} // namespace stagewright::lessons
