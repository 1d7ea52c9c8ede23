#include "traces/run/run_facts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

static std::string valueIn(const TextPairs& configuration, std::string_view key)
{
    for (const auto& [name, value] : configuration)
        if (name == key) return value;
    return {};
}

std::string configured(const Run& run, std::string_view key) { return valueIn(run.configuration, key); }

std::string partOfPipeline(const TextPairs& configuration, int ranks)
{
    const int all = wholeOf<int>(valueIn(configuration, "pipeline_ranks")).value_or(0);
    if (all > ranks)
        return fmt::format("only {} of the pipeline's {} ranks {} in the run", ranks, all, ranks == 1 ? "is" : "are");
    const std::string peers = valueIn(configuration, "absent_peers");
    return peers.empty() ? std::string()
           : peers.find(',') == std::string::npos
               ? fmt::format("rank {} of the job, a peer of ranks here, is not in the run", peers)
               : fmt::format("ranks {} of the job, peers of ranks here, are not in the run", peers);
}

namespace {

// "3073767 ns, 1000000000 bytes/s", "3073767 ns, no bandwidth limit" as recorded; nothing: something else.
std::optional<Link> recordedLink(const std::string& recorded)
{
    const auto [time, rate] = keyValueOf(recorded, ',');
    const auto latency = quantityOf(time);
    if (!latency || latency->unit != " ns") return std::nullopt;
    Link link;
    link.latency = static_cast<Nanos>(latency->value);
    if (!rate || *rate == " no bandwidth limit") return link;
    const auto bandwidth = quantityOf(rate->substr(rate->starts_with(' ') ? 1 : 0));
    if (!bandwidth || bandwidth->unit != " bytes/s") return std::nullopt;
    link.bytesPerSecond = bandwidth->value;
    return link;
}

std::string bandwidthText(double bytesPerSecond)
{
    return fmt::format("{}/s", formatBytes(std::llround(bytesPerSecond)));
}

// Anything else than a recorded link unchanged.
std::string readableLink(const std::string& recorded)
{
    const auto link = recordedLink(recorded);
    if (!link) return recorded;
    return formatDuration(link->latency, 1) +
           (link->bytesPerSecond > 0 ? ", " + bandwidthText(link->bytesPerSecond) : std::string());
}

} // namespace

bool linksUnknown(const Run& run)
{
    return run.info.clock == "wall" && run.costs && run.costs->source == CostSource::Fitted &&
           run.costs->links.all == Link{} && run.costs->links.overrides.empty();
}

std::string linkLatencyText(const Run& run)
{
    // costs have a fitted one
    if (const std::string asked = configured(run, "link"); !asked.empty()) return readableLink(asked);
    if (!run.costs || linksUnknown(run)) return {};
    const Links& links = run.costs->links;
    Nanos least = links.all.latency;
    Nanos most = links.all.latency;
    for (const auto& [ranks, link] : links.overrides) {
        least = std::min(least, link.latency);
        most = std::max(most, link.latency);
    }
    std::string text = most == 0 ? "none" : formatDuration(least, run.costs->timeUnit);
    if (most != least)
        text = fmt::format("{} to {}", formatDuration(least, run.costs->timeUnit),
                           formatDuration(most, run.costs->timeUnit));
    if (links.all.bytesPerSecond > 0) text += ", " + bandwidthText(links.all.bytesPerSecond);
    return text;
}

std::optional<Link> askedLink(const Run& run) { return recordedLink(configured(run, "link")); }

std::string emulatedLinksText(const Run& run)
{
    std::string text;
    for (const auto& [key, value] : run.configuration) { // "link_0_1"
        const std::size_t between = key.rfind('_');
        if (!key.starts_with("link_") || between <= 5 || between == std::string::npos) continue;
        const std::string from = key.substr(5, between - 5), to = key.substr(between + 1);
        if (from.find_first_not_of("0123456789") != std::string::npos ||
            to.find_first_not_of("0123456789") != std::string::npos)
            continue;
        text += fmt::format("{}{}→{} {}", text.empty() ? "" : ", ", from, to, readableLink(value));
    }
    return text;
}

std::optional<Bytes> memoryCapOf(const Run& run) { return wholeOf<Bytes>(configured(run, "memory_limit_bytes")); }

std::vector<Bytes> rankCapsOf(const Run& run)
{
    const std::string text = configured(run, "memory_limit_bytes");
    std::vector<Bytes> caps;
    for (const std::string_view item : split(text, ",")) {
        const auto cap = wholeOf<Bytes>(item);
        if (!cap) return {};
        caps.push_back(*cap);
    }
    return caps.size() > 1 ? caps : std::vector<Bytes>();
}

std::string memoryLimitText(std::span<const Bytes> byRank)
{
    const bool same = std::all_of(byRank.begin(), byRank.end(), [&](Bytes limit) { return limit == byRank.front(); });
    return fmt::format("{}", fmt::join(same ? byRank.first(std::min<std::size_t>(1, byRank.size())) : byRank, ","));
}

