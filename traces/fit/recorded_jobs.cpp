#include "traces/fit/recorded_jobs.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/median.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "traces/run/run_facts.h"

namespace stagewright {

Result<RecordedJob> recordedJobOf(const Run& run)
{
    const auto no = [&](std::string why) {
        return fail(ErrorCode::Usage, fmt::format("run {}: {}", run.info.name, why),
                    "record one with --replicas and --cut");
    };
    if (!run.timeline || !run.schedule) return no("it has no ops");
    const Schedule& schedule = *run.schedule;
    const auto ranks = static_cast<std::size_t>(schedule.ranks);
    const std::vector<int> cuts = wholesOf(configured(run, "cut")).value_or(std::vector<int>());
    if (!cuts.empty() && static_cast<int>(cuts.size()) != schedule.replicas)
        return no(fmt::format("it has {} cuts for {} replicas", cuts.size(), schedule.replicas));
    std::vector<std::vector<Nanos>> steps(ranks); // by rank and step
    for (const Track& track : run.timeline->tracks()) {
        if (track.lane != Lane::Compute || track.rank < 0 || track.rank >= schedule.ranks) continue;
        auto& own = steps[static_cast<std::size_t>(track.rank)];
        own.resize(std::max(own.size(), static_cast<std::size_t>(std::max(0, run.timeline->steps()))));
        for (const Span& span : run.timeline->spansOf(track))
            if (span.step >= 0 && static_cast<std::size_t>(span.step) < own.size() && isBusy(span.op.kind) &&
                span.label == 0 && (span.flags & SpanDiscarded) == 0)
                own[static_cast<std::size_t>(span.step)] += span.end - span.start;
    }
    RecordedJob out{run.info.name, {}, {}};
    const auto warm = static_cast<std::ptrdiff_t>(std::max(0, run.info.warmupSteps));
    for (auto& own : steps) {
        if (static_cast<std::ptrdiff_t>(own.size()) > warm) own.erase(own.begin(), own.begin() + warm);
        const Nanos median = own.empty() ? 0 : lowerMedian(own);
        if (median <= 0) return no(fmt::format("rank {} has no measured step", out.partial.size()));
        out.partial.push_back(median);
    }
    const auto whole = std::find(cuts.begin(), cuts.end(), 0);
    const auto replica = static_cast<int>(whole - cuts.begin());
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        const int same =
            whole == cuts.end() ? rank : replica * schedule.pipelineRanks() + schedule.pipelineRankOf(rank);
        out.full.push_back(
            std::max(out.partial[static_cast<std::size_t>(rank)], out.partial[static_cast<std::size_t>(same)]));
    }
    return out;
}

std::string jigsawProblem(std::span<const RecordedJob> jobs)
{
    using Json = nlohmann::ordered_json;
    const auto micros = [](std::vector<Nanos> all) {
        for (Nanos& one : all) one = std::max<Nanos>(1, (one + 500) / 1000);
        return all;
    };
    std::size_t gpus = 0;
    Json partial = Json::array(), full = Json::array();
    std::string about;
    for (const RecordedJob& job : jobs) {
        gpus = std::max(gpus, job.partial.size());
        partial.push_back(micros(job.partial));
        full.push_back(micros(job.full));
        about += (about.empty() ? "µs a step of the ranks of " : ", ") + job.run;
    }
    return Json{{"program", "jigsaw"}, {"about", about}, {"input", {{"gpus", gpus}, {"jobs", partial}, {"full", full}}}}
               .dump() +
           "\n";
}

} // namespace stagewright
