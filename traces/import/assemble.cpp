#include "traces/import/assemble.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/base/time_limits.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/device_time.h"
#include "traces/fit/fit_costs.h"
#include "traces/format/format_registry.h"
#include "traces/import/clock_alignment.h"
#include "traces/import/outliers.h"
#include "traces/import/rank_work.h"
#include "traces/import/rule_draft.h"
#include "traces/import/run_timeline.h"
#include "traces/run/rank_places.h"

namespace stagewright {

namespace {

constexpr std::string_view waiting[] = {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"};

template <typename Change>
void eachTime(ForeignRank& rank, Change&& change)
{
    for (auto* spans : {&rank.annotations, &rank.deviceAnnotations, &rank.hostOps})
        for (ForeignSpan& span : *spans) change(span.start), change(span.end);
    for (DeviceSpan& span : rank.device) {
        change(span.start), change(span.end);
        if (span.launchedFrom != noThread) change(span.launched);
    }
    for (auto& [work, time] : rank.laterCalls) change(time);
    for (Launch& launch : rank.launches) change(launch.time);
    for (ForeignMessage& message : rank.messages) change(message.start), change(message.end);
    for (MemoryChangeSeen& seen : rank.memory) change(seen.time);
    for (CounterSeen& counter : rank.counters)
        for (CounterSample& sample : counter.samples) change(sample.time);
}

// Shifts to one origin, the first time of any rank, which is stored separately. Where the clocks of ranks are more than
// 30 days apart (one counts from 1970, another from its start), each starts at 0.
Nanos toOneOrigin(std::vector<ForeignRank>& ranks, std::vector<std::string>& notes)
{
    constexpr Nanos none = std::numeric_limits<Nanos>::max(), clocksApart = Nanos{30} * 24 * 3600 * 1'000'000'000;
    Nanos origin = none, latest = std::numeric_limits<Nanos>::min();
    std::vector<Nanos> firsts;
    for (ForeignRank& rank : ranks) {
        Nanos first = none;
        eachTime(rank, [&first](Nanos time) { first = std::min(first, time); });
        firsts.push_back(first);
        if (first == none) continue;
        origin = std::min(origin, first + rank.epoch);
        latest = std::max(latest, first + rank.epoch);
    }
    if (origin == none) return 0;
    if (latest - origin > clocksApart) {
        notes.push_back(fmt::format("the clocks of its ranks are {} apart, so each starts at 0: times of different "
                                    "ranks can be compared only where messages align them",
                                    farText(latest - origin)));
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (firsts[r] != none) ranks[r].epoch = origin - firsts[r];
    }
    for (ForeignRank& rank : ranks) {
        const Nanos by = rank.epoch - origin;
        eachTime(rank, [by](Nanos& time) { time += by; });
        rank.epoch = 0;
    }
    return origin;
}

// What a run file would not take: nothing of it is imported.
Result<void> timesFit(std::vector<ForeignRank>& ranks, const std::string& name)
{
    Nanos farthest = 0;
    for (ForeignRank& rank : ranks)
        eachTime(rank, [&farthest](Nanos time) { farthest = std::max(farthest, time < 0 ? -time : time); });
    if (isStorableTime(farthest)) return {};
    return fail(ErrorCode::Unreadable,
                fmt::format("{}: its times are {} apart, and a run holds at most {}", name, farText(farthest),
                            farText(farthestTime)),
                "record it again, or import its files one by one");
}

void numberRanks(std::vector<ForeignRank>& ranks, std::vector<std::string>& notes)
{
    const bool said = std::all_of(ranks.begin(), ranks.end(), [](const ForeignRank& rank) { return rank.rank >= 0; });
    std::set<int> numbers;
    bool twice = false;
    for (const ForeignRank& rank : ranks) twice = !numbers.insert(rank.rank).second || twice;
    if (!said || twice) {
        if (ranks.size() > 1)
            notes.emplace_back("ranks are numbered in the order of the files, which don't name their ranks");
        for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
    }
    std::sort(ranks.begin(), ranks.end(), [](const ForeignRank& a, const ForeignRank& b) { return a.rank < b.rank; });
    const int world = std::accumulate(ranks.begin(), ranks.end(), 0,
                                      [](int most, const ForeignRank& rank) { return std::max(most, rank.worldSize); });
    if (world > static_cast<int>(ranks.size()))
        notes.push_back(fmt::format("only {} of the job's {} ranks {} imported", ranks.size(), world,
                                    ranks.size() == 1 ? "was" : "were"));
}

// Nobody leaves it before everybody has entered. A library's range on the host is one only where the call waits: NCCL's
// puts work in a queue.
bool waitsForAll(const ForeignRank& rank, const ForeignMessage& message)
{
    const std::string& name = rank.names[message.name];
    if (!message.device && (name.starts_with("nccl:") || name.starts_with("rccl:"))) return false;
    std::string plain;
    for (const char c : lowered(name))
        if (c >= 'a' && c <= 'z') plain += c;
    return std::any_of(std::begin(waiting), std::end(waiting),
                       [&plain](std::string_view one) { return plain.find(one) != std::string::npos; });
}

void align(std::vector<ForeignRank>& ranks, const MessagePairs& messages, ImportedRun& out)
{
    if (ranks.size() < 2) {
        out.clocks = "one rank";
        return;
    }
    ClockBounds bounds;
    const auto at = [&](const MessageEnd& end) -> const ForeignMessage& {
        return ranks[end.rank].messages[end.message];
    };
    const auto share = [&ranks](std::size_t a, std::size_t b) {
        return !ranks[a].clock.empty() && ranks[a].clock == ranks[b].clock;
    };
    std::map<std::string, int, std::less<>> firstOf; // rank of each clock that several may share
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r].clock.empty()) continue;
        const int first = firstOf.try_emplace(ranks[r].clock, static_cast<int>(r)).first->second;
        bounds.add(first, 0, static_cast<int>(r), 0);
        bounds.add(static_cast<int>(r), 0, first, 0);
    }
    for (const auto& pair : messages.pairs)
        if (!share(pair.send.rank, pair.receive.rank))
            bounds.add(static_cast<int>(pair.send.rank), at(pair.send).start, static_cast<int>(pair.receive.rank),
                       at(pair.receive).end);
    for (const auto& ends : messages.collectives) {
        const MessageEnd& first = ends.front();
        if (!waitsForAll(ranks[first.rank], at(first))) continue;
        for (std::size_t i = 1; i < ends.size(); ++i) {
            if (share(first.rank, ends[i].rank)) continue;
            bounds.addSame(static_cast<int>(first.rank), at(first).end, static_cast<int>(ends[i].rank),
                           at(ends[i]).end);
            bounds.add(static_cast<int>(first.rank), at(first).start, static_cast<int>(ends[i].rank), at(ends[i]).end);
            bounds.add(static_cast<int>(ends[i].rank), at(ends[i]).start, static_cast<int>(first.rank), at(first).end);
        }
    }
    const ClockAlignment found = bounds.align(ranks.size());
    out.clockError = found.error;
    if (std::all_of(ranks.begin(), ranks.end(),
                    [&](const ForeignRank& rank) { return !rank.clock.empty() && rank.clock == ranks[0].clock; })) {
        out.clocks = "one clock: the ranks are devices of one process";
    } else if (found.error < 0) {
        out.clocks = messages.pairs.empty() && messages.collectives.empty()
                         ? "as recorded: no messages limit their difference"
                         : "as recorded: messages limit their difference on one side at most";
    } else {
        Nanos most = 0;
        for (const Nanos by : found.correction) most = std::max(most, std::abs(by));
        const char* least = found.least ? ", the least that puts sends before their receives" : "";
        out.clocks = found.corrected == 0
                         ? fmt::format("agree, ± {}", formatDuration(found.error))
                         : fmt::format("{} of {} ranks shifted, by at most {}{}, ± {}", found.corrected, ranks.size(),
                                       formatDuration(most), least, formatDuration(found.error));
    }
    if (found.contradiction > 0)
        out.notes.push_back(
            fmt::format("messages contradict each other by {}: a clock drifted", formatDuration(found.contradiction)));
    for (std::size_t r = 0; r < ranks.size(); ++r)
        if (const Nanos by = found.correction[r]; by != 0) eachTime(ranks[r], [by](Nanos& time) { time += by; });
}

