// Expressions: the parser. The arithmetic is in expression_value.cpp.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/op.h"
#include "traces/lessons/expression_node.h"

namespace stagewright::lessons {

namespace {

using Node = Expression::Node;
using NodePointer = std::shared_ptr<const Node>;

constexpr std::size_t longest = 2000;
constexpr int deepest = 48;

bool startsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isCapital(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }

// Precedence climbing over the text itself: or, and, not, comparison, sum, product, sign, power, parts.
class ExpressionReader {
public:
    explicit ExpressionReader(std::string_view text) : m_text(text) {}

    Result<NodePointer> whole()
    {
        auto node = disjunction(0);
        if (!node) return node;
        skip();
        if (m_at < m_text.size())
            return wrong(fmt::format("'{}' does not belong here", here()), "add an operator before it or remove it");
        return node;
    }

private:
    void skip()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t')) ++m_at;
    }
    std::string here() const
    {
        if (m_at >= m_text.size()) return "the end";
        std::size_t length = 1; // a whole UTF-8 character
        while (m_at + length < m_text.size() && (static_cast<unsigned char>(m_text[m_at + length]) & 0xc0) == 0x80)
            ++length;
        return std::string(m_text.substr(m_at, length));
    }
    tl::unexpected<Error> wrong(const std::string& what, const std::string& remedy = {}) const
    {
        return fail(ErrorCode::Usage, fmt::format("expression, column {}: {}", m_at + 1, what), remedy);
    }
    bool take(std::string_view sign)
    {
        skip();
        if (!m_text.substr(m_at).starts_with(sign)) return false;
        m_at += sign.size();
        return true;
    }
    bool takeWord(std::string_view word)
    {
        skip();
        const std::string_view rest = m_text.substr(m_at);
        if (!rest.starts_with(word)) return false;
        if (rest.size() > word.size() && (startsName(rest[word.size()]) || isDigit(rest[word.size()]))) return false;
        m_at += word.size();
        return true;
    }
    std::size_t start()
    {
        skip();
        return m_at;
    }
    NodePointer made(Node node, std::size_t begin) const
    {
        node.begin = begin;
        node.end = m_at;
        return std::make_shared<const Node>(std::move(node));
    }
    NodePointer pair(Node::Kind kind, NodePointer a, NodePointer b, std::string text = {}) const
    {
        Node node;
        node.kind = kind;
        node.text = std::move(text);
        const std::size_t begin = a->begin;
        node.parts = {std::move(a), std::move(b)};
        return made(std::move(node), begin);
    }

