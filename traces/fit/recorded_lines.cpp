#include "traces/fit/recorded_lines.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/text.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/text/link_text.h"
#include "traces/fit/fit_costs.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

constexpr double perMilli = 1e6, perGiga = 1e9; // ns, bytes

struct LinePoint {
    double samples = 0; // of a microbatch
    double forward = 0, backward = 0;
};
struct RankLines {
    std::vector<LinePoint> points;
    double activations = 0; // of a sample, of those held at once
    double others = 0;      // at the peak, without activations and state
    double cap = 0;
};

struct Line {
    double slope = 0, start = 0;
};
Line lineOf(const std::vector<LinePoint>& points, double LinePoint::*place)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    const auto n = static_cast<double>(points.size());
    for (const LinePoint& point : points) {
        x += point.samples;
        y += point.*place;
        xx += point.samples * point.samples;
        xy += point.samples * point.*place;
    }
    const double spread = n * xx - x * x;
    if (spread > 1e-9 * n * xx) {
        const double slope = (n * xy - x * y) / spread, start = (y - slope * x) / n;
        if (slope >= 0 && start >= 0) return {slope, start};
        if (slope < 0) return {0, y / n};
    }
    return {xy / xx, 0};
}

// Most microbatches of a rank that have started and not ended.
int heldAtOnce(const std::vector<Op>& order)
{
    std::multiset<int> alive;
    std::set<int> seen;
    std::size_t most = 0;
    for (const Op& op : order)
        for (int k = 0; k < op.count; ++k) {
            if (isForward(op.kind)) alive.insert(op.microbatch + k);
            if (isReturn(op.kind))
                if (const auto at = alive.find(op.microbatch + k); at != alive.end()) alive.erase(at);
            seen = std::set<int>(alive.begin(), alive.end());
            most = std::max(most, seen.size());
        }
    return static_cast<int>(most);
}

struct Peaks {
    double all = 0, activations = 0;
};
Peaks peaksOf(const Timeline& timeline, int rank)
{
    Bytes all = 0, activations = 0;
    Peaks out;
    const auto events = timeline.memoryOf(rank);
    for (std::size_t i = 0; i < events.size(); ++i) {
        all += events[i].delta;
        if (events[i].category == MemoryCategory::Activations) activations += events[i].delta;
        if (i + 1 < events.size() && events[i + 1].time == events[i].time) continue; // after all changes of a moment
        out.all = std::max(out.all, static_cast<double>(all));
        out.activations = std::max(out.activations, static_cast<double>(activations));
    }
    return out;
}

Result<std::vector<double>> capsOf(const Run& run, std::size_t ranks)
{
    std::vector<double> out;
    for (const std::string_view item : split(configured(run, "rank_memory"), ",")) {
        if (trimmed(item).empty()) continue;
        STAGEWRIGHT_TRY(const Bytes bytes, parseBytes(std::string(trimmed(item))));
        out.push_back(static_cast<double>(bytes) / perGiga);
    }
    if (out.size() == 1) out.assign(ranks, out.front());
    if (out.size() != ranks)
        return fail(ErrorCode::Usage, "what memory its ranks have is unknown", "record it with --rank-memory");
    return out;
}

} // namespace