void addFact(ImportedRun& out, std::string_view key, std::string value)
{
    if (!value.empty() && value != "0") out.run.configuration.emplace_back(key, std::move(value));
}

void describeRanks(const std::vector<ForeignRank>& ranks, ImportedRun& out)
{
    out.format = ranks.front().format;
    std::map<std::string, std::int64_t> leftOut;
    std::set<std::pair<std::string, std::string>> environment;
    std::int64_t repaired = 0;
    std::string outliers;
    for (const ForeignRank& rank : ranks) {
        out.files.push_back(rank.source);
        out.events += rank.events;
        out.damaged += rank.damaged;
        repaired += rank.repaired;
        for (const auto& [what, count] : rank.leftOut) leftOut[what] += count;
        for (const auto& fact : rank.environment)
            if (environment.insert(fact).second) out.run.environment.push_back(fact);
        for (const std::string& outlier : rank.outliers)
            outliers += fmt::format("{}{}", outliers.empty() ? "" : "\n", outlier);
        for (const std::string& note : rank.notes)
            out.notes.push_back(fmt::format("{}: {}", std::filesystem::path(rank.source).filename().string(), note));
    }
    out.leftOut.assign(leftOut.begin(), leftOut.end());
    addFact(out, "outliers", std::move(outliers));
    if (out.damaged > 0) out.notes.push_back(out.damageNote());
    if (repaired > 0)
        out.notes.push_back(fmt::format("{} read after replacing bad characters",
                                        repaired == 1 ? "1 event was" : fmt::format("{} events were", repaired)));
}