    Result<NodePointer> disjunction(int depth)
    {
        auto left = conjunction(depth);
        while (left && takeWord("or")) {
            auto right = conjunction(depth);
            if (!right) return right;
            left = pair(Node::Kind::Or, std::move(*left), std::move(*right));
        }
        return left;
    }
    Result<NodePointer> conjunction(int depth)
    {
        auto left = negation(depth);
        while (left && takeWord("and")) {
            auto right = negation(depth);
            if (!right) return right;
            left = pair(Node::Kind::And, std::move(*left), std::move(*right));
        }
        return left;
    }
    Result<NodePointer> negation(int depth)
    {
        if (depth > deepest) return wrong("nested too deeply", "split it into smaller parts");
        const std::size_t begin = start();
        if (!takeWord("not")) return comparison(depth);
        auto inner = negation(depth + 1);
        if (!inner) return inner;
        Node node;
        node.kind = Node::Kind::Not;
        node.parts = {std::move(*inner)};
        return made(std::move(node), begin);
    }
    Result<NodePointer> comparison(int depth)
    {
        auto left = sum(depth);
        if (!left) return left;
        skip();
        for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
            if (!take(sign)) continue;
            auto right = sum(depth);
            if (!right) return right;
            return pair(Node::Kind::Compare, std::move(*left), std::move(*right), std::string(sign));
        }
        if (take("=")) {
            --m_at;
            return wrong("'=' is not a comparison", "write == for equal");
        }
        if (!take("~")) return left;
        auto middle = sum(depth);
        if (!middle) return middle;
        if (!take("±") && !take("+-")) return wrong("'~' needs a tolerance", "write x ~ y ±5% or x ~ y ±0.5");
        auto within = product(depth);
        if (!within) return within;
        Node node;
        node.kind = Node::Kind::Near;
        node.text = m_at > 0 && m_text[m_at - 1] == '%' ? "%" : "";
        const std::size_t begin = (*left)->begin;
        node.parts = {std::move(*left), std::move(*middle), std::move(*within)};
        return made(std::move(node), begin);
    }
    Result<NodePointer> sum(int depth)
    {
        auto left = product(depth);
        while (left) {
            skip();
            if (m_text.substr(m_at).starts_with("+-")) break; // of ~
            const char* sign = take("+") ? "+" : take("-") ? "-" : take("−") ? "-" : nullptr;
            if (!sign) break;
            auto right = product(depth);
            if (!right) return right;
            left = pair(Node::Kind::Binary, std::move(*left), std::move(*right), sign);
        }
        return left;
    }
    Result<NodePointer> product(int depth)
    {
        auto left = signedPart(depth);
        while (left) {
            const char* sign = take("*") || take("·") ? "*" : take("/") ? "/" : nullptr;
            if (!sign) break;
            auto right = signedPart(depth);
            if (!right) return right;
            left = pair(Node::Kind::Binary, std::move(*left), std::move(*right), sign);
        }
        return left;
    }
    Result<NodePointer> signedPart(int depth)
    {
        if (depth > deepest) return wrong("nested too deeply", "split it into smaller parts");
        const std::size_t begin = start();
        if (take("-") || take("−")) {
            auto inner = signedPart(depth + 1);
            if (!inner) return inner;
            Node node;
            node.kind = Node::Kind::Minus;
            node.parts = {std::move(*inner)};
            return made(std::move(node), begin);
        }
        auto base = withParts(depth);
        if (!base || !take("^")) return base;
        auto exponent = signedPart(depth + 1);
        if (!exponent) return exponent;
        return pair(Node::Kind::Binary, std::move(*base), std::move(*exponent), "^");
    }
    Result<NodePointer> withParts(int depth)
    {
        auto value = primary(depth);
        while (value) {
            skip();
            if (m_at + 1 < m_text.size() && m_text[m_at] == '.' && startsName(m_text[m_at + 1])) {
                ++m_at;
                Node node;
                node.kind = Node::Kind::Figure;
                node.text = word();
                const std::size_t begin = (*value)->begin;
                node.parts = {std::move(*value)};
                value = made(std::move(node), begin);
            } else if (take("[")) {
                auto index = disjunction(depth + 1);
                if (!index) return index;
                if (!take("]")) return wrong(fmt::format("expected ']', not '{}'", here()));
                value = pair(Node::Kind::Index, std::move(*value), std::move(*index));
            } else {
                break;
            }
        }
        return value;
    }
    std::string word()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (startsName(m_text[m_at]) || isDigit(m_text[m_at]))) ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    Result<NodePointer> primary(int depth)
    {
        if (depth > deepest) return wrong("nested too deeply", "split it into smaller parts");
        const std::size_t begin = start();
        if (m_at >= m_text.size()) return wrong("expected a value at the end");
        const char c = m_text[m_at];
        if (take("(")) {
            auto inner = disjunction(depth + 1);
            if (!inner) return inner;
            if (!take(")")) return wrong(fmt::format("expected ')', not '{}'", here()));
            Node node = **inner;
            return made(std::move(node), begin);
        }
        if (take("[")) return list(begin, depth);
        if (c == '"' || c == '\'') return quoted(begin);
        if (isDigit(c)) return numberOrOp(begin);
        if (startsName(c)) return nameOrCall(begin, depth);
        return wrong(fmt::format("expected a value, not '{}'", here()),
                     "a number, a name, a list [4,3,2,1], a text \"1f1b\"");
    }
    Result<NodePointer> list(std::size_t begin, int depth)
    {
        Node node;
        node.kind = Node::Kind::Listing;
        while (!take("]")) {
            if (!node.parts.empty() && !take(",")) return wrong(fmt::format("expected ',' or ']', not '{}'", here()));
            auto part = disjunction(depth + 1);
            if (!part) return part;
            node.parts.push_back(std::move(*part));
        }
        return made(std::move(node), begin);
    }
    Result<NodePointer> quoted(std::size_t begin)
    {
        const char mark = m_text[m_at++];
        const std::size_t end = m_text.find(mark, m_at);
        if (end == std::string_view::npos)
            return wrong("the text is not closed", fmt::format("close it with {}", mark));
        Node node;
        node.kind = Node::Kind::Text;
        node.text = std::string(m_text.substr(m_at, end - m_at));
        m_at = end + 1;
        return made(std::move(node), begin);
    }
    Result<NodePointer> numberOrOp(std::size_t begin)
    {
        std::size_t digits = m_at;
        while (digits < m_text.size() && isDigit(m_text[digits])) ++digits;
        Node node;
        if (digits < m_text.size() && isCapital(m_text[digits])) { // an op: 3B0, 2F0.1, 1SEND_F0
            std::size_t end = digits;
            while (end < m_text.size() && (isCapital(m_text[end]) || isDigit(m_text[end]) || m_text[end] == 'h' ||
                                           (m_text[end] == '.' && end + 1 < m_text.size() && isDigit(m_text[end + 1]))))
                ++end;
            node.kind = Node::Kind::Text;
            node.text = std::string(m_text.substr(m_at, end - m_at));
            if (auto op = parseOpText(node.text); !op) return op;
            m_at = end;
            return made(std::move(node), begin);
        }
        const char* const last = m_text.data() + m_text.size();
        const auto [stop, code] = std::from_chars(m_text.data() + m_at, last, node.number);
        if (code != std::errc()) return wrong("the number is out of range");
        m_at = static_cast<std::size_t>(stop - m_text.data());
        if (take("%")) node.number /= 100;
        return made(std::move(node), begin);
    }
    Result<NodePointer> parseOpText(const std::string& text) const
    {
        auto op = parseOp(text);
        if (op) return NodePointer();
        return wrong(fmt::format("'{}' is not an op", text), "such as 3B0: stage, kind, microbatch");
    }
    Result<NodePointer> nameOrCall(std::size_t begin, int depth)
    {
        Node node;
        node.text = word();
        if (node.text == "true" || node.text == "false") {
            node.kind = Node::Kind::Truth;
            node.number = node.text == "true" ? 1 : 0;
            return made(std::move(node), begin);
        }
        if (node.text == "and" || node.text == "or" || node.text == "not")
            return wrong(fmt::format("expected a value, not '{}'", node.text));
        if (!take("(")) {
            node.kind = Node::Kind::Name;
            return made(std::move(node), begin);
        }
        node.kind = Node::Kind::Call;
        while (!take(")")) {
            if (!node.parts.empty() && !take(",")) return wrong(fmt::format("expected ',' or ')', not '{}'", here()));
            node.argumentNames.push_back(argumentName());
            auto part = quotesNames(node.text) && node.argumentNames.back().empty() && takeId()
                            ? quotedId()
                            : disjunction(depth + 1);
            if (!part) return part;
            node.parts.push_back(std::move(*part));
        }
        return made(std::move(node), begin);
    }
    // An id with '-' that is an argument by itself, as in answer(best-fixed): m_at moves past it.
    bool takeId()
    {
        m_idBegin = start();
        std::size_t end = m_idBegin;
        if (end >= m_text.size() || !startsName(m_text[end])) return false;
        while (end < m_text.size() && (startsName(m_text[end]) || isDigit(m_text[end]) || m_text[end] == '-')) ++end;
        const std::size_t after = std::min(m_text.find_first_not_of(" \t", end), m_text.size());
        if (after >= m_text.size() || (m_text[after] != ')' && m_text[after] != ',')) return false;
        m_at = end;
        return true;
    }
    Result<NodePointer> quotedId()
    {
        Node node;
        node.kind = Node::Kind::Name;
        node.text = std::string(m_text.substr(m_idBegin, m_at - m_idBegin));
        return made(std::move(node), m_idBegin);
    }
    // "c" of "c=0.5", but not of "c == 0.5".
    std::string argumentName()
    {
        const std::size_t before = start();
        if (before < m_text.size() && startsName(m_text[before])) {
            std::string name = word();
            skip();
            if (m_at < m_text.size() && m_text[m_at] == '=' && (m_at + 1 >= m_text.size() || m_text[m_at + 1] != '=')) {
                ++m_at;
                return name;
            }
        }
        m_at = before;
        return {};
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    std::size_t m_idBegin = 0;
};

