// The file as a whole: front matter, headings, prose. Typed blocks are read in lesson_blocks.cpp.
#include "traces/lessons/lesson_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/lessons/lesson_blocks.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

constexpr std::size_t mostBytes = 1 << 20;
constexpr std::size_t mostBlocks = 4000;

std::uint64_t hashOfText(std::string_view text) // FNV-1a
{
    std::uint64_t hash = 14695981039346656037ull;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash;
}

int numberInName(const std::string& path)
{
    const std::string name = path.substr(path.rfind('/') + 1);
    int number = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 4) && name[i] >= '0' && name[i] <= '9'; ++i)
        number = number * 10 + (name[i] - '0');
    return number;
}

class LessonReader {
public:
    LessonReader(std::string_view text, const std::string& path) : m_path(path), m_lines(linesOf(text))
    {
        m_blocks.path = path;
    }

    Result<void> read(Lesson& lesson)
    {
        if (auto front = frontMatter(lesson); !front) return front;
        m_blocks.settings = lesson.settings;
        lesson.sections.push_back(
            {Part::Question, "", {}, {m_lines[m_at < m_lines.size() ? m_at : m_lines.size() - 1].number, 1}});
        while (m_at < m_lines.size()) {
            const Line& line = m_lines[m_at];
            const std::string_view text = trimmed(line.text);
            if (text.empty()) {
                ++m_at;
            } else if (text.starts_with("```")) {
                if (auto taken = fence(lesson); !taken) return taken;
            } else if (text.starts_with("## ") && partOf(text.substr(3))) {
                const Part part = *partOf(text.substr(3));
                if (part <= lesson.sections.back().part)
                    return faultAt(
                        m_path, {line.number, 1},
                        fmt::format("'{}' comes after '{}'", toText(part), toText(lesson.sections.back().part)),
                        "use the headings Guess, Do, Prove and Keep, each once and in this order");
                lesson.sections.push_back({part, std::string(toText(part)), {}, {line.number, 1}});
                ++m_at;
            } else if (auto taken = paragraph(lesson); !taken) {
                return taken;
            }
            if (++m_count > mostBlocks)
                return faultAt(m_path, {line.number, 1}, fmt::format("more than {} parts", mostBlocks),
                               "split the lesson");
        }
        return m_blocks.finish(lesson);
    }

private:
    static std::optional<Part> partOf(std::string_view title)
    {
        for (const Part part : {Part::Guess, Part::Do, Part::Prove, Part::Keep})
            if (trimmed(title) == toText(part)) return part;
        return std::nullopt;
    }

    Result<void> frontMatter(Lesson& lesson)
    {
        if (m_lines.empty() || trimmed(m_lines[0].text) != "---")
            return faultAt(m_path, {1, 1}, "the front matter is missing",
                           "start the file with '---', 'lesson: id', 'title: …', '---'");
        std::vector<Line> lines;
        for (m_at = 1; m_at < m_lines.size() && trimmed(m_lines[m_at].text) != "---"; ++m_at)
            lines.push_back(m_lines[m_at]);
        if (m_at == m_lines.size())
            return faultAt(m_path, {1, 1}, "the front matter is not closed", "close it with a line '---'");
        ++m_at;
        STAGEWRIGHT_TRY(auto fields, Fields::read(m_path, "front matter", lines, {1, 1}));
        if (auto ok = fields.allow({"lesson", "title", "after", "minutes", "uses", "needs", "shelf", "set"}); !ok)
            return ok;
        if (auto ok = fields.require({"lesson", "title", "set"}); !ok) return ok;
        if (auto ok = fields.onlyOnce({"set"}); !ok) return ok;
        if (auto ok = fields.takeId("lesson", lesson.id); !ok) return ok;
        if (auto ok = fields.take("title", lesson.title); !ok) return ok;
        if (auto ok = fields.takeList("after", lesson.after); !ok) return ok;
        if (auto ok = fields.takeWhole("minutes", lesson.minutes, 1, 600); !ok) return ok;
        if (auto ok = fields.takeList("uses", lesson.uses); !ok) return ok;
        if (auto ok = fields.takeList("needs", lesson.needs); !ok) return ok;
        if (auto ok = fields.take("shelf", lesson.shelf); !ok) return ok;
        return fields.takeSettings("set", lesson.settings);
    }

