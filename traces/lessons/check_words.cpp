#include "traces/lessons/check_words.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "schedules/model/op.h"
#include "traces/lessons/glossary.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

constexpr std::size_t longestSentence = 25;

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class WordChecker {
public:
    explicit WordChecker(const std::function<void(Severity, FilePlace, std::string)>& tell) : m_tell(tell) {}

    void text(const Text& text, FilePlace at)
    {
        if (text.source.starts_with("```") || text.source.starts_with("|")) return; // code and tables
        std::string words;
        for (const Text::Piece& piece : text.pieces) words += piece.expression.empty() ? piece.words : "0";
        std::replace(words.begin(), words.end(), '\n', ' ');
        sentences(words, at);
        for (const Text::Piece& piece : text.pieces)
            if (piece.expression.empty()) {
                figures(piece.words, piece.at);
                abbreviations(piece.words, piece.at);
            }
    }

private:
    void sentences(const std::string& words, FilePlace at)
    {
        std::size_t count = 0;
        std::string first;
        for (const std::string& word : partsOf(words, " \t")) {
            if (std::any_of(word.begin(), word.end(), [](char c) { return isLetter(c) || (c >= '0' && c <= '9'); }))
                ++count;
            if (count <= 5) first += (first.empty() ? "" : " ") + word;
            const char last = word.back();
            if (last != '.' && last != '?' && last != '!' && last != ':') continue;
            close(count, first, at);
            count = 0;
            first.clear();
        }
        close(count, first, at);
    }
    void close(std::size_t count, const std::string& first, FilePlace at)
    {
        if (count > longestSentence)
            m_tell(Severity::Warning, at,
                   fmt::format("a sentence of {} words, more than the {} that are easy to read: '{} …'", count,
                               longestSentence, first));
    }

    // "peak 4", "33 units": a number next to the name of a metric must be computed.
    void figures(const std::string& words, FilePlace at)
    {
        static const std::set<std::string> metrics = {"units", "unit",    "makespan", "peak",     "bubble",
                                                      "idle",  "percent", "%",        "messages", "activations"};
        const auto parts = partsOf(words, " \t\n");
        const auto isFigure = [](std::string_view word) {
            while (!word.empty() && (word.back() == ',' || word.back() == '.' || word.back() == ';'))
                word.remove_suffix(1);
            return numberOf(word).has_value();
        };
        const auto isMetric = [&](std::string word) {
            while (!word.empty() && (word.back() == ',' || word.back() == '.' || word.back() == ';')) word.pop_back();
            return metrics.count(word) > 0;
        };
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
            if ((isFigure(parts[i]) && isMetric(parts[i + 1])) || (isMetric(parts[i]) && isFigure(parts[i + 1])))
                m_tell(Severity::Warning, at, fmt::format("a hard-coded figure: '{} {}'", parts[i], parts[i + 1]));
    }

    void abbreviations(const std::string& words, FilePlace at)
    {
        std::size_t from = 0;
        while (from < words.size()) {
            if (!isLetter(words[from])) {
                ++from;
                continue;
            }
            std::size_t end = from;
            bool capitals = true;
            while (end < words.size() &&
                   (isLetter(words[end]) || (words[end] >= '0' && words[end] <= '9') || words[end] == '-')) {
                capitals = capitals && !(words[end] >= 'a' && words[end] <= 'z');
                ++end;
            }
            const std::string word = words.substr(from, end - from);
            const bool beginsAfterDigit = from > 0 && words[from - 1] >= '0' && words[from - 1] <= '9';
            if (capitals && word.size() > 1 && !beginsAfterDigit && !findTerm(word) && m_known.insert(word).second)
                m_tell(Severity::Note, at, fmt::format("'{}' is not in the glossary", word));
            from = end;
        }
    }

    const std::function<void(Severity, FilePlace, std::string)>& m_tell;
    std::set<std::string> m_known; // reported once
};

} // namespace

void checkWords(const Lesson& lesson, const std::function<void(Severity, FilePlace, std::string)>& tell)
{
    WordChecker checker(tell);
    for (const Section& section : lesson.sections)
        for (const Block& block : section.blocks) {
            if (const auto* prose = std::get_if<Prose>(&block)) checker.text(prose->text, prose->at);
            if (const auto* predict = std::get_if<Predict>(&block)) {
                checker.text(predict->ask, predict->at);
                checker.text(predict->reveal, predict->at);
            }
            if (const auto* check = std::get_if<Check>(&block)) {
                checker.text(check->say, check->at);
                checker.text(check->pass, check->at);
                for (const Remark& remark : check->fails) checker.text(remark.text, remark.at);
            }
            if (const auto* quiz = std::get_if<Quiz>(&block)) {
                checker.text(quiz->ask, quiz->at);
                checker.text(quiz->pass, quiz->at);
                for (const Remark& remark : quiz->fails) checker.text(remark.text, remark.at);
            }
            if (const auto* hints = std::get_if<Hints>(&block))
                for (const Hints::Hint& hint : hints->hints) checker.text(hint.text, hints->at);
        }
}

} // namespace stagewright::lessons