std::optional<ProfilerTimes> profilerTimesOf(const Run& run)
{
    const auto without = wholeOf<Nanos>(configured(run, "step_time_without_profiler_ns"));
    const auto with = wholeOf<Nanos>(configured(run, "step_time_with_profiler_ns"));
    const auto steps = wholeOf<int>(configured(run, "steps_without_profiler"));
    if (!without || !with || !steps || *without <= 0 || *with <= 0 || *steps <= 0) return std::nullopt;
    return ProfilerTimes{*without, *with, *steps,
                         wholeOf<Nanos>(configured(run, "profiler_beside_step_ns")).value_or(0),
                         wholeOf<Nanos>(configured(run, "trace_writing_ns")).value_or(0)};
}

TextPairs profilerFacts(const ProfilerTimes& times)
{
    TextPairs facts{{"steps_without_profiler", std::to_string(times.steps)},
                    {"step_time_without_profiler_ns", std::to_string(times.without)},
                    {"step_time_with_profiler_ns", std::to_string(times.with)}};
    if (times.profiling > 0) {
        facts.emplace_back("profiler_beside_step_ns", std::to_string(times.profiling));
        facts.emplace_back("trace_writing_ns", std::to_string(times.writing));
    }
    return facts;
}

std::optional<double> contentionOf(const Run& run)
{
    const Metric* metric = run.metric("contention");
    const auto first = static_cast<std::size_t>(std::max(0, run.info.warmupSteps));
    if (metric == nullptr || metric->values.size() <= first) return std::nullopt;
    return lowerMedian(
        std::vector<double>(metric->values.begin() + static_cast<std::ptrdiff_t>(first), metric->values.end()));
}

std::string distanceText(double distance)
{
    const double percent = 100 * std::abs(distance);
    const int decimals = percent > 0 && std::isfinite(percent)
                             ? std::clamp(2 - static_cast<int>(std::floor(std::log10(percent))), 0, 12)
                             : 0;
    return formatPercent(distance, decimals);
}

namespace {

std::string gatherOf(const Schedule& schedule)
{
    bool any = false;
    for (const auto& ops : schedule.order) {
        bool stepped = false;
        for (const Op& op : ops) {
            stepped = stepped || isOptimizer(op.kind);
            if (!isGather(op.kind) || stepped) continue; // behind OPT the stepped weights come back
            if (op.microbatch >= 0) return gatherText({GatherRule::Microbatch, 0, ReduceRule::Late});
            any = true;
        }
    }
    return any ? gatherText({}) : "none";
}

std::string reduceOf(const Schedule& schedule)
{
    bool any = false, early = false;
    for (const auto& ops : schedule.order) {
        bool reduced = false;
        for (const Op& op : ops) {
            if (isReduction(op.kind) && op.microbatch >= 0) return std::string(toText(ReduceRule::Microbatch));
            reduced = reduced || isReduction(op.kind);
            early = early || (reduced && isCompute(op.kind));
        }
        any = any || reduced;
    }
    if (any && stepsOnArrival(schedule)) return std::string(toText(ReduceRule::Stepped));
    return any ? std::string(toText(early ? ReduceRule::Overlapped : ReduceRule::Late)) : "none";
}

// Replicas and what they share of the model's state: as asked for, else as the lists say.
void addSharing(const Run& run, std::vector<RunFact>& facts)
{
    const bool imported = run.info.provenance == Provenance::Imported;
    const auto add = [&](const char* key, const char* title, const auto& otherwise) {
        std::string value = configured(run, key);
        if (value.empty() && run.schedule) value = otherwise(*run.schedule);
        facts.push_back({key, title, value});
    };
    const auto none = [imported](const Schedule&) { return std::string(imported ? "" : "none"); };
    add("replicas", "replicas", [&](const Schedule& schedule) {
        return std::to_string(std::max(schedule.replicas, run.costs ? run.costs->replicas : 1));
    });
    add("shard", "sharded", none);
    add("gather", "gathers", gatherOf);
    add("reduce", "reductions", reduceOf);
    std::string bucket = configured(run, "bucket_bytes");
    if (const auto bytes = wholeOf<Bytes>(bucket)) bucket = formatBytes(*bytes);
    facts.push_back({"bucket_bytes", "bucket of a reduction", bucket.empty() && !imported ? "none" : bucket});
    add("cut", "cut of a partial backward", none);
    add("collectives", "collectives", [&](const Schedule& schedule) {
        const bool any = gatherOf(schedule) != "none" || reduceOf(schedule) != "none";
        return std::string(imported                                      ? ""
                           : !any                                        ? "none"
                           : run.info.provenance == Provenance::Measured ? "point to point"
                                                                         : "ring");
    });
    add("speed", "speeds", none);
}

// "8 of seed 1": what a step of a training is of; "" where it is not known.
std::string samplesText(const Run& run)
{
    const auto size = wholesOf(configured(run, "microbatch_size"));
    const std::string seed = configured(run, "seed");
    if (!size || size->size() != 1 || seed.empty() || run.info.microbatches <= 0) return {};
    std::int64_t samples = std::int64_t{size->front()} * run.info.microbatches;
    const auto ofReplicas = wholesOf(configured(run, "replica_samples"));
    if (ofReplicas && run.schedule && static_cast<int>(ofReplicas->size()) == run.schedule->replicas) {
        samples = 0;
        for (int j = 0; j < run.schedule->microbatches; ++j)
            samples +=
                (*ofReplicas)[static_cast<std::size_t>(run.schedule->replicaOf(run.schedule->placement.rankOf(0, j)))];
    }
    const bool bySample = configured(run, "sampling") == "by sample"; // else each microbatch has samples of its own
    return fmt::format("{} of seed {}{}", samples, seed,
                       bySample ? "" : fmt::format(", drawn {} at a time", size->front()));
}

} // namespace