    Result<void> fence(Lesson& lesson)
    {
        const Line& first = m_lines[m_at];
        const std::string_view words = trimmed(trimmed(first.text).substr(3));
        const std::string kind(trimmed(words.substr(0, words.find('#'))));
        std::vector<Line> lines;
        std::size_t end = m_at + 1;
        while (end < m_lines.size() && trimmed(m_lines[end].text) != "```") lines.push_back(m_lines[end++]);
        if (end == m_lines.size())
            return faultAt(m_path, {first.number, 1}, fmt::format("the block '{}' is not closed", kind),
                           "close it with a line ```");
        m_at = end + 1;
        auto& blocks = lesson.sections.back().blocks;
        if (!LessonBlocks::isTyped(kind)) {
            std::string text(first.text);
            for (const Line& line : lines) text += "\n" + std::string(line.text);
            STAGEWRIGHT_TRY(auto read, readText(m_path, text + "\n```", {first.number, 1}));
            blocks.push_back(Prose{std::move(read), {first.number, 1}});
            return {};
        }
        STAGEWRIGHT_TRY(auto block, m_blocks.read(kind, lines, {first.number, 1}));
        blocks.push_back(std::move(block));
        return {};
    }

    Result<void> paragraph(Lesson& lesson)
    {
        const FilePlace at{m_lines[m_at].number, 1};
        std::string text;
        while (m_at < m_lines.size()) {
            const std::string_view line = trimmed(m_lines[m_at].text);
            const bool heading = line.starts_with("#");
            if (line.empty() || line.starts_with("```") || (heading && !text.empty())) break;
            text += (text.empty() ? "" : "\n") + std::string(m_lines[m_at++].text);
            if (heading) break;
        }
        STAGEWRIGHT_TRY(auto read, readText(m_path, text, at));
        lesson.sections.back().blocks.push_back(Prose{std::move(read), at});
        return {};
    }

    const std::string& m_path;
    std::vector<Line> m_lines;
    std::size_t m_at = 0;
    std::size_t m_count = 0;
    LessonBlocks m_blocks;
};

} // namespace

Result<Text> parseText(std::string_view text, FilePlace at)
{
    Text out;
    out.source = std::string(text);
    std::size_t from = 0;
    FilePlace place = at;
    const auto advance = [&](std::string_view words) {
        for (const char c : words) {
            ++place.column;
            if (c == '\n') place = {place.line + 1, 1};
        }
    };
    while (from < text.size()) {
        const std::size_t open = text.find("{{", from);
        const std::string_view words = text.substr(from, open - from);
        if (!words.empty()) out.pieces.push_back({std::string(words), {}, place});
        if (open == std::string_view::npos) break;
        advance(words);
        const std::size_t close = text.find("}}", open + 2);
        if (close == std::string_view::npos)
            return fail(ErrorCode::Unreadable, fmt::format("{}:{}: '{{{{' is not closed", place.line, place.column),
                        "close the expression with }}");
        std::string inside(text.substr(open + 2, close - open - 2));
        auto expression = Expression::parse(inside);
        if (!expression) {
            advance("{{");
            auto fault = faultAt("", place, std::move(expression.error()));
            fault.value().message.erase(0, 1); // the path comes before it
            return fault;
        }
        if (trimmed(inside).empty())
            return fail(ErrorCode::Unreadable, fmt::format("{}:{}: {{{{}}}} is empty", place.line, place.column),
                        "write an expression in it");
        out.pieces.push_back({{}, std::move(*expression), place});
        advance(text.substr(open, close + 2 - open));
        from = close + 2;
    }
    return out;
}

Result<Lesson> readLesson(std::string_view text, const std::string& path)
{
    if (text.size() > mostBytes)
        return fail(ErrorCode::Unreadable,
                    fmt::format("{}: {} bytes; a lesson may have at most {}", path, text.size(), mostBytes),
                    "split the lesson");
    if (text.find('\0') != std::string_view::npos)
        return faultAt(path,
                       {1 + static_cast<int>(std::count(
                                text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find('\0')), '\n')),
                        1},
                       "it contains a zero byte, so it is not text", "name a Markdown file");
    Lesson lesson;
    lesson.file = path;
    lesson.number = numberInName(path);
    lesson.hash = hashOfText(text);
    lesson.source = std::string(text);
    STAGEWRIGHT_CHECK(LessonReader(text, path).read(lesson));
    return lesson;
}

} // namespace stagewright::lessons
