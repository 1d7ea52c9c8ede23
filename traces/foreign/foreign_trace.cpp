#include "traces/foreign/foreign_trace.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/foreign/graph_node.h"

namespace stagewright {

std::uint32_t NameTable::idOf(std::string_view name)
{
    if (const auto found = m_ids.find(name); found != m_ids.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(m_names.size());
    const auto [entry, added] = m_ids.emplace(std::string(name), id);
    m_names.push_back(&entry->first);
    return id;
}

std::uint32_t NameTable::idOf(std::string_view name, std::string_view shape)
{
    const std::uint32_t plain = idOf(name);
    return shape.empty() ? plain : shaped(plain, shape);
}

std::uint32_t NameTable::shaped(std::uint32_t name, std::string_view shape)
{
    const auto of = m_plain.find(name);
    const std::uint32_t plain = of == m_plain.end() ? name : of->second;
    constexpr std::size_t mostShaped = 1 << 16; // further ones are kept without their shape
    if (shape.empty()) return plain;
    auto found = m_byShape.find(shape);
    if (m_plain.size() >= mostShaped && (found == m_byShape.end() || !found->second.contains(plain))) return plain;
    if (found == m_byShape.end()) found = m_byShape.try_emplace(std::string(shape)).first;
    const auto [entry, added] = found->second.try_emplace(plain, static_cast<std::uint32_t>(m_names.size()));
    if (!added) return entry->second;
    m_names.push_back(m_names[plain]);
    m_shapes.resize(m_names.size(), nullptr);
    m_shapes.back() = &found->first;
    m_plain.emplace(entry->second, plain);
    return entry->second;
}

std::string launchShape(const std::array<std::int64_t, 3>& grid, const std::array<std::int64_t, 3>& block)
{
    for (const auto* sizes : {&grid, &block})
        for (const std::int64_t size : *sizes)
            if (size <= 0) return {};
    return fmt::format("grid {}×{}×{}, block {}×{}×{}", grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}

std::string withInputs(std::string_view shape, std::string_view inputs)
{
    constexpr std::size_t most = 240;
    std::string text(shape);
    std::string sizes;
    for (const char c : inputs)
        if (static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7f) sizes += c;
    if (sizes.empty()) return text;
    if (sizes.size() > most) sizes = sizes.substr(0, most) + "…";
    const CudaGraphNode graph = graphNodeIn(text); // remains the last part
    text.resize(withoutGraph(text).size());
    return withGraph(text + (text.empty() ? "inputs " : ", inputs ") + sizes, graph);
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
    const auto digits = [](std::string_view text) {
        return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    const std::size_t end = fileName.find(".pt.trace.json");
    if (end == std::string_view::npos) return {};
    std::string_view stem = fileName.substr(0, end);
    const std::size_t dot = stem.rfind('.'); // the time in ms or ns
    if (dot == std::string_view::npos || !digits(stem.substr(dot + 1))) return {};
    stem = stem.substr(0, dot);
    const std::size_t line = stem.rfind('_');
    if (line == std::string_view::npos || line == 0 || !digits(stem.substr(line + 1)) ||
        stem.substr(line + 1).size() < 2)
        return {};
    const std::string_view host = stem.substr(0, line);
    const std::string text = lowered(host);
    for (const std::string_view word : {"worker", "rank"}) // "worker0_step_12" names no host
        if (const std::size_t at = text.find(word);
            at != std::string::npos && text.find_first_of("0123456789", at) != std::string::npos)
            return {};
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
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const std::string_view word :
         std::to_array<std::string_view>({"rank", "worker", "gpu", "proc", "tp", "pp", "dp", "ep", "r"})) {
        for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
            if (at > 0 && std::isalnum(static_cast<unsigned char>(lower[at - 1])) != 0 &&
                (word == "r" || !isDigit(lower[at - 1])))
                continue;
            std::size_t digits = at + word.size();
            if (word != "r" && digits < lower.size() &&
                (lower[digits] == '_' || lower[digits] == '-' || lower[digits] == '.'))
                ++digits;
            RankInName found = numberAt(lower, digits);
            found.said = word == "rank" || word == "worker";
            if (found.rank >= 0) return found;
        }
    }
    // "trace_3.json", "3.json.gz": a number before the suffixes
    const std::size_t dot = lower.find_first_of('.');
    const std::size_t stem = dot == std::string::npos ? lower.size() : dot;
    std::size_t begin = stem;
    while (begin > 0 && isDigit(lower[begin - 1])) --begin;
    if (begin < stem && (begin == 0 || lower[begin - 1] == '_' || lower[begin - 1] == '-'))
        return numberAt(lower, begin);
    return {};
}

} // namespace stagewright