std::vector<double> replicaSizes(const Run& run)
{
    if (run.costs && !run.costs->sizes.empty()) return run.costs->sizes;
    const auto samples = wholesOf(configured(run, "replica_samples"));
    return samples ? std::vector<double>(samples->begin(), samples->end()) : std::vector<double>();
}

std::string trainedBy(const Run& run)
{
    const auto fact = [&run](std::string_view key) {
        for (const auto& [name, value] : run.environment)
            if (name == key) return value;
        return std::string();
    };
    std::vector<std::string> parts;
    if (const std::string engine = fact("engine"); engine.find("PyTorch") != std::string::npos) parts.push_back(engine);
    std::vector<std::string> hosts;
    for (const std::string_view host : split(fact("hosts"), ","))
        if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.emplace_back(host);
    if (const int processes = wholeOf<int>(fact("processes")).value_or(0); processes > 0) {
        parts.push_back("ranks in " + counted(processes, "process"));
        if (hosts.size() > 1) parts.back() += fmt::format(" on {}", fmt::join(hosts, ", "));
        double band = numberOf(fact("clock_band_ns")).value_or(0);
        if (const Metric* bands = run.metric("clock_band_ns"))
            for (const double value : bands->values) band = std::max(band, value);
        if (band > 0) parts.push_back("clocks agree within " + formatDuration(static_cast<Nanos>(band)));
    }
    if (const std::string host = fact("host"); !host.empty()) parts.push_back("on " + host);
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<RunFact> factsOf(const Run& run)
{
    std::vector<RunFact> facts;
    const auto number = [](int value) { return value > 0 ? std::to_string(value) : std::string(); };
    const bool shares = run.timeline && run.timeline->timeUnit() != 1;
    facts.push_back({"time_unit", "unit of time", !run.timeline ? "" : shares ? "units" : "nanoseconds"});
    facts.push_back({"ranks", "ranks", number(run.info.ranks)});
    facts.push_back({"stages", "stages", number(run.info.stages)});
    facts.push_back({"microbatches", "microbatches", number(run.info.microbatches)});
    const auto add = [&](const char* key, const char* title) { facts.push_back({key, title, configured(run, key)}); };
    add("model", "model");
    add("microbatch_size", "microbatch size");
    facts.push_back({"clock", "clock", run.info.clock});
    facts.push_back({"link_latency", "link latency", linkLatencyText(run)});
    const auto environment = [&](const char* key, const char* otherwise) {
        for (const auto& [name, value] : run.environment)
            if (name == key) return value;
        return std::string(run.info.provenance == Provenance::Measured ? otherwise : "");
    };
    facts.push_back({"engine", "engine", environment("engine", "own")});
    facts.push_back({"host", "host", environment("host", "local")});
    add("backend", "backend");
    add("transport", "transport");
    const bool ours = run.info.provenance != Provenance::Imported;
    const auto orElse = [&](const char* key, const char* title, const char* otherwise) {
        std::string value = configured(run, key);
        if (value.empty() && ours) value = otherwise;
        facts.push_back({key, title, value});
    };
    orElse("sends", "sends", "buffered");
    add("receives", "receives");
    add("lowering", "lowering");
    orElse("channels", "channels", "no limit");
    add("data", "data");
    facts.push_back({"samples", "samples of a step", samplesText(run)});
    add("stage_layers", "layers by stage");
    addSharing(run, facts);
    add("cluster", "cluster");
    orElse("perturb", "disturbance", "none");
    orElse("memory_limit", "memory cap", "none");
    orElse("recomputed_layers", "recomputed layers", "none");
    add("optimizer", "optimizer");
    return facts;
}

} // namespace stagewright
