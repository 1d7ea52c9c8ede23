#include "traces/lessons/glossary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/lessons/block_fields.h"
#include "traces/lessons/lesson_library.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

std::string idOf(std::string_view name)
{
    std::string id;
    for (const char c : lowered(name))
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            id += c;
        else if (!id.empty() && id.back() != '-')
            id += '-';
    while (!id.empty() && id.back() == '-') id.pop_back();
    return id;
}

std::string_view withoutBrackets(std::string_view words) { return trimmed(words.substr(0, words.find('('))); }

// Every spelling of every term, lower case, to its term.
const std::map<std::string, const Term*, std::less<>>& spellings()
{
    static const auto all = [] {
        std::map<std::string, const Term*, std::less<>> out;
        const auto add = [&](std::string_view words, const Term& term) {
            const std::string key = lowered(withoutBrackets(words));
            if (key.empty()) return;
            out.try_emplace(key, &term);
            if (key.size() <= 3 || key.back() == 's') return;
            const bool hissing = key.ends_with("ch") || key.ends_with("sh") || key.ends_with("x");
            out.try_emplace(key.ends_with("y") ? key.substr(0, key.size() - 1) + "ies" : key + (hissing ? "es" : "s"),
                            &term);
        };
        for (const Term& term : glossary()) add(term.name, term);
        for (const Term& term : glossary()) {
            add(term.id, term);
            for (const std::string& alias : term.aliases) add(alias, term);
        }
        return out;
    }();
    return all;
}

bool isWordCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

} // namespace

Result<std::vector<Term>> readGlossary(std::string_view text)
{
    std::vector<Term> terms;
    const auto wrong = [](int line, const std::string& what, const std::string& remedy) {
        return faultAt("glossary.md", {line, 1}, what, remedy);
    };
    for (const Line& line : linesOf(text)) {
        const std::string_view words = trimmed(line.text);
        if (words.starts_with("## ")) {
            Term term;
            term.name = std::string(trimmed(words.substr(3)));
            term.id = idOf(term.name);
            for (const Term& one : terms)
                if (one.id == term.id)
                    return wrong(line.number, fmt::format("the term '{}' appears twice", term.name), "merge them");
            terms.push_back(std::move(term));
            continue;
        }
        if (terms.empty() || words.empty()) continue; // the page's introduction comes before the first term
        Term& term = terms.back();
        if (words.starts_with("Also: "))
            term.aliases = partsOf(words.substr(6), ";");
        else if (words.starts_with("See: "))
            term.related = partsOf(words.substr(5), ",");
        else if (words.starts_with("Lesson: "))
            term.lesson = std::string(trimmed(words.substr(8)));
        else
            term.definition += (term.definition.empty() ? "" : " ") + std::string(words);
    }
    for (Term& term : terms) {
        if (term.definition.empty())
            return wrong(1, fmt::format("the term '{}' has no definition", term.name), "add a paragraph");
        for (std::string& related : term.related) {
            const std::string id = idOf(related);
            if (std::none_of(terms.begin(), terms.end(), [&](const Term& one) { return one.id == id; }))
                return wrong(1, fmt::format("the term '{}' refers to '{}', which is not a term", term.name, related),
                             "add it or remove the reference");
            related = id;
        }
    }
    std::sort(terms.begin(), terms.end(),
              [](const Term& a, const Term& b) { return lowered(a.name) < lowered(b.name); });
    return terms;
}

const std::vector<Term>& glossary()
{
    static const std::vector<Term> terms = readGlossary(builtInGlossary()).value_or(std::vector<Term>());
    return terms;
}

const Term* findTerm(std::string_view words)
{
    const auto& all = spellings();
    const std::string key = lowered(trimmed(words));
    auto found = all.find(key);
    if (found == all.end()) found = all.find(lowered(withoutBrackets(words)));
    return found == all.end() ? nullptr : found->second;
}

