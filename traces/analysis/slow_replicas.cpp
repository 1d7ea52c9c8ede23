#include "traces/analysis/slow_replicas.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "traces/step/slow_ranks.h"

namespace stagewright {

std::string slowReplicaSentence(const Timeline& timeline, int step)
{
    const Schedule* schedule = timeline.schedule().get();
    if (schedule == nullptr || schedule->replicas < 2 || schedule->ranks != timeline.ranks()) return {};
    const auto replicas = static_cast<std::size_t>(schedule->replicas);
    const int pipeline = schedule->pipelineRanks();
    // Mean time of each sort of op; sorts that every replica has are compared.
    struct Work {
        double total = 0;
        std::int64_t count = 0;
    };
    std::map<std::pair<OpKind, int>, std::vector<Work>> sorts; // by kind and stage
    // by stage that is stepped: when each replica's last op before it ends
    std::map<int, std::vector<std::pair<Nanos, std::size_t>>> ready;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto replica = static_cast<std::size_t>(track.rank / pipeline);
        const auto [first, last] = timeline.stepRange(track, step);
        Nanos before = -1;
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step || span.label != 0 || (span.flags & SpanDiscarded) != 0) continue;
            if (isCompute(span.op.kind) && span.op.count == 1 && span.op.slice < 0 && span.op.half == 0) {
                auto& of = sorts[{span.op.kind, span.op.stage}];
                of.resize(replicas);
                of[replica].total += static_cast<double>(span.duration());
                ++of[replica].count;
            }
            if (isCompute(span.op.kind)) before = span.end;
            if (isOptimizer(span.op.kind) && before >= 0) ready[span.op.stage].emplace_back(before, replica);
        }
    }
    std::vector<double> total(replicas, 0), counted(replicas, 0);
    for (const auto& [sort, of] : sorts) {
        if (std::any_of(of.begin(), of.end(), [](const Work& work) { return work.count == 0; })) continue;
        double mean = 0;
        for (const Work& work : of)
            mean += work.total / static_cast<double>(work.count) / static_cast<double>(replicas);
        if (mean <= 0) continue;
        for (std::size_t r = 0; r < replicas; ++r) {
            total[r] += of[r].total / static_cast<double>(of[r].count);
            counted[r] += 1;
        }
    }
    if (counted.front() == 0) return {};
    // what microbatches of other sizes should take is not known
    const auto sizes = timeline.sizes();
    if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end()) return {};
    std::vector<double> sorted = total;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[(replicas - 1) / 2];
    std::string names;
    double least = 0, most = 0;
    int slow = 0;
    for (std::size_t r = 0; r < replicas; ++r) {
        if (median <= 0 || total[r] <= slowRank * median) continue;
        const double factor = total[r] / median;
        least = slow == 0 ? factor : std::min(least, factor);
        most = std::max(most, factor);
        ++slow;
        if (slow <= 8) names += (names.empty() ? "" : ", ") + std::to_string(r);
    }
    if (slow == 0) return {};
    if (slow > 8) names += fmt::format(" and {} more", slow - 8);
    const std::string factors =
        most - least < 0.005 ? fmt::format("{:.2f}×", most) : fmt::format("{:.2f} to {:.2f}×", least, most);
    int late = 0, of = 0;
    for (const auto& [stage, ranks] : ready) {
        if (ranks.size() < 2) continue;
        ++of;
        const std::size_t last = std::max_element(ranks.begin(), ranks.end())->second;
        late += total[last] > slowRank * median ? 1 : 0;
    }
    std::string text =
        fmt::format("{} {} {} {} as long as the {} replica for the same ops", slow == 1 ? "replica" : "replicas", names,
                    slow == 1 ? "takes" : "take", factors, replicas == 2 ? "other" : "median");
    if (of > 0) text += fmt::format(" and {} the last to finish {} of {} stages", slow == 1 ? "is" : "are", late, of);
    return text;
}

} // namespace stagewright