// A node's text may end with the blanks behind it.
std::string withoutEndBlanks(std::string text)
{
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
    return text;
}

template <typename Visit>
void eachNode(const Node& node, const Visit& visit)
{
    visit(node);
    for (const NodePointer& part : node.parts) eachNode(*part, visit);
}

void collectNames(const Node& node, bool quoted, std::vector<std::string>& names)
{
    if (node.kind == Node::Kind::Name && !quoted && std::find(names.begin(), names.end(), node.text) == names.end())
        names.push_back(node.text);
    const bool call = node.kind == Node::Kind::Call;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
        const bool word = call && node.parts[i]->kind == Node::Kind::Name &&
                          (quotesNames(node.text) || !node.argumentNames[i].empty());
        collectNames(*node.parts[i], word, names);
    }
}

} // namespace

bool quotesNames(std::string_view function)
{
    static constexpr std::array<std::string_view, 13> quoting = {"answer",   "count", "is",      "before", "valid",
                                                                 "deadlock", "cycle", "victims", "circle", "value",
                                                                 "explain",  "run",   "secret"};
    return std::find(quoting.begin(), quoting.end(), function) != quoting.end();
}

Result<Expression> Expression::parse(std::string_view text)
{
    if (text.size() > longest)
        return fail(ErrorCode::Usage,
                    fmt::format("the expression has {} characters, at most {} are allowed", text.size(), longest),
                    "split it into smaller parts");
    STAGEWRIGHT_TRY(auto root, ExpressionReader(text).whole());
    return Expression(std::string(text), std::move(root));
}

