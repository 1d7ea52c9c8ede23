#include "schedules/planner/tier_problems.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "schedules/tiers/chunks.h"
#include "schedules/tiers/fill_gaps.h"
#include "schedules/tiers/optimizer_buckets.h"
#include "schedules/tiers/owners.h"
#include "schedules/tiers/residency.h"

namespace stagewright {

namespace {

using TierJson = nlohmann::ordered_json;

Result<void> readWhole(const JsonInput& in)
{
    if (in.problem().empty()) return {};
    return fail(ErrorCode::Unreadable, "input: " + in.problem(), "see docs/planners.md");
}

TierJson jsonOfResidency(const Residency& found)
{
    TierJson log = TierJson::array();
    for (const auto& one : found.log)
        log.push_back({{"moment", one.moment}, {"evict", one.evicted}, {"load", one.loaded}});
    return {{"loads", found.loads},
            {"evictions", found.evictions},
            {"dirty_writebacks", found.writeBacks},
            {"copies_move", found.moved()},
            {"copies_dirty", found.movedIfChanged()},
            {"log", std::move(log)},
            {"resident_end", found.atEnd},
            {"dirty_end", found.changedAtEnd}};
}

// null where a moment needs more than the cap.
TierJson replays(const AccessTrace& trace, std::span<const int> cap, bool cyclic)
{
    TierJson out = TierJson::object();
    for (const Eviction eviction : evictions) {
        const auto found = trace.replay(cap, eviction, cyclic, true);
        if (!found) return nullptr;
        out[std::string(toText(eviction))] = jsonOfResidency(*found);
    }
    return out;
}

Result<TierJson> byCap(const AccessTrace& trace, JsonInput& in, bool cyclic, const Progress& progress)
{
    std::vector<std::vector<int>> caps;
    if (!in.has("caps"))
        for (int cap = std::max(trace.widest(), 1); cap <= std::min(trace.pieces(), 1000); ++cap) caps.push_back({cap});
    else
        for (const TierJson& one : in.list("caps"))
            caps.push_back(one.is_array() ? in.all<int>(one, "caps") : std::vector<int>{in.read<int>(one, "caps")});
    for (const auto& cap : caps)
        if (cap.size() != 1 && static_cast<int>(cap.size()) != trace.moments())
            in.wrong(fmt::format("caps: {} moments of {}", cap.size(), trace.moments()));
    STAGEWRIGHT_CHECK(readWhole(in));
    TierJson out = TierJson::array();
    bool fits = caps.empty();
    for (const auto& cap : caps) {
        if (progress.cancelled()) return fail(ErrorCode::Cancelled, "cancelled");
        progress.tell("caps", static_cast<std::int64_t>(out.size()), static_cast<std::int64_t>(caps.size()));
        TierJson row = {{"cap", cap.size() == 1 ? TierJson(cap[0]) : TierJson(cap)}};
        TierJson found = replays(trace, cap, cyclic);
        fits = fits || !found.is_null();
        row.update(found.is_null() ? TierJson{{"belady", nullptr}, {"lru", nullptr}, {"fifo", nullptr}} : found);
        out.push_back(std::move(row));
    }
    return TierJson{{"by_cap", fits ? std::move(out) : TierJson(nullptr)}, {"pieces", trace.pieces()}};
}

Result<TierJson> chunkStep(JsonInput& in)
{
    const int layers = in.get<int>("layers");
    const Bytes cap = in.get<Bytes>("cap"), chunk = in.get<Bytes>("chunk"), reserve = in.get<Bytes>("reserve");
    const auto other = in.all<Bytes>("not_chunks");
    if (layers < 1 || layers > 100'000) in.wrong("layers are 1 to 100000");
    if (chunk < 1) in.wrong("chunk is at least 1 byte");
    if (in.problem().empty() && other.size() != 2 * static_cast<std::size_t>(layers))
        in.wrong(fmt::format("not_chunks has {} moments, {} layers have {}", other.size(), layers, 2 * layers));
    for (const Bytes one : other)
        if (one < 0 || one > Bytes{1} << 60) in.wrong("not_chunks are 0 to 2^60 bytes");
    if (cap < 0 || reserve < 0 || cap > Bytes{1} << 60 || reserve > Bytes{1} << 60)
        in.wrong("cap and reserve are 0 to 2^60 bytes");
    STAGEWRIGHT_CHECK(readWhole(in));
    STAGEWRIGHT_TRY(const auto trace, AccessTrace::of(sweepOfLayers(layers)));
    const auto budgets = chunkBudgets(cap, other, reserve, chunk);
    const LowestCaps lowest = lowestCaps(trace, other, reserve, chunk);
    TierJson result = replays(trace, budgets, true);
    if (!result.is_null())
        for (auto& [name, one] : result.items()) {
            const auto atEnd = static_cast<std::int64_t>(one["resident_end"].size());
            one["moved_at_optimizer"] = atEnd;
            one["bytes_in"] = one["loads"].get<std::int64_t>() * chunk;
            one["bytes_out"] = (one["evictions"].get<std::int64_t>() + atEnd) * chunk;
        }
    return TierJson{{"result", std::move(result)},
                    {"budget_chunks", budgets},
                    {"lowest_cap_in_chunks", {{"runs_from", lowest.runs}, {"no_reloads_from", lowest.noReloads}}}};
}

Result<std::vector<char>> passesOf(JsonInput& in)
{
    std::vector<char> passes;
    for (const TierJson& one : in.list("passes")) {
        const auto text = in.read<std::string>(one, "passes");
        if (text != "F" && text != "B") in.wrong("passes are \"F\" and \"B\"");
        passes.push_back(text.empty() ? 'F' : text[0]);
    }
    return passes;
}

} // namespace

Result<TierJson> solveResidency(JsonInput& in, const Progress& progress)
{
    Accesses accesses;
    accesses.use = in.table<int>("use");
    if (in.has("write")) accesses.write = in.table<int>("write");
    const bool cyclic = in.get<bool>("cyclic", false);
    STAGEWRIGHT_CHECK(readWhole(in));
    STAGEWRIGHT_TRY(const auto trace, AccessTrace::of(accesses));
    return byCap(trace, in, cyclic, progress);
}

Result<TierJson> solveChunks(JsonInput& in, const Progress& progress)
{
    const auto kind = in.get<std::string>("kind");
    STAGEWRIGHT_CHECK(readWhole(in));
    if (kind == "pack") {
        const auto sizes = in.all<std::int64_t>("sizes");
        const auto chunk = in.get<std::int64_t>("chunk");
        for (const std::int64_t size : sizes)
            if (size < 0) in.wrong("sizes are at least 0");
        STAGEWRIGHT_CHECK(readWhole(in));
        const auto chunks = packIntoChunks(sizes, chunk);
        if (!chunks) return TierJson{{"result", nullptr}};
        const auto count = static_cast<std::int64_t>(chunks->size());
        const std::int64_t used = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
        return TierJson{
            {"result", *chunks}, {"count", count}, {"elements", count * chunk}, {"waste", count * chunk - used}};
    }
    if (kind == "step") return chunkStep(in);
    if (kind == "passes") {
        STAGEWRIGHT_TRY(const auto passes, passesOf(in));
        const int layers = in.get<int>("layers");
        if (layers < 1 || layers > 10'000 || static_cast<std::int64_t>(passes.size()) * layers > 10'000'000)
            in.wrong("layers are 1 to 10000, and layers × passes at most 10000000");
        STAGEWRIGHT_CHECK(readWhole(in));
        STAGEWRIGHT_TRY(const auto trace, AccessTrace::of(accessesOfPasses(passes, layers)));
        return byCap(trace, in, in.get<bool>("cyclic", false), progress);
    }
    if (kind == "optimizer") {
        const Bytes cap = in.get<Bytes>("cap"), peak = in.get<Bytes>("peak_not_chunks"),
                    fp16 = in.get<Bytes>("fp16_bytes");
        const auto elements = in.get<std::int64_t>("chunk_elements");
        STAGEWRIGHT_CHECK(readWhole(in));
        return TierJson{{"result", optimizerChunksOnDevice(cap, peak, fp16, elements)}};
    }
    return fail(ErrorCode::Unreadable, fmt::format("input: kind is '{}'", kind.substr(0, 60)),
                "kinds are pack, step, passes, optimizer");
}

Result<TierJson> solveBuckets(JsonInput& in, const Progress&)
{
    const auto kind = in.get<std::string>("kind");
    BucketTimes times;
    times.parameters = in.get<std::int64_t>("parameters");
    times.bucket = in.get<std::int64_t>("bucket");
    times.buffers = in.get<int>("buffers", 1);
    constexpr std::int64_t most = 1'000'000'000'000;
    if (times.parameters < 1 || times.parameters > most || times.bucket < 1 || times.bucket > most ||
        times.buffers < 1 || times.buffers > 1000)
        in.wrong("parameters and bucket are 1 to 10^12, buffers 1 to 1000");
    if (kind == "memory") {
        const auto name = in.get<std::string>("layout", "engine fp32");
        STAGEWRIGHT_CHECK(readWhole(in));
        for (const StateLayout& layout : stateLayouts())
            if (layout.name == name) {
                const BucketMemory found = bucketMemory(times.parameters, times.bucket, times.buffers, layout);
                return TierJson{{"buckets", found.buckets}, {"device", found.device},
                                {"host", found.host},       {"in", found.in},
                                {"out", found.out},         {"device_without", found.deviceWithout}};
            }
        return fail(ErrorCode::Unreadable, fmt::format("input: layout is '{}'", name.substr(0, 60)),
                    "layouts are axonn fp16, engine fp32, engine bf16");
    }
    if (kind != "time")
        return fail(ErrorCode::Unreadable, fmt::format("input: kind is '{}'", kind.substr(0, 60)),
                    "kinds are memory and time");
    times.in = in.get<Nanos>("in_per_element");
    times.step = in.get<Nanos>("step_per_element");
    times.out = in.get<Nanos>("out_per_element");
    times.latency = in.get<Nanos>("latency", 0);
    times.fullDuplex = in.get<bool>("full_duplex", false);
    for (const Nanos one : {times.in, times.step, times.out, times.latency})
        if (one < 0 || one > 1'000'000) in.wrong("times are 0 to 1000000");
    std::vector<Nanos> ready;
    if (in.has("all_reduce")) {
        const TierJson none = TierJson::object();
        JsonInput reduce(in.object("all_reduce", none));
        const int buckets = reduce.get<int>("buckets", 1);
        const Nanos latency = reduce.get<Nanos>("latency"), ofElement = reduce.get<Nanos>("per_element");
        if (buckets < 1 || latency < 0 || latency > most || ofElement < 0 || ofElement > 1'000'000)
            reduce.wrong("buckets are at least 1, times at least 0");
        if (!reduce.problem().empty()) in.wrong("all_reduce: " + reduce.problem());
        STAGEWRIGHT_CHECK(readWhole(in));
        ready = reducedBy(times, buckets, latency, ofElement);
    }
    STAGEWRIGHT_CHECK(readWhole(in));
    STAGEWRIGHT_TRY(const auto rows, timeBuckets(times, ready));
    TierJson out = TierJson::array();
    for (const BucketRow& row : rows)
        out.push_back({{"in", {row.in.first, row.in.second}},
                       {"step", {row.step.first, row.step.second}},
                       {"out", {row.out.first, row.out.second}}});
    return TierJson{{"time", rows.back().out.second}, {"rows", std::move(out)}};
}

Result<TierJson> solveOwners(JsonInput& in, const Progress&)
{
    const int members = in.get<int>("members");
    if (members < 1 || members > 100'000) in.wrong("members are 1 to 100000");
    std::vector<std::int64_t> cost;
    TierJson volumes;
    if (in.has("layers")) {
        std::vector<std::pair<std::int64_t, std::int64_t>> layers;
        for (const auto& row : in.table<std::int64_t>("layers")) {
            if (row.size() != 2 || row[0] < 1 || row[1] < 1 || row[0] > 1'000'000 || row[1] > 1'000'000) {
                in.wrong("a layer is [inputs, outputs], each 1 to 1000000");
                break;
            }
            layers.emplace_back(row[0], row[1]);
            cost.push_back(row[0] * row[0] * row[0] + row[1] * row[1] * row[1]);
        }
        const FactorVolumes found = factorVolumes(layers);
        volumes = {{"dkfac_factor_elements", found.packed},
                   {"dpkfac_broadcast_elements", found.gradients},
                   {"factor_elements_all", found.whole}};
    } else {
        cost = in.all<std::int64_t>("cost");
        for (const std::int64_t one : cost)
            if (one < 0 || one > 1'000'000'000'000'000) in.wrong("costs are 0 to 10^15");
    }
    if (in.problem().empty() && (cost.empty() || cost.size() > 1000)) in.wrong("there are 1 to 1000 layers");
    STAGEWRIGHT_CHECK(readWhole(in));
    const auto json = [](const Owners& owners) {
        return TierJson{{"owner", owners.owner}, {"makespan", owners.makespan}};
    };
    const auto optimum = ownersOptimum(cost, members);
    TierJson out = {{"round_robin", json(ownersRoundRobin(cost, members))},
                    {"in_order", json(ownersInOrder(cost, members))},
                    {"longest_first", json(ownersLongestFirst(cost, members))},
                    {"contiguous_optimum", contiguousOwnersOptimum(cost, members)},
                    {"lower_bound", ownersBound(cost, members)},
                    {"optimum", optimum ? TierJson(*optimum) : TierJson(nullptr)},
                    {"proven", optimum.has_value()}};
    if (!volumes.is_null()) out["volumes"] = std::move(volumes);
    return out;
}

Result<TierJson> solveFilling(JsonInput& in, const Progress&)
{
    std::vector<BusyOp> busy;
    for (const TierJson& one : in.list("busy")) {
        if (!one.is_array() || one.size() != 3) {
            in.wrong("an op is [start, end, \"F\", \"B\" or another]");
            break;
        }
        const auto kind = in.read<std::string>(one[2], "busy");
        busy.push_back({in.read<Nanos>(one[0], "busy"), in.read<Nanos>(one[1], "busy"),
                        kind == "F"   ? BusyOp::Kind::Forward
                        : kind == "B" ? BusyOp::Kind::Backward
                                      : BusyOp::Kind::Other});
    }
    const Nanos step = in.get<Nanos>("step");
    if (step < 1 || step > 1'000'000'000'000'000) in.wrong("step is 1 to 10^15");
    std::vector<FillerWork> works;
    for (const TierJson& one : in.list("work")) {
        if (!one.is_object()) {
            in.wrong("a work is not an object");
            break;
        }
        JsonInput row(one);
        FillerWork work;
        work.name = row.get<std::string>("name");
        work.items = row.get<int>("items", 1);
        work.duration = row.get<Nanos>("dur");
        if (work.duration > 1'000'000'000'000'000) row.wrong("dur is at most 10^15");
        const auto kind = row.get<std::string>("kind");
        if (kind == "after") {
            work.after = FillerWork::After::Works;
            for (const auto& need : row.all<std::string>("needs")) {
                const auto found =
                    std::find_if(works.begin(), works.end(), [&](const FillerWork& w) { return w.name == need; });
                if (found == works.end())
                    row.wrong(fmt::format("needs '{}', which is no work before it", need.substr(0, 60)));
                else
                    work.needs.push_back(static_cast<int>(found - works.begin()));
            }
        } else if (kind == "A" || kind == "G") {
            work.after = kind == "A" ? FillerWork::After::Forwards : FillerWork::After::Backwards;
        } else {
            row.wrong("kind is A (behind forwards), G (behind backwards) or after");
        }
        if (!row.problem().empty()) in.wrong(fmt::format("work {}: {}", works.size() + 1, row.problem()));
        works.push_back(std::move(work));
    }
    const auto rule = in.get<std::string>("rule", "strict");
    if (rule != "strict" && rule != "cyclic") in.wrong("rule is strict or cyclic");
    STAGEWRIGHT_CHECK(readWhole(in));
    STAGEWRIGHT_TRY(const auto filled, fillGaps(busy, step, works, rule == "cyclic"));
    Nanos before = 0, added = 0;
    for (const BusyOp& op : busy) before += op.end - op.start;
    TierJson placed = TierJson::array(), unplaced = TierJson::array(), idle = TierJson::array();
    for (const PlacedPiece& piece : filled.placed) {
        added += piece.end - piece.start;
        placed.push_back({{"step", piece.step},
                          {"name", works[static_cast<std::size_t>(piece.work)].name},
                          {"item", piece.item},
                          {"start", piece.start},
                          {"end", piece.end}});
    }
    for (const auto& [work, item] : filled.unplaced)
        unplaced.push_back({{"name", works[static_cast<std::size_t>(work)].name}, {"item", item}});
    constexpr const char* whys[] = {"nothing_left", "too_short", "input_missing"};
    for (const IdleRest& rest : filled.idle)
        idle.push_back(
            {{"step", rest.step},
             {"start", rest.start},
             {"end", rest.end},
             {"why", whys[static_cast<std::size_t>(rest.why)]},
             {"next", rest.work < 0 ? TierJson(nullptr) : TierJson(works[static_cast<std::size_t>(rest.work)].name)},
             {"missing", rest.missing}});
    return TierJson{{"steps", filled.steps},           {"placed", std::move(placed)},
                    {"unplaced", std::move(unplaced)}, {"lower_bound_steps", filled.leastSteps},
                    {"busy_before", before},           {"busy_after", before * filled.steps + added},
                    {"window", step * filled.steps},   {"idle", std::move(idle)}};
}

} // namespace stagewright