namespace {

// Words that are a term as a noun and something else as a verb: "the run" is one, "they run" and "it costs" are not.
constexpr std::string_view alsoVerbs[] = {
    "bound",   "bounds",   "cost",      "costs",    "clock",     "drain",    "drains",    "fill",      "fills",
    "float",   "flush",    "flushes",   "gather",   "gathers",   "hang",     "hangs",     "hop",       "hops",
    "offload", "offloads", "order",     "orders",   "overlap",   "overlaps", "pass",      "passes",    "peak",
    "peaks",   "process",  "processes", "profile",  "profiles",  "rank",     "ranks",     "recompute", "recomputes",
    "release", "run",      "runs",      "schedule", "schedules", "slice",    "slices",    "span",      "spans",
    "stage",   "stages",   "task",      "trace",    "traces",    "transfer", "transfers", "unit",      "units"};
// What is before a noun.
constexpr std::string_view beforeNouns[] = {
    "a",     "an",    "the",     "this",  "that",     "these",   "those", "each",    "every", "any",     "no",
    "one",   "both",  "all",     "some",  "many",     "few",     "more",  "most",    "its",   "their",   "your",
    "his",   "our",   "of",      "in",    "on",       "per",     "with",  "without", "for",   "from",    "by",
    "at",    "under", "between", "as",    "than",     "first",   "last",  "next",    "same",  "other",   "another",
    "two",   "three", "four",    "five",  "six",      "seven",   "eight", "real",    "whole", "healthy", "faulty",
    "whose", "which", "such",    "equal", "measured", "recorded"};

template <std::size_t count>
bool isOneOf(const std::string_view (&words)[count], std::string_view word)
{
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Whether the word at `at` of a lower-case text is a noun there, as far as the word before it shows.
bool isNounAt(std::string_view lower, std::size_t at, std::string_view word)
{
    if (!isOneOf(alsoVerbs, word)) return true;
    std::size_t end = at;
    while (end > 0 && lower[end - 1] == ' ') --end;
    if (end == at) return false; // starts the text, or follows a mark: "Run it again"
    std::size_t begin = end;
    while (begin > 0 && isWordCharacter(lower[begin - 1])) --begin;
    const std::string_view before = lower.substr(begin, end - begin);
    const bool number = !before.empty() && before.find_first_not_of("0123456789") == std::string_view::npos;
    return number || isOneOf(beforeNouns, before);
}

} // namespace

std::vector<Mention> mentionsIn(std::string_view text)
{
    const auto& all = spellings();
    std::size_t longest = 0;
    for (const auto& [words, term] : all) longest = std::max(longest, words.size());
    const std::string lower = lowered(text);
    std::vector<Mention> found;
    for (std::size_t at = 0; at < lower.size();) {
        if (!isWordCharacter(lower[at]) || (at > 0 && isWordCharacter(lower[at - 1]))) {
            ++at;
            continue;
        }
        std::size_t length = std::min(longest, lower.size() - at);
        const Term* term = nullptr;
        for (; length > 0; --length) {
            if (at + length < lower.size() && isWordCharacter(lower[at + length])) continue;
            // "zb" of "zb-h1"
            const bool joined =
                at + length + 1 < lower.size() && lower[at + length] == '-' && isWordCharacter(lower[at + length + 1]);
            if (joined || (at > 1 && lower[at - 1] == '-' && isWordCharacter(lower[at - 2]))) continue;
            const auto hit = all.find(std::string_view(lower).substr(at, length));
            if (hit == all.end() || !isNounAt(lower, at, hit->first)) continue;
            term = hit->second;
            break;
        }
        if (!term) {
            ++at;
            continue;
        }
        if (std::none_of(found.begin(), found.end(), [&](const Mention& one) { return one.term == term; }))
            found.push_back({at, length, term});
        at += length;
    }
    return found;
}

} // namespace stagewright::lessons