Result<Value> Expression::evaluate(const Scope& scope) const
{
    if (!m_root) return Value();
    return evaluateNode(*m_root, scope);
}

std::vector<Expression> Expression::conjuncts() const
{
    std::vector<Expression> out;
    if (!m_root) return out;
    std::vector<NodePointer> pending{m_root};
    while (!pending.empty()) {
        const NodePointer node = pending.back();
        pending.pop_back();
        if (node->kind == Node::Kind::And) {
            pending.push_back(node->parts[1]);
            pending.push_back(node->parts[0]);
        } else {
            out.push_back(
                Expression(withoutEndBlanks(m_text.substr(node->begin, node->end - node->begin)), node, true));
        }
    }
    return out;
}

Expression::Comparison Expression::comparison() const
{
    Comparison out;
    if (!m_root || (m_root->kind != Node::Kind::Compare && m_root->kind != Node::Kind::Near)) return out;
    out.sign = m_root->kind == Node::Kind::Near ? "~" : m_root->text;
    const std::size_t base = m_root->begin; // of a conjunct, whose text is a part of the whole
    const auto part = [&](std::size_t i) {
        const NodePointer& node = m_root->parts[i];
        const std::size_t shift = m_isPart ? base : 0;
        return Expression(withoutEndBlanks(m_text.substr(node->begin - shift, node->end - node->begin)), node, true);
    };
    out.left = part(0);
    out.right = part(1);
    return out;
}

std::vector<std::string> Expression::names() const
{
    std::vector<std::string> out;
    if (m_root) collectNames(*m_root, false, out);
    return out;
}

std::vector<std::string> Expression::functions() const
{
    std::vector<std::string> out;
    if (!m_root) return out;
    eachNode(*m_root, [&](const Node& node) {
        if (node.kind == Node::Kind::Call && std::find(out.begin(), out.end(), node.text) == out.end())
            out.push_back(node.text);
    });
    return out;
}

} // namespace stagewright::lessons
