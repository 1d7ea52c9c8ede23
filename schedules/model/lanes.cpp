#include "schedules/model/lanes.h"

#include <algorithm>

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 3> useNames{"compute", "beside", "shared"};

} // namespace

namespace detail {
constinit std::array<LaneTraits, laneRoom> laneTable{{
    {Lane::Compute, "compute", LaneUse::Compute, "other"},
    {Lane::Send, "send", LaneUse::Message, "other"},
    {Lane::Receive, "receive", LaneUse::Message, "other"},
    {Lane::Wait, "wait", LaneUse::Wait, "waits", 11},
    {Lane::Kernel, "kernel", LaneUse::Device, "kernels", 8},
    {Lane::Copy, "copy", LaneUse::Device, "copies", 9},
    {Lane::Other, "other", LaneUse::Ranges, "other", 10},
    {Lane::Gather, "gather", LaneUse::Collective, "gather", 1},
    {Lane::Reduce, "reduce", LaneUse::Collective, "reduce", 2},
    {Lane::CopyOut, "copy out", LaneUse::Beside, "copy out", 3},
    {Lane::CopyIn, "copy in", LaneUse::Beside, "copy in", 4},
    {Lane::CardOut, "card out", LaneUse::Network, "card out", 6},
    {Lane::CardIn, "card in", LaneUse::Network, "card in", 7},
    {},
}};
constinit std::array<ResourceUse, resourceRoom> resourceUses{ResourceUse::Compute, ResourceUse::Compute,
                                                             ResourceUse::Beside, ResourceUse::Beside};
} // namespace detail

std::span<const LaneTraits> allLanes()
{
    const bool extra = !detail::laneTable.back().text.empty();
    return {detail::laneTable.data(), extra ? laneRoom : laneCount};
}

std::optional<Lane> laneOf(std::string_view text)
{
    for (const LaneTraits& row : allLanes())
        if (row.text == text) return row.lane;
    return std::nullopt;
}

std::string_view toText(ResourceUse use) { return useNames[static_cast<std::size_t>(use)]; }

std::optional<ResourceUse> resourceUseOf(std::string_view text)
{
    const auto at = std::find(useNames.begin(), useNames.end(), text);
    if (at == useNames.end()) return std::nullopt;
    return static_cast<ResourceUse>(at - useNames.begin());
}

} // namespace stagewright
