#include "engine/torch/torch_version.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "schedules/messages/messages.h"
#include "schedules/text/csv.h"
#include "schedules/text/pytorch.h"

namespace stagewright {

std::optional<TorchVersion> parseTorchVersion(std::string_view text)
{
    TorchVersion version;
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, version.major);
    if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
    const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
    if (minor.ec != std::errc()) return std::nullopt;
    return version;
}

Result<TorchSchedule> torchSchedule(const Schedule& schedule, const std::optional<Lowering>& lowering,
                                    const TorchVersion& version)
{
    if (schedule.weights != WeightRule::Synchronous)
        return fail(ErrorCode::Invalid,
                    fmt::format("{}: its weights are {}, and PyTorch's pipelining has synchronous ones", schedule.name,
                                toText(schedule.weights)),
                    "use a synchronous schedule, such as 1f1b");
    auto forms = pytorchForms(schedule);
    if (!forms) return tl::unexpected(std::move(forms.error()).with(schedule.name));
    if (overlapsOps(schedule) && version < torchWithPairs)
        return fail(ErrorCode::Invalid,
                    fmt::format("{}: overlapped pairs need PyTorch {}, and this one is {}", schedule.name,
                                toText(torchWithPairs), toText(version)),
                    "--overlap serial writes the ops of a pair one after the other");
    if (!lowering && !isLowered(schedule)) return TorchSchedule{std::move(forms->computeOnly), "compute_only"};
    Schedule lists = schedule;
    if (lowering) {
        auto lowered = lower(schedule, *lowering);
        if (!lowered) return tl::unexpected(std::move(lowered.error()).with(schedule.name));
        lists = std::move(*lowered);
    }
    for (const auto& list : lists.order)
        for (const Op& op : list)
            if (isReduction(op.kind) && version < torchWithReduce)
                return fail(
                    ErrorCode::Invalid,
                    fmt::format("{}: REDUCE_GRAD in a list (pytorch:collectives) needs PyTorch {}, and this one is {}",
                                schedule.name, toText(torchWithReduce), toText(version)),
                    "--lower pytorch inserts sends and receives alone");
    CsvOptions strict;
    strict.pytorch = true;
    auto csv = writeScheduleCsv(lists, strict);
    if (!csv) return tl::unexpected(std::move(csv.error()).with(schedule.name));
    return TorchSchedule{std::move(*csv), "compute_comms"};
}

} // namespace stagewright
