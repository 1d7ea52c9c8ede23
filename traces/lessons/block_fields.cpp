#include "traces/lessons/block_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/lessons/lesson_file.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

std::vector<Line> linesOf(std::string_view text)
{
    std::vector<Line> lines;
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        std::string_view line = text.substr(from, end - from);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        lines.push_back({line, static_cast<int>(lines.size()) + 1});
        from = end + 1;
    }
    return lines;
}

tl::unexpected<Error> faultAt(const std::string& path, FilePlace at, const std::string& what, const std::string& remedy)
{
    return fail(ErrorCode::Unreadable, fmt::format("{}:{}:{}: {}", path, at.line, std::max(at.column, 1), what),
                remedy);
}

tl::unexpected<Error> faultAt(const std::string& path, FilePlace at, Error error)
{
    constexpr std::string_view prefix = "expression, column ";
    if (error.message.starts_with(prefix)) { // its columns count from its own start
        const std::size_t colon = error.message.find(": ", prefix.size());
        if (const auto column = wholeOf(std::string_view(error.message).substr(prefix.size(), colon - prefix.size()))) {
            at.column += *column - 1;
            error.message.erase(0, colon + 2);
        }
    }
    return faultAt(path, at, error.message, error.remedy);
}

Result<Expression> readExpression(const std::string& path, std::string_view text, FilePlace at)
{
    auto expression = Expression::parse(text);
    if (!expression) return faultAt(path, at, std::move(expression.error()));
    return expression;
}

Result<Text> readText(const std::string& path, std::string_view text, FilePlace at)
{
    auto read = parseText(text, at);
    if (!read)
        return fail(ErrorCode::Unreadable, fmt::format("{}:{}", path, read.error().message), read.error().remedy);
    return read;
}

Result<Fields> Fields::read(const std::string& path, const std::string& what, const std::vector<Line>& lines,
                            FilePlace at)
{
    Fields out;
    out.m_path = path;
    out.m_what = what;
    out.m_at = at;
    for (const Line& line : lines) {
        std::string_view text = line.text;
        std::size_t comment = text.starts_with("#") ? 0 : std::string_view::npos;
        for (std::size_t i = 1; i < text.size() && comment == std::string_view::npos; ++i)
            if (text[i] == '#' && (text[i - 1] == ' ' || text[i - 1] == '\t')) comment = i;
        text = text.substr(0, comment);
        if (trimmed(text).empty()) continue;
        if (text.starts_with("  ")) {
            if (out.m_fields.empty())
                return faultAt(path, {line.number, 1}, fmt::format("the {} starts with a continuation line", what),
                               "start it with 'key: value'");
            out.m_fields.back().value += " " + std::string(trimmed(text));
            continue;
        }
        const auto [key, value] = keyValueOf(text, ':');
        if (!value || key.empty())
            return faultAt(path, {line.number, 1}, fmt::format("a {} can't contain the line '{}'", trimmed(text), what),
                           "write 'key: value', or indent by two spaces to continue the previous line");
        Field field;
        field.key = std::string(trimmed(key));
        field.value = std::string(trimmed(*value));
        field.keyAt = {line.number, 1};
        const std::size_t first = text.find_first_not_of(" \t", key.size() + 1);
        field.at = {line.number, static_cast<int>(first == std::string_view::npos ? text.size() : first) + 1};
        out.m_fields.push_back(std::move(field));
    }
    return out;
}

const Field* Fields::find(std::string_view key) const
{
    for (const Field& field : m_fields)
        if (field.key == key) return &field;
    return nullptr;
}

std::vector<const Field*> Fields::all(std::string_view key) const
{
    std::vector<const Field*> found;
    for (const Field& field : m_fields)
        if (field.key == key) found.push_back(&field);
    return found;
}

Result<void> Fields::allow(std::initializer_list<std::string_view> keys) const
{
    for (const Field& field : m_fields) {
        if (std::find(keys.begin(), keys.end(), field.key) != keys.end()) continue;
        std::string known;
        for (const std::string_view key : keys) known += fmt::format("{}{}", known.empty() ? "" : ", ", key);
        return faultAt(m_path, field.keyAt, fmt::format("a {} has no '{}'", m_what, field.key),
                       "its keys are " + known);
    }
    return {};
}

Result<void> Fields::require(std::initializer_list<std::string_view> keys) const
{
    for (const std::string_view key : keys) {
        const Field* field = find(key);
        if (!field)
            return faultAt(m_path, m_at, fmt::format("the {} has no '{}'", m_what, key),
                           fmt::format("add a line '{}: …'", key));
        if (field->value.empty()) return faultAt(m_path, field->keyAt, fmt::format("'{}' is empty", key));
    }
    return {};
}

Result<void> Fields::onlyOnce(std::initializer_list<std::string_view> except) const
{
    for (const Field& field : m_fields) {
        if (std::find(except.begin(), except.end(), field.key) != except.end()) continue;
        if (const Field* first = find(field.key); first != &field)
            return faultAt(m_path, field.keyAt,
                           fmt::format("'{}' appears twice, first in line {}", field.key, first->keyAt.line),
                           "keep one of them");
    }
    return {};
}

Result<void> Fields::take(std::string_view key, std::string& out) const
{
    if (const Field* field = find(key)) out = field->value;
    return {};
}

Result<void> Fields::take(std::string_view key, Text& out) const
{
    const Field* field = find(key);
    if (!field) return {};
    STAGEWRIGHT_TRY(out, readText(m_path, field->value, field->at));
    return {};
}

Result<void> Fields::take(std::string_view key, Expression& out) const
{
    const Field* field = find(key);
    if (!field) return {};
    STAGEWRIGHT_TRY(out, readExpression(m_path, field->value, field->at));
    return {};
}

Result<void> Fields::takeId(std::string_view key, std::string& out) const
{
    const Field* field = find(key);
    if (!field) return {};
    for (const char c : field->value)
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return faultAt(m_path, field->at, fmt::format("'{}' is not an id", field->value),
                           "ids consist of lower-case letters, digits and '-'");
    out = field->value;
    return {};
}

Result<void> Fields::takeList(std::string_view key, std::vector<std::string>& out, std::string_view separators) const
{
    if (const Field* field = find(key)) out = partsOf(field->value, separators);
    return {};
}

Result<void> Fields::takeWhole(std::string_view key, int& out, int least, int most) const
{
    const Field* field = find(key);
    if (!field) return {};
    const auto number = wholeOf(field->value);
    if (!number || *number < least || *number > most)
        return faultAt(m_path, field->at,
                       fmt::format("'{}' is not a whole number from {} to {}", field->value, least, most));
    out = *number;
    return {};
}

Result<void> Fields::takeEdits(std::string_view key, std::vector<EditCommand>& out) const
{
    for (const Field* field : all(key)) {
        auto edits = parseEdits(field->value);
        if (!edits) return faultAt(m_path, field->at, std::move(edits.error()));
        out.insert(out.end(), edits->begin(), edits->end());
    }
    return {};
}

Result<void> Fields::takeSettings(std::string_view key, Settings& out) const
{
    for (const Field* field : all(key)) {
        auto settings = withSettings(out, field->value);
        if (!settings) return faultAt(m_path, field->at, std::move(settings.error()));
        out = std::move(*settings);
    }
    return {};
}

} // namespace stagewright::lessons