// Host and place in each dimension of parallelism, by rank of the run; and the sizes of the dimensions.
void describePlaces(const std::vector<ForeignRank>& ranks, ImportedRun& out)
{
    std::vector<RankPlace> places(ranks.size());
    std::array<std::size_t, parallelDimensionCount> size{};
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        places[r].host = ranks[r].host.empty() ? hostInName(std::filesystem::path(ranks[r].source).filename().string())
                                               : ranks[r].host;
        std::array<std::size_t, parallelDimensionCount> largest{};
        for (const auto& [group, purpose] : ranks[r].groupPurpose) {
            const auto dimension = dimensionOf(purpose);
            const auto members = ranks[r].groups.find(group);
            if (!dimension || members == ranks[r].groups.end()) continue;
            const auto own = std::find(members->second.begin(), members->second.end(), ranks[r].rank);
            const auto d = static_cast<std::size_t>(*dimension);
            // of shards and replicas the larger one
            if (own == members->second.end() || members->second.size() <= largest[d]) continue;
            largest[d] = members->second.size();
            places[r].place[d] = static_cast<int>(own - members->second.begin());
            size[d] = std::max(size[d], largest[d]);
        }
    }
    std::string sizes;
    for (std::size_t d = 0; d < parallelDimensionCount; ++d)
        if (size[d] > 1)
            sizes +=
                fmt::format("{}{} {}", sizes.empty() ? "" : " × ", toText(static_cast<ParallelDimension>(d)), size[d]);
    addFact(out, "parallel", sizes);
    if (const std::size_t all = size[static_cast<std::size_t>(ParallelDimension::Pipeline)]; all > ranks.size())
        addFact(out, "pipeline_ranks", std::to_string(all));
    addFact(out, "rank_places", placesText(places));
}

// Where the traces are, one path per line: the files, or their folders if there are many. For importing them again with
// other rules.
std::string sourcesText(const std::vector<std::string>& files)
{
    constexpr std::size_t mostFiles = 64;
    std::string text;
    std::set<std::string> seen;
    for (const std::string& file : files) {
        std::error_code failed;
        std::filesystem::path path = std::filesystem::absolute(file, failed);
        if (failed || file.empty()) continue;
        if (files.size() > mostFiles) path = path.parent_path();
        if (seen.insert(path.string()).second) text += (text.empty() ? "" : "\n") + path.string();
    }
    return text;
}

