// The lines of a front matter or a typed block: "key: value". Internal to traces/lessons.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

// A line of a file, with its number from 1.
struct Line {
    std::string_view text; // without the line break
    int number = 0;
};
std::vector<Line> linesOf(std::string_view text);

// "path:line:column: what"
tl::unexpected<Error> faultAt(const std::string& path, FilePlace at, const std::string& what,
                              const std::string& remedy = {});
// The error of something read at that place, which may start with "expression, column n: ".
tl::unexpected<Error> faultAt(const std::string& path, FilePlace at, Error error);

struct Field {
    std::string key;
    std::string value;
    FilePlace keyAt;
    FilePlace at; // of the value
};

class Fields {
public:
    // '#' starts a comment at the start of a line or after a space; a line that starts with two spaces continues the
    // previous one.
    static Result<Fields> read(const std::string& path, const std::string& what, const std::vector<Line>& lines,
                               FilePlace at);

    const Field* find(std::string_view key) const; // the first
    std::vector<const Field*> all(std::string_view key) const;
    const std::vector<Field>& fields() const { return m_fields; }
    Result<void> allow(std::initializer_list<std::string_view> keys) const;      // others are errors
    Result<void> require(std::initializer_list<std::string_view> keys) const;    // a missing one is an error
    Result<void> onlyOnce(std::initializer_list<std::string_view> except) const; // all other keys
    const std::string& path() const { return m_path; }
    FilePlace at() const { return m_at; }

    // The values of keys; outputs of missing keys are unchanged.
    Result<void> take(std::string_view key, std::string& out) const;
    Result<void> take(std::string_view key, Text& out) const;
    Result<void> take(std::string_view key, Expression& out) const;
    Result<void> takeId(std::string_view key, std::string& out) const; // lower case letters, digits, '-'
    Result<void> takeList(std::string_view key, std::vector<std::string>& out, std::string_view separators = ",") const;
    Result<void> takeWhole(std::string_view key, int& out, int least, int most) const;
    Result<void> takeEdits(std::string_view key, std::vector<EditCommand>& out) const; // of every such line
    Result<void> takeSettings(std::string_view key, Settings& out) const;

private:
    std::string m_path;
    std::string m_what; // "check"
    FilePlace m_at;
    std::vector<Field> m_fields;
};

Result<Expression> readExpression(const std::string& path, std::string_view text, FilePlace at);
// parseText with the place added to its error.
Result<Text> readText(const std::string& path, std::string_view text, FilePlace at);

} // namespace stagewright::lessons
