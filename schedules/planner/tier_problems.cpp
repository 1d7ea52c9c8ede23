#include "schedules/planner/tier_problems.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/planner/tier_pictures.h"
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

// All caps that are asked for, and a picture of the one in `cap`, else of the middle one.
Result<SolvedProblem> byCap(const AccessTrace& trace, JsonInput& in, bool cyclic, const Progress& progress)
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
    const int cap =
        in.get<int>("cap", caps.empty() || caps[caps.size() / 2].empty() ? 1 : caps[caps.size() / 2].front());
    STAGEWRIGHT_CHECK(readWhole(in));
    TierJson out = TierJson::array();
    LoadsByCap loads;
    bool fits = caps.empty();
    for (const auto& one : caps) {
        if (progress.cancelled()) return fail(ErrorCode::Cancelled, "cancelled");
        progress.tell("caps", static_cast<std::int64_t>(out.size()), static_cast<std::int64_t>(caps.size()));
        TierJson row = {{"cap", one.size() == 1 ? TierJson(one[0]) : TierJson(one)}};
        TierJson found = replays(trace, one, cyclic);
        fits = fits || !found.is_null();
        if (one.size() == 1) {
            loads.caps.push_back(one[0]);
            for (std::size_t policy = 0; policy < std::size(evictions); ++policy)
                loads.loads[policy].push_back(
                    found.is_null() ? -1 : found[std::string(toText(evictions[policy]))]["loads"].get<std::int64_t>());
        }
        row.update(found.is_null() ? TierJson{{"belady", nullptr}, {"lru", nullptr}, {"fifo", nullptr}} : found);
        out.push_back(std::move(row));
    }
    const bool byMoment = !in.has("cap") && !caps.empty() && caps[caps.size() / 2].size() > 1;
    const std::vector<int> shown = byMoment ? caps[caps.size() / 2] : std::vector<int>{cap};
    return SolvedProblem{{{"by_cap", fits ? std::move(out) : TierJson(nullptr)}, {"pieces", trace.pieces()}},
                         residencyPicture(trace, shown, cyclic, loads, byMoment ? 0 : cap)};
}