void describeRun(ImportedRun& out, Nanos origin)
{
    RunInfo& info = out.run.info;
    const Timeline& timeline = *out.run.timeline;
    info.provenance = Provenance::Imported;
    info.clock = timeline.clock();
    info.ranks = timeline.ranks();
    info.steps = timeline.steps();
    info.spanCount = static_cast<std::int64_t>(timeline.spans().size());
    if (out.run.schedule) {
        info.stages = out.run.schedule->stages;
        info.microbatches = out.run.schedule->microbatches;
    }
    info.scheduleName = out.recognised;
    if (origin > 1'000'000'000'000'000'000) info.createdUnixMs = origin / 1'000'000;
    addFact(out, "format", out.format);
    // several ranks may be in one
    const std::size_t files = std::set<std::string>(out.files.begin(), out.files.end()).size();
    addFact(out, "files",
            fmt::format("{}{}", std::filesystem::path(out.files.front()).filename().string(),
                        files > 1 ? fmt::format(" and {} more", files - 1) : ""));
    addFact(out, "sources", sourcesText(out.files));
    addFact(out, "labels", out.dialect);
    addFact(out, "clocks", out.clocks);
    addFact(out, "schedule", out.recognised);
    addFact(out, "events", std::to_string(out.events));
    addFact(out, "kernels_under_ops", out.kernels > 0 ? fmt::format("{} of {}", out.kernelsUnderOps, out.kernels) : "");
    addFact(out, "kernels_under_ranges",
            out.kernels > 0 ? fmt::format("{} of {}", out.kernelsUnderRanges, out.kernels) : "");
    addFact(out, "messages", std::to_string(out.messages));
    addFact(out, "unpaired_messages", std::to_string(out.unpaired));
    addFact(out, "collectives", std::to_string(out.collectives));
    addFact(out, "collectives_of_one_rank", std::to_string(out.collectivesAlone));
    addFact(out, collectivesLackingRanks, std::to_string(out.collectivesLacking));
    addFact(out, "damaged_events", std::to_string(out.damaged));
    std::string left;
    for (const auto& [what, count] : out.leftOut) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", count, what);
    addFact(out, "left_out", left);
    for (const std::string& note : out.notes) info.note += fmt::format("{}{}", info.note.empty() ? "" : "; ", note);
    Metric times{
        "step_time_ns", "ns",
        std::vector<double>(static_cast<std::size_t>(timeline.steps()), std::numeric_limits<double>::quiet_NaN())};
    std::map<int, std::pair<Nanos, Nanos>> bounds;
    for (const StepMark& mark : timeline.stepMarks()) {
        auto& [begin, end] = bounds.try_emplace(mark.step, mark.begin, mark.end).first->second;
        begin = std::min(begin, mark.begin);
        end = std::max(end, mark.end);
    }
    for (const auto& [step, bound] : bounds)
        times.values[static_cast<std::size_t>(step)] = static_cast<double>(bound.second - bound.first);
    if (out.ops > 0) out.run.metrics.push_back(std::move(times));
    if (auto costs = fitCosts(timeline)) out.run.costs = std::move(*costs);
}

// No span: what there is instead, and how to record more.
Error nothingIn(const ImportedRun& out)
{
    std::string left;
    for (const auto& [what, count] : out.leftOut) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", count, what);
    const FormatInfo* format = findFormat(out.format);
    std::string notes;
    for (const std::string& note : out.notes) notes += "; " + note;
    if (out.notes.empty()) notes.clear();
    return {ErrorCode::Unreadable,
            fmt::format("no kernels and no named ranges in it{}{}",
                        left.empty() ? fmt::format(": {} without a duration", counted(out.events, "event"))
                                     : fmt::format(", only {}", left),
                        notes),
            format != nullptr && !format->recordKernels.empty()
                ? std::string(format->recordKernels)
                : "record it with the device's activities, or with named ranges"};
}

// What a rank allocated in steps that others lack would count for the last one that all have.
void forgetMemoryAfterSteps(std::vector<ForeignRank>& ranks, const OpReading& reading)
{
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankOps& ops = reading.ranks[r];
        if (!ops.markedSteps || ops.steps.empty()) continue;
        std::erase_if(ranks[r].memory,
                      [&ops](const MemoryChangeSeen& seen) { return seen.time > ops.steps.back().end; });
    }
}

