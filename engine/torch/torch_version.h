// Which schedules which version of PyTorch can run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/messages/lower.h"
#include "schedules/model/schedule.h"
#include "schedules/text/pytorch.h"

namespace stagewright {

std::optional<TorchVersion> parseTorchVersion(std::string_view text); // "2.6.0+debian"; none: no version

inline constexpr TorchVersion newestTorch{2, 11}; // that the driver was written for

struct TorchSchedule {
    std::string csv;
    std::string form; // as _load_csv names it: "compute_only" or "compute_comms"
};
// The schedule as this version takes it: with messages where it has them or a rule is given, else PyTorch inserts them.
// Errors (Invalid) name what it can't run: an op or placement, with the nearest schedule that it can; overlapped pairs
// and REDUCE_GRAD, with the version that can and the way around.
Result<TorchSchedule> torchSchedule(const Schedule& schedule, const std::optional<Lowering>& lowering,
                                    const TorchVersion& version);

} // namespace stagewright
