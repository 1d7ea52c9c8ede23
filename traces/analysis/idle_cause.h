// Why a rank is idle, and the words for it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedules/base/units.h"

namespace stagewright {

enum class IdleCause : std::uint8_t {
    Warmup,     // before the rank's first busy span
    Drain,      // after the rank's last busy span
    Dependency, // the input's producer had not finished
    Transfer,   // produced, still in transit
    PeerWait,   // the peer had not posted its side
    HeadOfLine, // another message went first on the link
    Memory,     // another op was ready, but would have exceeded the memory cap
    Order,      // another op was ready, but the schedule orders it later; also fillers
    Imbalance,  // the producer came late because a stage costs more than the average stage
    // … because an op took longer than the median of its kind, stage and rank, or its rank is slower than others at the
    // same work
    Straggler,
    RecomputeWait, // a recomputation was delayed until the gradient came, although its input was there
    ReloadWait,    // offloaded activations were still being reloaded
    Launch,        // everything was ready, but the op had not started: runtime overhead
    Microbatch,    // the producer came late because its microbatch takes longer than the others on every stage
    Collective,    // weights were still being gathered, or gradients reduced, beside compute
};
inline constexpr std::size_t idleCauseCount = 15;
std::string_view toText(IdleCause cause);    // "warmup", "drain" … the JSON keys
std::string_view titleOf(IdleCause cause);   // "Warm-up", "Waiting for input"
std::string_view meaningOf(IdleCause cause); // one sentence

using IdleByCause = std::array<Nanos, idleCauseCount>;

} // namespace stagewright
