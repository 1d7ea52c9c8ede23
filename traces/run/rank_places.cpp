#include "traces/run/rank_places.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

std::string_view toText(ParallelDimension dimension)
{
    switch (dimension) {
    case ParallelDimension::Pipeline: return "pipeline";
    case ParallelDimension::Data: return "data";
    case ParallelDimension::Tensor: return "tensor";
    case ParallelDimension::Expert: return "expert";
    case ParallelDimension::Context: return "context";
    }
    return "";
}

std::optional<ParallelDimension> dimensionOf(std::string_view purpose)
{
    const std::string text = lowered(purpose);
    std::vector<ParallelDimension> found;
    for (const std::string_view word : split(text, "_-. ")) {
        if (word == "and" || word == "with" || word == "embedding") return std::nullopt;
        std::optional<ParallelDimension> dimension;
        if (word == "pp" || word == "pipeline" || word == "pipe") dimension = ParallelDimension::Pipeline;
        if (word == "dp" || word == "data" || word == "fsdp" || word == "ddp") dimension = ParallelDimension::Data;
        if (word == "tp" || word == "tensor") dimension = ParallelDimension::Tensor;
        if (word == "ep" || word == "expert") dimension = ParallelDimension::Expert;
        if (word == "cp" || word == "context") dimension = ParallelDimension::Context;
        if (dimension && std::find(found.begin(), found.end(), *dimension) == found.end()) found.push_back(*dimension);
    }
    return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

bool RankPlace::known() const
{
    return !host.empty() || std::any_of(place.begin(), place.end(), [](int at) { return at >= 0; });
}

std::string placesText(const std::vector<RankPlace>& ranks)
{
    if (std::none_of(ranks.begin(), ranks.end(), [](const RankPlace& rank) { return rank.known(); })) return {};
    std::string text;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::string host = ranks[r].host;
        std::replace_if(
            host.begin(), host.end(), [](char c) { return isBlank(c) || c == '='; }, '_');
        text += fmt::format("{}{} {}", r == 0 ? "" : "\n", r, host.empty() ? "-" : host);
        for (std::size_t d = 0; d < parallelDimensionCount; ++d)
            if (ranks[r].place[d] >= 0)
                text += fmt::format(" {}={}", toText(static_cast<ParallelDimension>(d)), ranks[r].place[d]);
    }
    return text;
}

std::vector<RankPlace> placesOf(const Run& run) { return placesOf(run.configuration, run.info.ranks); }

std::vector<RankPlace> placesOf(const TextPairs& configuration, int ranks)
{
    std::vector<RankPlace> out;
    const auto found = std::find_if(configuration.begin(), configuration.end(),
                                    [](const auto& fact) { return fact.first == "rank_places"; });
    if (found == configuration.end()) return out;
    out.resize(static_cast<std::size_t>(std::max(0, ranks)));
    for (const std::string_view line : itemsOf(found->second, "\n")) {
        const auto words = wordsOf(line);
        const auto rank = words.empty() ? std::nullopt : wholeOf<int>(words[0]);
        if (!rank || *rank < 0 || *rank >= ranks || words.size() < 2) continue;
        RankPlace& place = out[static_cast<std::size_t>(*rank)];
        if (words[1] != "-") place.host = words[1];
        for (std::size_t i = 2; i < words.size(); ++i) {
            const KeyValue pair = keyValueOf(words[i]);
            for (std::size_t d = 0; d < parallelDimensionCount && pair.value; ++d)
                if (pair.key == toText(static_cast<ParallelDimension>(d)))
                    place.place[d] = wholeOf<int>(*pair.value).value_or(-1);
        }
    }
    return out;
}

} // namespace stagewright
