// What concerns a stage as a whole, and the order of ops on one (stage, microbatch) beyond their needs.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/schedule_checker.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

// What a rank's list has of one stage; positions are in that list.
struct StageOps {
    std::size_t lastGradient = nowhere; // last B or W
    std::size_t last = nowhere;         // the first op that comes behind its reductions
    bool held = false;                  // by the placement
};

} // namespace

void ScheduleChecker::checkStageOps()
{
    bool any = schedule.weights != WeightRule::Synchronous;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) any = any || isStageOp(op.kind) || isCollective(op.kind) || isInPieces(op.kind);
    if (!any) return;

    const bool synchronous = schedule.weights == WeightRule::Synchronous;
    std::vector<int> without; // ranks and stages in turn
    int with = -1;            // a stage that has an optimizer op
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        std::vector<StageOps> stages(static_cast<std::size_t>(schedule.stages));
        for (const int s : schedule.placement.stagesOf(r)) stages[static_cast<std::size_t>(s)].held = true;
        std::map<std::pair<int, OpKind>, std::size_t> first; // of a stage's ops of a whole batch
        for (std::size_t i = 0; i < ops.size(); ++i)
            if (makesWeightGradient(ops[i].kind)) stages[ops[i].stage].lastGradient = i;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (!isStageOp(op.kind) && !isCollective(op.kind) && !isInPieces(op.kind)) continue;
            StageOps& stage = stages[op.stage];
            const std::string_view title = ruleOf(op.kind).title;
            if (!stage.held) {
                add(FaultKind::WrongRank, r, i, op,
                    fmt::format("stage {} is on rank {}", op.stage, schedule.placement.rankOf(op.stage, -1)),
                    fmt::format("move it to rank {}, or remove it", schedule.placement.rankOf(op.stage, -1)));
                continue;
            }
            if (!isStageOp(op.kind)) continue;
            const bool whole = !hasMicrobatch(op); // else checkReductions()
            const bool late = ruleOf(op.kind).behind == Behind::Reductions;
            const std::size_t before = whole ? first.try_emplace({op.stage, op.kind}, i).first->second : i;
            if (late) stage.last = std::min(stage.last, i);
            if (!synchronous) continue;
            if (before != i) {
                add(FaultKind::Duplicate, r, i, op,
                    fmt::format("a second {}; the first is at op {} of rank {}", title, opNumber(before), r),
                    "remove one of the two");
                addOther(r, before, ops[before]);
            } else if (whole && stage.lastGradient != nowhere && stage.lastGradient > i) {
                add(FaultKind::Order, r, i, op,
                    fmt::format("{} before the stage's last gradient; {} is at op {}", title,
                                toText(ops[stage.lastGradient]), opNumber(stage.lastGradient)),
                    fmt::format("move it after {}", toText(ops[stage.lastGradient])));
                addOther(r, stage.lastGradient, ops[stage.lastGradient]);
            } else if (!late && stage.last != nowhere) {
                const std::string_view last = ruleOf(ops[stage.last].kind).title;
                add(FaultKind::Order, r, i, op,
                    fmt::format("{} after the stage's {}, which is at op {}", title, last, opNumber(stage.last)),
                    fmt::format("move it before the {}", last));
                addOther(r, stage.last, ops[stage.last]);
            }
        }
        for (int s = 0; s < schedule.stages; ++s) {
            const StageOps& stage = stages[static_cast<std::size_t>(s)];
            if (stage.held && stage.last != nowhere) with = s;
            if (stage.held && stage.last == nowhere) without.insert(without.end(), {r, s});
        }
    }
    if (with < 0 && synchronous) return; // the step ends with a barrier
    for (std::size_t i = 0; i + 1 < without.size(); i += 2) {
        Fault fault;
        fault.kind = FaultKind::Count;
        fault.rank = without[i];
        fault.op = makeOptimizer(without[i + 1]);
        fault.message = synchronous ? fmt::format("stage {}: no optimizer op on rank {}, but stage {} has one",
                                                  without[i + 1], without[i], with)
                                    : fmt::format("stage {}: no optimizer op on rank {}, but the weights are {}",
                                                  without[i + 1], without[i], toText(schedule.weights));
        fault.remedy = fmt::format("add {} to rank {}", toText(fault.op), fault.rank);
        out.faults.push_back(std::move(fault));
    }
}

void ScheduleChecker::checkRecompute(const OpIndex& index)
{
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const KindTraits& rule = ruleOf(ops[i].kind);
            if (rule.serves == Product::None) continue;
            index.cells().each(ops[i], ops[i].stage, [&](std::size_t cell) {
                const std::uint32_t id = index.producer(rule.serves, cell);
                if (id == noOp) return true;
                const OpPlace place = index.placeOf(id);
                if (place.rank != r || place.position > i) return true;
                const Op& gradient = ops[place.position];
                add(FaultKind::Order, r, i, ops[i],
                    fmt::format("{} after the {} it serves; {} is at op {}", rule.title, ruleOf(gradient.kind).title,
                                toText(gradient), opNumber(place.position)),
                    fmt::format("move it before {}", toText(gradient)));
                addOther(r, place.position, gradient);
                return false;
            });
        }
    }
}

void ScheduleChecker::checkSlices(const OpIndex& index)
{
    const CellSpace& cells = index.cells();
    const auto lengths = static_cast<int>(schedule.sliceLengths.size());
    if (lengths > 0 && lengths != cells.slices) {
        Fault fault;
        fault.message = fmt::format("lengths of {} slices are given, but ops name {}", lengths, cells.slices);
        fault.remedy = "give one length for each slice";
        out.faults.push_back(std::move(fault));
    }
    if (cells.slices < 2) return;
    std::array<SliceOrder, productCount> orders{};
    for (const KindTraits& rule : allKinds())
        if (rule.slices != SliceOrder::Any) orders[static_cast<std::size_t>(rule.makes)] = rule.slices;
    auto check = [&](Product product, std::size_t earlier, std::size_t later, bool rising) {
        const std::uint32_t first = index.producer(product, earlier);
        const std::uint32_t second = index.producer(product, later);
        if (first == noOp || second == noOp || first == second) return;
        const OpPlace a = index.placeOf(first);
        const OpPlace b = index.placeOf(second);
        if (a.rank != b.rank || a.position < b.position) return;
        const auto& ops = schedule.order[static_cast<std::size_t>(a.rank)];
        add(FaultKind::Order, b.rank, b.position, ops[b.position],
            fmt::format("{}; {} is at op {}",
                        rising ? "forward of a slice before the slice that it attends to"
                               : "gradient of a slice before that of the slice that attends to it",
                        toText(ops[a.position]), opNumber(a.position)),
            fmt::format("move it after {}", toText(ops[a.position])));
        addOther(a.rank, a.position, ops[a.position]);
    };
    for (int s = 0; s < schedule.stages; ++s)
        for (int j = 0; j < schedule.microbatches; ++j)
            for (int slice = 0; slice + 1 < cells.slices; ++slice)
                for (int half = 0; half < cells.halves; ++half) {
                    const std::size_t cell = cells.cell(s, j) + static_cast<std::size_t>(slice * cells.halves + half);
                    const std::size_t next = cell + static_cast<std::size_t>(cells.halves);
                    for (std::size_t product = 0; product < productCount; ++product)
                        if (orders[product] != SliceOrder::Any) {
                            const bool rising = orders[product] == SliceOrder::Rising;
                            check(static_cast<Product>(product), rising ? cell : next, rising ? next : cell, rising);
                        }
                }
}

} // namespace stagewright