// From the cap with which a step runs to the one from which nothing is loaded twice.
LoadsByCap loadsByBytes(const AccessTrace& trace, std::span<const Bytes> other, Bytes reserve, Bytes chunk,
                        const LowestCaps& lowest)
{
    LoadsByCap out;
    const std::int64_t stride = std::max<std::int64_t>(1, (lowest.noReloads - lowest.runs) / 200);
    for (std::int64_t chunks = lowest.runs; chunks <= lowest.noReloads + 1; chunks += stride) {
        const auto budgets = chunkBudgets(chunks * chunk, other, reserve, chunk);
        out.caps.push_back(static_cast<int>(std::min<std::int64_t>(chunks, 1'000'000'000)));
        for (std::size_t policy = 0; policy < std::size(evictions); ++policy) {
            const auto found = trace.replay(budgets, evictions[policy], true);
            out.loads[policy].push_back(found ? found->loads : -1);
        }
    }
    return out;
}

Result<SolvedProblem> chunkStep(JsonInput& in)
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
    PlannerPicture picture = residencyPicture(trace, budgets, true, loadsByBytes(trace, other, reserve, chunk, lowest),
                                              static_cast<int>(std::min<Bytes>(cap / chunk, 1'000'000'000)));
    picture.sentence += fmt::format(" It runs from a cap of {}, and from {} on nothing is loaded twice.",
                                    counted(lowest.runs, "chunk"), lowest.noReloads);
    return SolvedProblem{
        {{"result", std::move(result)},
         {"budget_chunks", budgets},
         {"lowest_cap_in_chunks", {{"runs_from", lowest.runs}, {"no_reloads_from", lowest.noReloads}}}},
        std::move(picture)};
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

Result<SolvedProblem> solveResidency(JsonInput& in, const Progress& progress)
{
    Accesses accesses;
    accesses.use = in.table<int>("use");
    if (in.has("write")) accesses.write = in.table<int>("write");
    const bool cyclic = in.get<bool>("cyclic", false);
    STAGEWRIGHT_CHECK(readWhole(in));
    STAGEWRIGHT_TRY(const auto trace, AccessTrace::of(accesses));
    return byCap(trace, in, cyclic, progress);
}

Result<SolvedProblem> solveChunks(JsonInput& in, const Progress& progress)
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
        PlannerPicture picture = packPicture(sizes, chunk, chunks);
        if (!chunks) return SolvedProblem{{{"result", nullptr}}, std::move(picture)};
        const auto count = static_cast<std::int64_t>(chunks->size());
        const std::int64_t used = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
        return SolvedProblem{
            {{"result", *chunks}, {"count", count}, {"elements", count * chunk}, {"waste", count * chunk - used}},
            std::move(picture)};
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
        const auto fit = optimizerChunksOnDevice(cap, peak, fp16, elements);
        return SolvedProblem{{{"result", fit}}, deviceChunksPicture(cap, peak, fp16, fit * 12 * elements, fit)};
    }
    return fail(ErrorCode::Unreadable, fmt::format("input: kind is '{}'", kind.substr(0, 60)),
                "kinds are pack, step, passes, optimizer");
}

Result<SolvedProblem> solveBuckets(JsonInput& in, const Progress&)
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
                return SolvedProblem{{{"buckets", found.buckets},
                                      {"device", found.device},
                                      {"host", found.host},
                                      {"in", found.in},
                                      {"out", found.out},
                                      {"device_without", found.deviceWithout}},
                                     bucketMemoryPicture(found)};
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
    return SolvedProblem{{{"time", rows.back().out.second}, {"rows", std::move(out)}}, bucketPicture(rows)};
}

Result<SolvedProblem> solveOwners(JsonInput& in, const Progress&)
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
    return SolvedProblem{std::move(out), ownersPicture(cost, members)};
}

Result<SolvedProblem> solveFilling(JsonInput& in, const Progress&)
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
                    row.wrong(fmt::format("needs '{}', but no work before it has that name", need.substr(0, 60)));
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
    return SolvedProblem{{{"steps", filled.steps},
                          {"placed", std::move(placed)},
                          {"unplaced", std::move(unplaced)},
                          {"lower_bound_steps", filled.leastSteps},
                          {"busy_before", before},
                          {"busy_after", before * filled.steps + added},
                          {"window", step * filled.steps},
                          {"idle", std::move(idle)}},
                         fillPicture(busy, step, works, filled)};
}

TierJson tierExample(std::string_view program)
{
    if (program == "residency") { // rank 0 of 1F1B on four ranks: weights and gradients of four layers
        TierJson use = TierJson::array(), write = TierJson::array();
        for (const char pass : std::string("FFFFBFBFBFBFBBBB"))
            for (int i = 0; i < 4; ++i) {
                const bool forward = pass == 'F';
                use.push_back(forward ? TierJson::array({i}) : TierJson::array({3 - i, 7 - i}));
                write.push_back(forward ? TierJson::array() : TierJson::array({7 - i}));
            }
        return {{"use", use}, {"write", write}, {"cap", 4}, {"cyclic", false}};
    }
    if (program == "chunks") {
        std::vector<int> other;
        for (int moment = 0; moment < 48; ++moment) other.push_back(20 + 4 * std::min(moment, 47 - moment));
        return {{"kind", "step"}, {"layers", 24}, {"cap", 220}, {"chunk", 10}, {"reserve", 20}, {"not_chunks", other}};
    }
    if (program == "buckets")
        return {{"kind", "time"},       {"parameters", 160},   {"bucket", 16},
                {"buffers", 2},         {"in_per_element", 3}, {"step_per_element", 2},
                {"out_per_element", 3}, {"latency", 5},        {"full_duplex", true}};
    if (program == "owners") {
        TierJson layers = TierJson::array();
        for (int block = 0; block < 8; ++block)
            for (const auto& [in, out] : {std::pair(128, 384), {128, 128}, {128, 512}, {512, 128}})
                layers.push_back(TierJson::array({in, out}));
        return {{"members", 4}, {"layers", layers}};
    }
    if (program == "fill") { // rank 1 of 1F1B on four ranks, BERT-Large as PipeFisher measured it, in 0.1 ms
        constexpr int forward = 161, backward = 270, pair = forward + backward;
        TierJson busy = TierJson::array();
        Nanos now = forward;
        const auto run = [&](const char* kind, Nanos notBefore) {
            now = std::max(now, notBefore);
            const Nanos end = now + (*kind == 'F' ? forward : backward);
            busy.push_back(TierJson::array({now, end, kind}));
            now = end;
        };
        for (int k = 0; k < 3; ++k) run("F", 0);
        for (int k = 0; k < 8; ++k) {
            run("B", 4 * forward + 2 * backward + k * pair);
            if (k + 3 < 8) run("F", 0);
        }
        TierJson work = TierJson::array();
        for (const char* factor : {"A", "G"})
            work.push_back({{"name", factor}, {"kind", factor}, {"items", 8}, {"dur", 60}});
        for (const char* factor : {"A", "G"})
            work.push_back({{"name", fmt::format("inv {}", factor)},
                            {"kind", "after"},
                            {"items", 4},
                            {"dur", 90},
                            {"needs", TierJson::array({factor})}});
        return {{"step", now + backward}, {"busy", busy}, {"work", work}, {"rule", "strict"}};
    }
    return nullptr;
}

} // namespace stagewright