// The parts of some ranks; those of the job are left without them.
JobParts partsOf(std::vector<ForeignRank>& ranks, OpReading& reading, const MessagePairs& messages,
                 const std::vector<std::size_t>& of)
{
    JobParts parts;
    parts.ops.dialect = reading.dialect;
    parts.ops.steps = reading.steps;
    parts.ops.markedSteps = reading.markedSteps;
    std::map<std::uint32_t, std::uint32_t> place;
    for (const std::size_t r : of) {
        place.emplace(static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(place.size()));
        parts.ranks.push_back(std::move(ranks[r]));
        parts.ops.ranks.push_back(std::move(reading.ranks[r]));
    }
    const auto moved = [&place](MessageEnd& end) {
        const auto found = place.find(end.rank);
        if (found == place.end()) return false;
        end.rank = found->second;
        return true;
    };
    for (MessagePairs::Pair pair : messages.pairs)
        if (moved(pair.send) && moved(pair.receive)) parts.messages.pairs.push_back(pair);
    for (const auto& ends : messages.collectives) {
        std::vector<MessageEnd> kept;
        for (MessageEnd end : ends)
            if (moved(end)) kept.push_back(end);
        if (kept.size() > 1) parts.messages.collectives.push_back(std::move(kept));
    }
    parts.messages.unpaired = messages.unpaired;
    return parts;
}

} // namespace

std::string ImportedRun::damageNote() const
{
    return fmt::format("{} of {} events {}", damaged, events + damaged,
                       damaged == 1 ? "is damaged and was skipped" : "are damaged and were skipped");
}

// Whether the marked steps, where there are some, hold work or a range other than their own.
static bool anythingInSteps(const JobParts& parts)
{
    for (std::size_t r = 0; r < parts.ranks.size(); ++r) {
        const RankOps& ops = parts.ops.ranks[r];
        const ForeignRank& rank = parts.ranks[r];
        if (!ops.markedSteps || !ops.ops.empty()) return true;
        for (const DeviceSpan& work : rank.device)
            if (stepOf(ops, rank, work) != outsideSteps) return true;
        for (const ForeignSpan& range : rank.annotations)
            if (stepAt(ops, range.start) != outsideSteps && !rank.names[range.name].starts_with("ProfilerStep#"))
                return true;
    }
    return false;
}

