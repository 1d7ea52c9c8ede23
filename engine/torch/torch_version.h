// Which schedules which version of PyTorch can run.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/messages/lower.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct TorchVersion {
    int major = 0;
    int minor = 0;
    auto operator<=>(const TorchVersion&) const = default;
};
std::string toText(const TorchVersion& version);                      // "2.6"
std::optional<TorchVersion> parseTorchVersion(std::string_view text); // "2.6.0+debian"; none: no version

inline constexpr TorchVersion oldestTorch{2, 6};
inline constexpr TorchVersion newestTorch{2, 11};     // that the driver was written for
inline constexpr TorchVersion torchWithPairs{2, 9};   // overlapped pairs: the DualPipeV schedule
inline constexpr TorchVersion torchWithReduce{2, 10}; // REDUCE_GRAD in a list

struct TorchSchedule {
    std::string csv;
    std::string form; // as _load_csv names it: "compute_only" or "compute_comms"
};
// The schedule as this version takes it: with messages where it has them or a rule is given, else PyTorch inserts them. Errors (Invalid)
// name what it can't run: an op or placement, with the nearest schedule that it can; overlapped pairs and REDUCE_GRAD, with the
// version that can and the way around.
Result<TorchSchedule> torchSchedule(const Schedule& schedule, const std::optional<Lowering>& lowering, const TorchVersion& version);

} // namespace stagewright
