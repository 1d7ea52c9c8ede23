#include "schedules/text/pytorch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/placement_of.h"
#include "schedules/text/csv.h"

namespace stagewright {

namespace {

constexpr std::size_t mostOpsRecognised = 200'000;

CsvOptions strict()
{
    CsvOptions options;
    options.pytorch = true;
    return options;
}

// Ops that PyTorch does by other means, or not at all; the order remains valid without them.
bool canBeLeftOut(OpKind kind) { return !ruleOf(kind).notInPyTorch.empty() || isReduction(kind); }

Schedule withoutExtras(const Schedule& given, std::set<std::string_view>& dropped)
{
    return without(withoutCommunication(given), [&dropped](const Op& op) {
        if (!canBeLeftOut(op.kind)) return false;
        dropped.insert(ruleOf(op.kind).title);
        return true;
    });
}

struct Figures {
    double makespan = 0; // rank shares
    double peak = 0;     // activations of one microbatch on a rank share
};

std::optional<Figures> figuresFor(const Schedule& schedule)
{
    const auto result = simulate(schedule, CostModel::uniform(schedule));
    if (!result) return std::nullopt;
    Figures figures;
    figures.makespan = static_cast<double>(result->makespan) / static_cast<double>(rankShare);
    for (const Bytes peak : result->peakActivation)
        figures.peak = std::max(figures.peak, static_cast<double>(peak) / static_cast<double>(activationShare));
    return figures;
}

double apart(double a, double b) { return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-9}); }

} // namespace

std::string toText(const TorchVersion& version) { return fmt::format("{}.{}", version.major, version.minor); }

TorchVersion torchNeeded(const Schedule& schedule)
{
    for (const auto& list : schedule.order)
        for (const Op& op : list)
            if (isReduction(op.kind)) return torchWithReduce;
    return overlapsOps(schedule) ? torchWithPairs : oldestTorch;
}

std::optional<std::string> pytorchObstacle(const Schedule& schedule)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i)
            if (const OpKind kind = schedule.order[r][i].kind; canBeLeftOut(kind))
                return fmt::format("rank {}, op {} ({}): {} is not an op of PyTorch's pipelining", r, opNumber(i),
                                   toText(schedule.order[r][i]), ruleOf(kind).title);
    const Schedule plain = withoutCommunication(schedule);
    if (plain.placement.hasCopies())
        for (int s = 0; s < plain.stages; ++s)
            if (const auto& copies = plain.placement.copiesOf(s); copies.size() > 1)
                return fmt::format("stage {} has copies on ranks {} and {}; PyTorch keeps a stage on one rank", s,
                                   copies[0].rank, copies[1].rank);
    const auto text = writeScheduleCsv(plain, strict());
    if (text) return std::nullopt;
    return text.error().message;
}

std::optional<PyTorchNearest> nearestForPyTorch(const Schedule& given)
{
    if (given.opCount() > mostOpsRecognised || given.ranks < 1 || given.microbatches < 1) return std::nullopt;
    std::set<std::string_view> dropped;
    Schedule stripped = withoutExtras(given, dropped);
    if (!dropped.empty() && !pytorchObstacle(stripped) && validate(stripped).valid()) {
        PyTorchNearest nearest;
        nearest.name = recognise(stripped);
        std::string what;
        for (const std::string_view title : dropped) what += fmt::format("{}{}", what.empty() ? "" : ", ", title);
        const bool recomputes = std::ranges::any_of(allKinds(), [&dropped](const KindTraits& kind) {
            return isRecompute(kind.kind) && dropped.contains(kind.title);
        });
        nearest.sentence = fmt::format("the nearest it can run: {} without {} ops{}",
                                       nearest.name.empty() ? "the same order" : nearest.name, what,
                                       recomputes ? "; PyTorch recomputes through activation checkpointing" : "");
        nearest.schedule = std::move(stripped);
        return nearest;
    }
    const auto wanted = figuresFor(given);
    if (!wanted) return std::nullopt;
    std::optional<PyTorchNearest> best;
    double least = 0;
    for (const ScheduleInfo& info : allSchedules()) {
        if (info.searches) continue;
        auto made = makeSchedule(info.name, Shape{given.ranks, given.microbatches});
        if (!made || made->ranks != given.ranks || made->microbatches != given.microbatches || pytorchObstacle(*made))
            continue;
        const auto figures = figuresFor(*made);
        if (!figures) continue;
        const double distance = apart(figures->makespan, wanted->makespan) + apart(figures->peak, wanted->peak);
        if (best && distance >= least) continue;
        least = distance;
        best = PyTorchNearest{std::string(info.name),
                              fmt::format("the nearest it can run: {}, {:.4g} against {:.4g} units, {:.4g} against "
                                          "{:.4g} activations at the peak (F=I=W=1)",
                                          info.name, figures->makespan, wanted->makespan, figures->peak, wanted->peak),
                              std::move(*made)};
    }
    return best;
}

Result<PyTorchForms> pytorchForms(const Schedule& schedule)
{
    if (const auto obstacle = pytorchObstacle(schedule)) {
        const auto nearest = nearestForPyTorch(schedule);
        return fail(ErrorCode::Invalid, *obstacle,
                    nearest ? nearest->sentence : std::string("write it without the PyTorch restriction"));
    }
    const Schedule plain = withoutCommunication(schedule);
    STAGEWRIGHT_CHECK(validate(plain).toResult());
    PyTorchForms forms;
    auto text = writeScheduleCsv(plain, strict());
    if (!text) return tl::unexpected(std::move(text.error()));
    forms.computeOnly = std::move(*text);
    STAGEWRIGHT_TRY(const auto lowered, lower(plain, Lowering{LoweringRule::PyTorch}));
    text = writeScheduleCsv(lowered, strict());
    if (!text) return tl::unexpected(std::move(text.error()));
    forms.withMessages = std::move(*text);
    return forms;
}

Result<std::string> torchTitanSchedule(const Schedule& schedule)
{
    if (schedule.ranks > 0 && schedule.stages % schedule.ranks == 0) {
        if (schedule.placement == Placement::loop(schedule.ranks, schedule.stages))
            return std::string(schedule.stages == schedule.ranks ? "PipelineScheduleSingle" : "PipelineScheduleMulti");
        if (schedule.stages == 2 * schedule.ranks && schedule.placement == Placement::vShape(schedule.ranks))
            return std::string("ZBVZeroBubble");
    }
    for (int s = 0; s < schedule.stages; ++s)
        if (const int rank = schedule.placement.rankOf(s, 0); schedule.ranks > 0 && rank != s % schedule.ranks)
            return fail(
                ErrorCode::Invalid,
                fmt::format(
                    "stage {} is on rank {}; TorchTitan builds stage s on rank s mod {}, or two stages per rank as a V",
                    s, rank, schedule.ranks),
                "only torch.distributed.pipelining can run it: export --format csv --pytorch");
    return fail(ErrorCode::Invalid,
                fmt::format("{} stages on {} ranks; TorchTitan builds the same number on every rank", schedule.stages,
                            schedule.ranks),
                "only torch.distributed.pipelining can run it: export --format csv --pytorch");
}

} // namespace stagewright