Result<RecordedLines> cephaloProblem(std::span<const Run> runs)
{
    using Json = nlohmann::ordered_json;
    std::vector<RankLines> ranks;
    double state = 0;
    int batch = 0;
    bool recompute = false, keeps = false;
    std::string names;
    std::set<double> sizes;
    for (const Run& run : runs) {
        const auto no = [&](std::string why) {
            return fail(ErrorCode::Usage, fmt::format("run {}: {}", run.info.name, why),
                        "record replicas of one rank each, such as -p 1 --replicas 3 --rank-memory 2GB");
        };
        if (!run.timeline || !run.schedule) return no("it has no ops");
        const Schedule& schedule = *run.schedule;
        if (schedule.pipelineRanks() != 1) return no("a rank does not have the whole model");
        STAGEWRIGHT_TRY(const CostModel costs, costsOf(run));
        if (costs.timeUnit != 1 || costs.memoryUnit != 1) return no("its times and sizes are in units");
        const auto count = static_cast<std::size_t>(schedule.ranks);
        if (!ranks.empty() && ranks.size() != count)
            return no(fmt::format("it has {} ranks, the runs before have {}", count, ranks.size()));
        auto caps = capsOf(run, count);
        if (!caps) return tl::unexpected(std::move(caps.error()).with("run " + run.info.name));
        double samples = 0;
        if (!readNumber(configured(run, "microbatch_size"), samples) || samples <= 0)
            return no("the samples of its microbatches are unknown");
        const auto own = wholesOf(configured(run, "replica_samples")).value_or(std::vector<int>());
        const bool first = ranks.empty();
        ranks.resize(count);
        for (std::size_t rank = 0; rank < count; ++rank) {
            RankLines& lines = ranks[rank];
            LinePoint point{own.size() == count ? own[rank] : samples};
            std::set<int> microbatches;
            for (const Op& op : schedule.order[rank]) {
                const auto time = static_cast<double>(costs.duration(op, static_cast<int>(rank))) / perMilli;
                if (isForward(op.kind)) microbatches.insert(op.microbatch);
                recompute = recompute || isRecompute(op.kind);
                if (isForward(op.kind) || isRecompute(op.kind))
                    point.forward += time;
                else if (isCompute(op.kind))
                    point.backward += time;
            }
            const auto passes = static_cast<double>(microbatches.size());
            if (point.forward <= 0 || point.backward <= 0) return no(fmt::format("rank {} has no passes", rank));
            if (first) batch += static_cast<int>(std::lround(point.samples * passes));
            sizes.insert(point.samples);
            const int held = heldAtOnce(schedule.order[rank]);
            keeps = keeps || held > 1;
            double owned = 0;
            for (int stage = 0; stage < schedule.stages; ++stage)
                owned += static_cast<double>(heldState(costs, schedule, stage, static_cast<int>(rank)).sum());
            const Peaks peaks = peaksOf(*run.timeline, static_cast<int>(rank));
            lines.activations = std::max(lines.activations, peaks.activations / perGiga / (point.samples * held));
            lines.others = std::max(lines.others, (peaks.all - peaks.activations - owned) / perGiga);
            lines.cap = (*caps)[rank];
            point.forward /= passes;
            point.backward /= passes;
            lines.points.push_back(point);
        }
        if (first)
            for (const StageMemory& stage : costs.memory)
                state += static_cast<double>(stage.weight + stage.gradient + stage.optimizer) / perGiga;
        names += (names.empty() ? "" : ", ") + run.info.name;
    }
    if (recompute) // F and R are as long, and both are counted
        for (RankLines& lines : ranks)
            for (LinePoint& point : lines.points) point.forward /= 2;
    Json gpus = Json::array();
    for (const RankLines& lines : ranks) {
        const Line forward = lineOf(lines.points, &LinePoint::forward),
                   backward = lineOf(lines.points, &LinePoint::backward);
        gpus.push_back({{"f1", forward.slope},
                        {"f0", forward.start},
                        {"b1", backward.slope},
                        {"b0", backward.start},
                        {"a1", keeps ? 0 : lines.activations},
                        {"a0", lines.others},
                        {"kept", keeps ? lines.activations : 0},
                        {"cap", lines.cap}});
    }
    std::string words = "the ranks of " + names;
    if (sizes.size() < 2) words += "; of one size of microbatch, what a pass takes besides its samples is unknown";
    const Json problem{
        {"program", "cephalo"},
        {"about", "ms and GB of " + words},
        {"input", {{"batch", batch}, {"state", state}, {"recompute", recompute}, {"least", 1}, {"gpus", gpus}}}};
    return RecordedLines{problem.dump() + "\n", std::move(words)};
}

} // namespace stagewright
