#include "traces/foreign/foreign_trace.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "schedules/base/text.h"

namespace stagewright {

std::uint32_t NameTable::idOf(std::string_view name)
{
    if (const auto found = m_ids.find(name); found != m_ids.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(m_names.size());
    const auto [entry, added] = m_ids.emplace(std::string(name), id);
    m_names.push_back(&entry->first);
    return id;
}

namespace {

// A number of at most six digits from `at`: more is a time or a process.
RankInName numberAt(std::string_view text, std::size_t at)
{
    RankInName found;
    std::size_t end = at;
    while (end < text.size() && isDigit(text[end])) ++end;
    if (end == at || end - at > 6) return found;
    found.rank = 0;
    for (std::size_t i = at; i < end; ++i) found.rank = found.rank * 10 + (text[i] - '0');
    found.begin = at;
    found.end = end;
    return found;
}

} // namespace

std::string hostInName(std::string_view fileName)
{
    const auto digits = [](std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }); };
    const std::size_t end = fileName.find(".pt.trace.json");
    if (end == std::string_view::npos) return {};
    std::string_view stem = fileName.substr(0, end);
    const std::size_t dot = stem.rfind('.'); // the time in ms or ns
    if (dot == std::string_view::npos || !digits(stem.substr(dot + 1))) return {};
    stem = stem.substr(0, dot);
    const std::size_t line = stem.rfind('_');
    if (line == std::string_view::npos || line == 0 || !digits(stem.substr(line + 1)) || stem.substr(line + 1).size() < 2) return {};
    const std::string_view host = stem.substr(0, line);
    const std::string text = lowered(host);
    for (const std::string_view word : {"worker", "rank"}) // "worker0_step_12" names no host
        if (const std::size_t at = text.find(word); at != std::string::npos && text.find_first_of("0123456789", at) != std::string::npos) return {};
    return std::string(host);
}

std::string noRankInName(std::string_view fileName)
{
    const std::string lower = lowered(fileName);
    for (const std::string_view word : {"rank", "worker"}) {
        const std::size_t at = lower.find(word);
        if (at == std::string::npos) continue;
        std::size_t begin = at + word.size();
        if (begin < lower.size() && (lower[begin] == '_' || lower[begin] == '-')) ++begin;
        std::size_t end = begin;
        while (end < lower.size() && isDigit(lower[end])) ++end;
        if (end - begin > 6) return std::string(fileName.substr(at, end - at));
    }
    return {};
}

RankInName rankInName(std::string_view fileName)
{
    std::string lower(fileName);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const std::string_view word : std::to_array<std::string_view>({"rank", "worker", "gpu", "proc", "r"})) {
        for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
            if (at > 0 && std::isalnum(static_cast<unsigned char>(lower[at - 1])) != 0 && (word == "r" || !isDigit(lower[at - 1]))) continue;
            std::size_t digits = at + word.size();
            if (word != "r" && digits < lower.size() && (lower[digits] == '_' || lower[digits] == '-' || lower[digits] == '.')) ++digits;
            const RankInName found = numberAt(lower, digits);
            if (found.rank >= 0) return found;
        }
    }
    // "trace_3.json", "3.json.gz": a number before the suffixes
    const std::size_t dot = lower.find_first_of('.');
    const std::size_t stem = dot == std::string::npos ? lower.size() : dot;
    std::size_t begin = stem;
    while (begin > 0 && isDigit(lower[begin - 1])) --begin;
    if (begin < stem && (begin == 0 || lower[begin - 1] == '_' || lower[begin - 1] == '-')) return numberAt(lower, begin);
    return {};
}

} // namespace stagewright
