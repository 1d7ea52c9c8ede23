// Expressions of lessons: the content of {{…}}, goals and truths. Total: no loops, no input or output, bounded size, so
// an evaluation always ends. Arithmetic and comparisons work on lists element by element, a single value with every
// element of a list; a list of conditions holds if all of them hold.
//
//   numbers        33   0.125   1e3   50%   [4,3,2,1]        texts  "1f1b"        ops  3B0 (a text)
//   arithmetic     + - * / ^   floor ceil min max abs sum size sqrt round argmin argmax range(a,b,step) first(values,
//                              truths)
//   comparisons    == != < <= > >=   x ~ y ±5%   x ~ y ±0.5      (numbers within 1e-9 are equal)
//   truths         and or not   all any   true false
//   parts          a.b   a[0]   a[-1]
// All other names and calls are the scope's: makespan, p, sim("1f1b", c=0.5), answer(total) …
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/lessons/expression_value.h"

namespace stagewright::lessons {

struct Argument {
    std::string name; // "" if it has none
    Value value;
};

// The meaning of names. Errors (Usage) name the unknown name and the known ones.
class Scope {
public:
    virtual ~Scope() = default;
    virtual Result<Value> name(std::string_view name) const = 0;
    virtual Result<Value> call(std::string_view function, const std::vector<Argument>& arguments) const = 0;
};

class Expression {
public:
    struct Node;

    // Errors (Usage) name the column, from 1. At most 2,000 characters, nested at most 48 deep.
    static Result<Expression> parse(std::string_view text);

    Expression() = default; // empty: evaluates to nothing
    bool empty() const { return !m_root; }
    const std::string& text() const { return m_text; }
    Result<Value> evaluate(const Scope& scope) const;

    // The parts joined by `and` at the top level; one if there is no `and`.
    std::vector<Expression> conjuncts() const;
    // For a comparison: both sides and the sign between them ("<=", "~"); otherwise sign "".
    struct Comparison;
    Comparison comparison() const;
    // Names that it reads and functions that it calls, each once, in order of appearance; names quoted for a function
    // (answer(total)) are not read.
    std::vector<std::string> names() const;
    std::vector<std::string> functions() const;

private:
    Expression(std::string text, std::shared_ptr<const Node> root, bool isPart = false)
        : m_text(std::move(text)), m_root(std::move(root)), m_isPart(isPart)
    {
    }

    std::string m_text;
    std::shared_ptr<const Node> m_root; // its places count from the start of the whole expression
    bool m_isPart = false;              // m_text starts at m_root's place
};

struct Expression::Comparison {
    Expression left;
    std::string sign;
    Expression right;
};

} // namespace stagewright::lessons
