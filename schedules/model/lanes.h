// The one table of a timeline's lanes (what a row shows) and the one of resources (what an op occupies while it runs).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stagewright {

// Compute holds F, B, I, W, R, optimizer and fillers of a rank, never overlapping (overlapped pairs apart);
// communication lanes may overlap (sublanes() splits them for drawing and export).
enum class Lane : std::uint8_t {
    Compute,
    Send,
    Receive,
    Wait,
    Kernel,
    Copy,
    Other,
    Gather,  // weights: UNSHARD
    Reduce,  // gradients: REDUCE_GRAD beside compute
    CopyOut, // OFFLOAD
    CopyIn,  // RELOAD
    CardOut, // what a host's network card sends, of all its ranks; on the first of them
    CardIn,  // what it receives
};
inline constexpr std::size_t laneCount = 13;
inline constexpr std::size_t laneRoom = laneCount + 1; // one more, for the lane that a test adds (ExtraKind in kinds.h)

enum class LaneUse : std::uint8_t {
    Compute,
    Message,
    Wait,
    Device,     // work of a GPU
    Ranges,     // named ranges of a host
    Network,    // messages on a network card, again: they are on lanes of their ranks, too
    Collective, // ops of a rank's list that run beside its compute ops, with those of other ranks
    Beside,     // ops of a rank's list that run beside its compute ops
};

struct LaneTraits {
    Lane lane = Lane::Compute;
    std::string_view text = {}; // in files: "reduce"
    LaneUse use = LaneUse::Compute;
    std::string_view gutter = {}; // beside a row of the picture: "kernels"
    int place = 0;                // among a rank's rows below compute; 0: it has no row there
};

namespace detail {
extern std::array<LaneTraits, laneRoom> laneTable;
}
std::span<const LaneTraits> allLanes(); // in the order of Lane
inline const LaneTraits& traitsOf(Lane lane) { return detail::laneTable[static_cast<std::size_t>(lane)]; }
inline std::string_view toText(Lane lane) { return traitsOf(lane).text; }
std::optional<Lane> laneOf(std::string_view text); // nothing: there is no such lane

inline bool isMessageLane(Lane lane) { return traitsOf(lane).use == LaneUse::Message; }
inline bool isDeviceLane(Lane lane) { return traitsOf(lane).use == LaneUse::Device; }
inline bool isCollectiveLane(Lane lane) { return traitsOf(lane).use == LaneUse::Collective; }
inline bool isBesideLane(Lane lane) { return traitsOf(lane).use >= LaneUse::Collective; }
inline bool isListLane(Lane lane) { return lane == Lane::Compute || isBesideLane(lane); } // its spans are ops of lists

enum class Resource : std::uint8_t {
    Compute,
    Collective, // the rank's link to those that share its stages
    CopyOut,    // the way from the device to the host; back the same one, unless it is full duplex (Copies)
    CopyIn,
    Message, // the link between two ranks
};
inline constexpr std::size_t resourceCount = 5;
inline constexpr std::size_t resourceRoom = resourceCount + 1; // as laneRoom

// How the ops of a resource run.
enum class ResourceUse : std::uint8_t {
    Compute, // as ops of their list, and nothing else meanwhile
    Beside,  // beside the rank's compute ops, one after the other in the order of the list
    Shared,  // beside, and the rank's messages leave behind those that its list issued before
};
std::string_view toText(ResourceUse use); // "compute", "beside", "shared"
std::optional<ResourceUse> resourceUseOf(std::string_view text);

namespace detail {
extern std::array<ResourceUse, resourceRoom> resourceUses;
}
// Where costs say nothing else (Links::collectives).
inline ResourceUse useOf(Resource resource) { return detail::resourceUses[static_cast<std::size_t>(resource)]; }

} // namespace stagewright