Result<std::vector<ImportedRun>> assemble(std::vector<ForeignRank> ranks, const std::string& name,
                                          const ImportOptions& options, const Progress& progress)
{
    constexpr std::size_t mostRanks = 65'536; // of a run file
    if (ranks.empty()) return fail(ErrorCode::Unreadable, "no ranks to import");
    if (ranks.size() > mostRanks)
        return fail(ErrorCode::Unreadable,
                    fmt::format("{} has {} processes or files, each a rank, and a run at most {} ranks", name,
                                ranks.size(), mostRanks),
                    "import the files of one job, or fewer of them");
    const auto cancelled = [] { return fail(ErrorCode::Cancelled, "importing was cancelled"); };
    const auto rankCount = static_cast<std::int64_t>(ranks.size());
    progress.tell("pairing messages", 0, rankCount);
    ImportedRun job;
    for (ForeignRank& rank : ranks) tieLaunches(rank, progress.stop);
    if (progress.cancelled()) return cancelled();
    numberRanks(ranks, job.notes);
    const Nanos origin = toOneOrigin(ranks, job.notes);
    MessagePairs messages = pairMessages(ranks, progress.stop);
    if (progress.cancelled()) return cancelled();
    job.notes.insert(job.notes.end(), messages.notes.begin(), messages.notes.end());
    if (messages.unpaired > 0)
        job.notes.push_back(fmt::format("{} sends and receives lack their other side", messages.unpaired));
    if (!messages.absent.empty()) addFact(job, "absent_peers", fmt::format("{}", fmt::join(messages.absent, ", ")));
    job.collectivesAlone = messages.unpairedCollectives;
    job.collectivesLacking = messages.lackingCollectives;
    align(ranks, messages, job);
    STAGEWRIGHT_CHECK(timesFit(ranks, name));
    progress.tell("reading labels", 0, rankCount);
    OpReading reading = readOps(ranks, options.rules, options.stepsOfAllRanks);
    if (progress.cancelled()) return cancelled();
    if (options.stepsOfAllRanks) forgetMemoryAfterSteps(ranks, reading);
    job.notes.insert(job.notes.end(), reading.notes.begin(), reading.notes.end());
    if (reading.outside > 0)
        job.notes.push_back(fmt::format("{} ops outside complete steps were skipped", reading.outside));
    if (reading.nested > 0)
        job.notes.push_back(
            fmt::format("{} ranges named like ops lie within other ops and were skipped", reading.nested));
    if (reading.dialect) job.dialect = toText(*reading.dialect);

    if (options.suggestRules || !reading.dialect) {
        auto seen = std::make_shared<RangeNames>();
        seen->patterns = namePatterns(ranks);
        if (options.suggestRules)
            seen->draft =
                suggestRules(ranks, seen->patterns, !messages.pairs.empty() || messages.unpaired > 0, progress.stop);
        if (progress.cancelled()) return cancelled();
        job.rangeNames = std::move(seen);
    }
    const auto pipelines = pipelinesOf(ranks, reading);
    std::vector<ImportedRun> out;
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        ImportedRun one = job;
        one.run.info.name = pipelines.size() == 1 ? name : fmt::format("{} pipeline {}", name, p);
        JobParts parts = partsOf(ranks, reading, messages, pipelines[p]);
        if (!anythingInSteps(parts)) {
            for (RankOps& of : parts.ops.ranks) of = RankOps();
            one.notes.emplace_back("nothing is in a marked step: the trace is one step");
        }
        bool renumbered = false;
        for (std::size_t r = 0; r < parts.ranks.size(); ++r)
            renumbered = renumbered || parts.ranks[r].rank != static_cast<int>(r);
        if (renumbered) {
            std::string numbers;
            for (std::size_t r = 0; r < std::min<std::size_t>(parts.ranks.size(), 8); ++r)
                numbers += fmt::format("{}{}", r == 0 ? "" : ", ", parts.ranks[r].rank);
            one.notes.push_back(parts.ranks.size() == 1
                                    ? fmt::format("rank {} of the job is rank 0 here", numbers)
                                    : fmt::format("ranks {}{} of the job are ranks 0 to {} here", numbers,
                                                  parts.ranks.size() > 8 ? " …" : "", parts.ranks.size() - 1));
        }
        inferStages(parts.ranks, !parts.messages.pairs.empty() || parts.messages.unpaired > 0, parts.ops, one.notes);
        describeRanks(parts.ranks, one);
        describePlaces(parts.ranks, one);
        STAGEWRIGHT_TRY(one.run.timeline, buildTimeline(std::move(parts), one, progress));
        if (one.run.timeline->empty()) return tl::unexpected(nothingIn(one));
        if (one.launchedOutside > 0)
            one.notes.push_back(fmt::format("{} of {} kernels and copies are in no step: they were launched before, "
                                            "after or between the marked steps",
                                            one.launchedOutside, one.kernels));
        if (one.stepUnknown > 0)
            one.notes.push_back(fmt::format("{} of {} kernels and copies are in no step: the trace lacks their launch, "
                                            "and no step's range on the device holds them",
                                            one.stepUnknown, one.kernels));
        if (std::string graphs = graphSentence(*one.run.timeline, everyStep); !graphs.empty())
            one.notes.push_back(std::move(graphs));
        for (std::string& doubt : deviceDoubts(*one.run.timeline)) one.notes.push_back(std::move(doubt));
        if (!one.notRebuilt.empty() && one.ops > 0)
            one.notes.push_back(fmt::format("no schedule was rebuilt: {}", one.notRebuilt));
        progress.tell("fitting costs", static_cast<std::int64_t>(p), static_cast<std::int64_t>(pipelines.size()));
        if (progress.cancelled()) return cancelled();
        describeRun(one, origin);
        out.push_back(std::move(one));
    }
    return out;
}

} // namespace stagewright
