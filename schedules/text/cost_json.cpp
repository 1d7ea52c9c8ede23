#include "schedules/text/cost_json.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/nesting.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format = "stagewright-costs";
constexpr int version = 2;
constexpr double mostSize = 1e6; // of a microbatch beside those of the costs
constexpr std::int64_t mostStages = 65536;
constexpr std::size_t mostSlicesOfCosts = 32767;
constexpr std::size_t mostMicrobatches = 1'000'000;
constexpr double mostJitter = 10;
constexpr std::array<std::string_view, 4> partNames{"op", "embedding", "block", "head"}; // by LayerCosts::Part

std::string_view toText(CostSource source)
{
    switch (source) {
    case CostSource::Uniform: return "uniform";
    case CostSource::Analytic: return "analytic";
    case CostSource::Fitted: break;
    }
    return "fitted";
}

// Reads with the path of what is read, so that every error names it. The first error stays.
struct CostReader {
    Error error{ErrorCode::Unreadable, {}, {}};

    bool ok() const { return error.message.empty(); }
    void wrong(const std::string& path, std::string_view what)
    {
        if (ok()) error.message = fmt::format("costs: {}: {}", path, what);
    }
    bool object(const Json& json, const std::string& path, std::initializer_list<std::string_view> keys)
    {
        if (!json.is_object()) {
            wrong(path, "an object is expected");
            return false;
        }
        for (const auto& [key, value] : json.items())
            if (std::find(keys.begin(), keys.end(), key) == keys.end())
                wrong(path, fmt::format("unknown key '{}'", key));
        return ok();
    }
    std::int64_t integer(const Json& json, const std::string& path, std::int64_t least,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max())
    {
        if (!json.is_number_integer() ||
            (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(most))) {
            wrong(path, "an integer is expected");
            return least;
        }
        const auto value = json.get<std::int64_t>();
        if (value < least || value > most) wrong(path, fmt::format("{} is outside {} … {}", value, least, most));
        return value;
    }
    std::int64_t integerAt(const Json& json, const char* key, const std::string& path, std::int64_t least,
                           std::int64_t most = std::numeric_limits<std::int64_t>::max())
    {
        const auto found = json.find(key);
        return found == json.end() ? 0 : integer(*found, path + "." + key, least, most);
    }
    Link link(const Json& json, const std::string& path)
    {
        Link out;
        out.latency = integerAt(json, "latency_ns", path, 0);
        out.bytesPerSecond = speedAt(json, "bytes_per_second", path);
        return out;
    }
    double speedAt(const Json& json, const char* key, const std::string& path)
    {
        const auto found = json.find(key);
        if (found == json.end()) return 0;
        if (found->is_number() && found->get<double>() >= 0) return found->get<double>();
        wrong(path + "." + key, "a number of 0 or more is expected");
        return 0;
    }
    Copies copies(const Json& json, const std::string& path)
    {
        Copies out;
        if (!object(json, path, {"out_bytes_per_second", "in_bytes_per_second", "latency_ns", "duplex"})) return out;
        out.outBytesPerSecond = speedAt(json, "out_bytes_per_second", path);
        out.inBytesPerSecond = speedAt(json, "in_bytes_per_second", path);
        out.latency = integerAt(json, "latency_ns", path, 0);
        const Json duplex = json.value("duplex", Json("half"));
        out.fullDuplex = duplex == Json("full");
        if (!out.fullDuplex && duplex != Json("half")) wrong(path + ".duplex", "half or full is expected");
        return out;
    }
    Cards cards(const Json& json, const std::string& path)
    {
        Cards out;
        if (!object(json, path, {"hosts", "per_host", "latency_ns", "bytes_per_second", "duplex"})) return out;
        out.link = link(json, path);
        each(json, "hosts", mostStages, [&](const Json& value, const std::string& at) {
            out.hosts.push_back(static_cast<int>(integer(value, at, 0, mostStages - 1)));
        });
        if (out.hosts.empty()) wrong(path + ".hosts", "the host of each rank is expected");
        if (json.contains("per_host"))
            out.perHost = static_cast<int>(integer(json["per_host"], path + ".per_host", 1, mostStages));
        const Json duplex = json.value("duplex", Json("full"));
        out.fullDuplex = duplex == Json("full");
        if (!out.fullDuplex && duplex != Json("half")) wrong(path + ".duplex", "half or full is expected");
        return out;
    }
    StageMemory memory(const Json& json, const std::string& path)
    {
        StageMemory out;
        if (!object(json, path,
                    {"activation", "freed_at_input", "workspace", "boundary", "weight", "gradient", "optimizer"}))
            return out;
        out.activation = integerAt(json, "activation", path, 0);
        out.freedAtInput = integerAt(json, "freed_at_input", path, -std::numeric_limits<std::int64_t>::max());
        out.workspace = integerAt(json, "workspace", path, 0);
        out.boundary = integerAt(json, "boundary", path, 0);
        out.weight = integerAt(json, "weight", path, 0);
        out.gradient = integerAt(json, "gradient", path, 0);
        out.optimizer = integerAt(json, "optimizer", path, 0);
        return out;
    }
    LayerCosts layer(const Json& json, const std::string& path)
    {
        LayerCosts out;
        if (!object(json, path, {"part", "duration_ns", "bytes"})) return out;
        const Json part = json.value("part", Json());
        const auto found =
            std::find(partNames.begin(), partNames.end(), part.is_string() ? part.get<std::string>() : std::string());
        if (found == partNames.end()) wrong(path + ".part", "op, embedding, block or head is expected");
        out.part = static_cast<LayerCosts::Part>(found == partNames.end() ? 0 : found - partNames.begin());
        if (const auto durations = json.find("duration_ns"); durations != json.end()) {
            if (!durations->is_object())
                wrong(path + ".duration_ns", "an object is expected");
            else
                for (const auto& [key, value] : durations->items()) {
                    const std::string at = fmt::format("{}.duration_ns.{}", path, key);
                    out.duration[static_cast<std::size_t>(kind(Json(key), at))] = integer(value, at, 0);
                }
        }
        if (const auto bytes = json.find("bytes"); bytes != json.end()) out.memory = memory(*bytes, path + ".bytes");
        return out;
    }
    // The entries of an array, each with its path.
    template <typename Read>
    void each(const Json& json, const char* key, std::size_t most, Read read)
    {
        const auto found = json.find(key);
        if (found == json.end()) return;
        if (!found->is_array() || found->size() > most)
            return wrong(key, fmt::format("an array of at most {} entries is expected", most));
        for (std::size_t i = 0; i < found->size() && ok(); ++i) read((*found)[i], fmt::format("{}[{}]", key, i));
    }
    OpKind kind(const Json& json, const std::string& path)
    {
        if (json.is_string())
            for (const KindTraits& rule : allKinds())
                if (rule.text == json.get_ref<const std::string&>()) return rule.kind;
        wrong(path, "a kind such as \"F\" is expected");
        return {};
    }
};

Json memoryJson(const StageMemory& memory)
{
    return {{"activation", memory.activation}, {"freed_at_input", memory.freedAtInput},
            {"workspace", memory.workspace},   {"boundary", memory.boundary},
            {"weight", memory.weight},         {"gradient", memory.gradient},
            {"optimizer", memory.optimizer}};
}

Json layerJson(const LayerCosts& layer)
{
    Json durations = Json::object();
    for (const KindTraits& rule : allKinds())
        if (const Nanos own = layer.duration[static_cast<std::size_t>(rule.kind)]; own != 0)
            durations[std::string(rule.text)] = own;
    return {{"part", partNames[static_cast<std::size_t>(layer.part)]},
            {"duration_ns", durations},
            {"bytes", memoryJson(layer.memory)}};
}

Json linkJson(const Link& link)
{
    Json out = Json::object();
    out["latency_ns"] = link.latency;
    out["bytes_per_second"] = link.bytesPerSecond;
    return out;
}

} // namespace

std::string writeCostsJson(const CostModel& costs)
{
    Json out = Json::object(); // never a null that becomes one: the library crashes if memory runs out just then
    out["format"] = format;
    out["version"] = version;
    out["source"] = toText(costs.source);
    out["origin"] = costs.origin;
    out["time_unit_ns"] = costs.timeUnit;
    out["memory_unit_bytes"] = costs.memoryUnit;
    Json durations = Json::object();
    for (const KindTraits& rule : allKinds())
        if (const auto& own = costs.m_byStage[static_cast<std::size_t>(rule.kind)]; !own.empty())
            durations[std::string(rule.text)] = own;
    out["duration_ns"] = durations;
    Json onRank = Json::array();
    for (const auto& [key, duration] : costs.m_onRank) {
        const auto& [kind, stage, rank] = key;
        onRank.push_back({{"kind", ruleOf(kind).text}, {"stage", stage}, {"rank", rank}, {"duration_ns", duration}});
    }
    out["duration_on_rank"] = onRank;
    out["link"] = linkJson(costs.links.all);
    Json overrides = Json::array();
    for (const auto& [ends, link] : costs.links.overrides) {
        Json entry = linkJson(link);
        entry["from"] = ends.first;
        entry["to"] = ends.second;
        overrides.push_back(entry);
    }
    out["link_overrides"] = overrides;
    if (costs.links.collectives != ResourceUse::Compute) out["collectives"] = toText(costs.links.collectives);
    if (const Copies& copies = costs.links.copies; copies != Copies{}) {
        Json& entry = out["copies"];
        entry = {{"out_bytes_per_second", copies.outBytesPerSecond},
                 {"in_bytes_per_second", copies.inBytesPerSecond},
                 {"latency_ns", copies.latency}};
        if (copies.fullDuplex) entry["duplex"] = "full";
    }
    if (const Cards& cards = costs.links.cards; !cards.hosts.empty()) {
        Json& entry = out["cards"];
        entry = linkJson(cards.link);
        entry["hosts"] = cards.hosts;
        entry["per_host"] = cards.perHost;
        if (!cards.fullDuplex) entry["duplex"] = "half";
    }
    if (costs.sharding.level != ShardLevel::None) out["sharding"] = toText(costs.sharding);
    if (costs.sharding.bucket > 0) out["bucket_bytes"] = costs.sharding.bucket;
    if (costs.replicas != 1) out["replicas"] = costs.replicas;
    if (!costs.sizes.empty()) out["microbatch_sizes"] = costs.sizes;
    if (!costs.launch.empty()) out["launch_ns"] = costs.launch;
    if (costs.jitter > 0) out["jitter"] = costs.jitter;
    if (costs.jitterSeed != 0) out["jitter_seed"] = costs.jitterSeed;
    Json pairs = Json::array();
    for (const auto& [key, duration] : costs.m_ofPair) {
        Json entry{{"kinds", {ruleOf(key.a).text, ruleOf(key.b).text}}, {"stages", {key.stageA, key.stageB}}};
        if (key.rank >= 0) entry["rank"] = key.rank;
        entry["duration_ns"] = duration;
        pairs.push_back(std::move(entry));
    }
    if (!pairs.empty()) out["pairs"] = std::move(pairs);
    Json microbatches = Json::array();
    for (const auto& [key, own] : costs.m_ofMicrobatch) {
        Json values = Json::array();
        for (const Nanos duration : own) values.push_back(duration < 0 ? Json() : Json(duration));
        microbatches.push_back(
            {{"kind", ruleOf(key.first).text}, {"stage", key.second}, {"duration_ns", std::move(values)}});
    }
    if (!microbatches.empty()) out["microbatches"] = std::move(microbatches);
    Json layers = Json::array();
    for (const LayerCosts& layer : costs.layers) layers.push_back(layerJson(layer));
    if (!layers.empty()) out["layers"] = std::move(layers);
    Json stages = Json::array();
    for (const StageMemory& memory : costs.memory) stages.push_back(memoryJson(memory));
    out["stage_bytes"] = stages;
    if (costs.sliceStarts.size() > 1) {
        Json lengths = Json::array();
        for (std::size_t i = 0; i + 1 < costs.sliceStarts.size(); ++i)
            lengths.push_back(costs.sliceStarts[i + 1] - costs.sliceStarts[i]);
        out["slice_lengths"] = lengths;
    }
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CostModel> readCostsJson(const std::string& text)
{
    constexpr std::size_t deepest = 16; // ours are half as deep
    if (const std::size_t depth = nestingOf(text); depth > deepest)
        return fail(ErrorCode::Unreadable,
                    fmt::format("costs: lists and objects nest {} deep, at most {}", depth, deepest),
                    "check that this is a file of costs");
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return fail(ErrorCode::Unreadable, "costs: not a JSON document");
    CostReader in;
    if (!in.object(json, "the document", {"format",         "version",          "source",
                                          "origin",         "time_unit_ns",     "memory_unit_bytes",
                                          "duration_ns",    "duration_on_rank", "link",
                                          "link_overrides", "launch_ns",        "stage_bytes",
                                          "slice_lengths",  "jitter",           "jitter_seed",
                                          "pairs",          "microbatches",     "layers",
                                          "collectives",    "sharding",         "bucket_bytes",
                                          "replicas",       "microbatch_sizes", "copies",
                                          "cards"}))
        return tl::unexpected(in.error);
    if (json.value("format", Json()) != Json(format))
        return fail(ErrorCode::Unreadable, fmt::format("costs: format is not \"{}\"", format));
    const Json written = json.value("version", Json());
    if (written != 1 && written != version)
        return fail(ErrorCode::Unreadable,
                    fmt::format("costs: version {} is unknown, 1 or {} expected", written.dump(), version));
    for (const char* key : {"jitter", "jitter_seed", "pairs", "microbatches", "layers", "collectives", "sharding",
                            "bucket_bytes", "replicas", "microbatch_sizes", "copies", "cards"})
        if (written == 1 && json.contains(key))
            in.wrong(key, fmt::format("version {} of the format has it, this is 1", version));
    CostModel out;
    const Json source = json.value("source", Json("uniform"));
    // never with a plain text: the library then takes memory where it can't report that there is none
    if (source == Json("analytic"))
        out.source = CostSource::Analytic;
    else if (source == Json("fitted"))
        out.source = CostSource::Fitted;
    else if (source != Json("uniform"))
        in.wrong("source", "uniform, analytic or fitted is expected");
    if (const auto origin = json.find("origin"); origin != json.end()) {
        if (origin->is_string())
            out.origin = origin->get<std::string>();
        else
            in.wrong("origin", "a text is expected");
    }
    if (json.contains("time_unit_ns")) out.timeUnit = in.integer(json["time_unit_ns"], "time_unit_ns", 1);
    if (json.contains("memory_unit_bytes"))
        out.memoryUnit = in.integer(json["memory_unit_bytes"], "memory_unit_bytes", 1);

    if (const auto stages = json.find("stage_bytes"); stages != json.end()) {
        if (!stages->is_array() || stages->size() > mostStages)
            in.wrong("stage_bytes", "an array of at most 65536 stages is expected");
        else
            for (const Json& entry : *stages) {
                const std::string path = fmt::format("stage_bytes[{}]", out.memory.size());
                out.memory.push_back(in.memory(entry, path));
                if (!in.ok()) break;
            }
    }
    if (const auto durations = json.find("duration_ns"); durations != json.end()) {
        if (!durations->is_object())
            in.wrong("duration_ns", "an object is expected");
        else
            for (const auto& [key, values] : durations->items()) {
                const std::string path = "duration_ns." + key;
                const OpKind kind = in.kind(Json(key), path);
                if (!values.is_array() || values.size() > mostStages) {
                    in.wrong(path, "an array with one duration per stage is expected");
                    break;
                }
                auto& byStage = out.m_byStage[static_cast<std::size_t>(kind)];
                for (const Json& value : values)
                    byStage.push_back(in.integer(value, fmt::format("{}[{}]", path, byStage.size()), 0));
            }
    }
    if (const auto onRank = json.find("duration_on_rank"); onRank != json.end()) {
        if (!onRank->is_array())
            in.wrong("duration_on_rank", "an array is expected");
        else
            for (std::size_t i = 0; i < onRank->size() && in.ok(); ++i) {
                const Json& entry = (*onRank)[i];
                const std::string path = fmt::format("duration_on_rank[{}]", i);
                if (!in.object(entry, path, {"kind", "stage", "rank", "duration_ns"})) break;
                const OpKind kind = in.kind(entry.value("kind", Json()), path + ".kind");
                const auto stage = static_cast<int>(in.integerAt(entry, "stage", path, 0, mostStages - 1));
                const auto rank = static_cast<int>(in.integerAt(entry, "rank", path, 0, mostStages - 1));
                out.setDuration(kind, stage, rank, in.integerAt(entry, "duration_ns", path, 0));
            }
    }
    if (const auto lengths = json.find("slice_lengths"); lengths != json.end()) {
        if (!lengths->is_array() || lengths->size() > mostSlicesOfCosts)
            in.wrong("slice_lengths", "an array of at most 32767 lengths is expected");
        else if (!lengths->empty()) {
            out.sliceStarts.push_back(0);
            for (const Json& length : *lengths)
                out.sliceStarts.push_back(out.sliceStarts.back() +
                                          in.integer(length,
                                                     fmt::format("slice_lengths[{}]", out.sliceStarts.size() - 1), 0,
                                                     std::numeric_limits<std::uint32_t>::max()));
        }
    }
    if (const auto link = json.find("link");
        link != json.end() && in.object(*link, "link", {"latency_ns", "bytes_per_second"}))
        out.links.all = in.link(*link, "link");
    if (const auto overrides = json.find("link_overrides"); overrides != json.end()) {
        if (!overrides->is_array())
            in.wrong("link_overrides", "an array is expected");
        else
            for (std::size_t i = 0; i < overrides->size() && in.ok(); ++i) {
                const Json& entry = (*overrides)[i];
                const std::string path = fmt::format("link_overrides[{}]", i);
                if (!in.object(entry, path, {"from", "to", "latency_ns", "bytes_per_second"})) break;
                const auto from = static_cast<int>(in.integerAt(entry, "from", path, 0, mostStages - 1));
                const auto to = static_cast<int>(in.integerAt(entry, "to", path, 0, mostStages - 1));
                out.links.overrides[{from, to}] = in.link(entry, path);
            }
    }
    if (const auto lane = json.find("collectives"); lane != json.end()) {
        const auto known = lane->is_string() ? resourceUseOf(lane->get<std::string>()) : std::nullopt;
        if (known)
            out.links.collectives = *known;
        else
            in.wrong("collectives", "compute, beside or shared is expected");
    }
    if (const auto copies = json.find("copies"); copies != json.end()) out.links.copies = in.copies(*copies, "copies");
    if (const auto cards = json.find("cards"); cards != json.end()) out.links.cards = in.cards(*cards, "cards");
    if (const auto sharding = json.find("sharding"); sharding != json.end()) {
        auto read = parseSharding(sharding->is_string() ? sharding->get<std::string>() : std::string());
        if (read)
            out.sharding = std::move(*read);
        else
            in.wrong("sharding", read.error().message);
    }
    if (json.contains("bucket_bytes")) out.sharding.bucket = in.integer(json["bucket_bytes"], "bucket_bytes", 1);
    if (json.contains("replicas"))
        out.replicas = static_cast<int>(in.integer(json["replicas"], "replicas", 1, mostStages));
    in.each(json, "microbatch_sizes", mostStages, [&](const Json& value, const std::string& path) {
        if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > mostSize)
            return in.wrong(path, fmt::format("a number above 0, at most {}, is expected", mostSize));
        out.sizes.push_back(value.get<double>());
    });
    if (const auto launch = json.find("launch_ns"); launch != json.end()) {
        if (!launch->is_array() || launch->size() > mostStages)
            in.wrong("launch_ns", "an array with one delay per rank is expected");
        else
            for (const Json& value : *launch)
                out.launch.push_back(in.integer(value, fmt::format("launch_ns[{}]", out.launch.size()), 0));
    }
    if (const auto jitter = json.find("jitter"); jitter != json.end()) {
        if (!jitter->is_number() || jitter->get<double>() < 0 || jitter->get<double>() > mostJitter)
            in.wrong("jitter", fmt::format("a number from 0 to {} is expected", mostJitter));
        else
            out.jitter = jitter->get<double>();
    }
    if (const auto seed = json.find("jitter_seed"); seed != json.end()) {
        if (!seed->is_number_unsigned())
            in.wrong("jitter_seed", "an integer of 0 or more is expected");
        else
            out.jitterSeed = seed->get<std::uint64_t>();
    }
    in.each(json, "pairs", static_cast<std::size_t>(mostStages) * 16, [&](const Json& entry, const std::string& path) {
        if (!in.object(entry, path, {"kinds", "stages", "rank", "duration_ns"})) return;
        const Json kinds = entry.value("kinds", Json());
        const Json stages = entry.value("stages", Json());
        if (!kinds.is_array() || kinds.size() != 2) return in.wrong(path + ".kinds", "two kinds are expected");
        if (!stages.is_array() || stages.size() != 2) return in.wrong(path + ".stages", "two stages are expected");
        const auto stage = [&](std::size_t k) {
            return static_cast<int>(in.integer(stages[k], fmt::format("{}.stages[{}]", path, k), 0, mostStages - 1));
        };
        const int rank =
            entry.contains("rank") ? static_cast<int>(in.integerAt(entry, "rank", path, 0, mostStages - 1)) : -1;
        out.setPairDuration(in.kind(kinds[0], path + ".kinds[0]"), stage(0), in.kind(kinds[1], path + ".kinds[1]"),
                            stage(1), rank, in.integerAt(entry, "duration_ns", path, 0));
    });
    in.each(
        json, "microbatches", static_cast<std::size_t>(mostStages) * 4,
        [&](const Json& entry, const std::string& path) {
            if (!in.object(entry, path, {"kind", "stage", "duration_ns"})) return;
            const OpKind kind = in.kind(entry.value("kind", Json()), path + ".kind");
            const auto stage = static_cast<int>(in.integerAt(entry, "stage", path, 0, mostStages - 1));
            auto& own = out.m_ofMicrobatch[{kind, stage}];
            own.clear();
            if (!entry.contains("duration_ns")) return in.wrong(path, "duration_ns is missing");
            const Json& durations = entry["duration_ns"];
            if (!durations.is_array() || durations.size() > mostMicrobatches)
                return in.wrong(path + ".duration_ns", "an array with one duration or null per microbatch is expected");
            for (const Json& value : durations)
                own.push_back(
                    value.is_null() ? -1 : in.integer(value, fmt::format("{}.duration_ns[{}]", path, own.size()), 0));
        });
    in.each(json, "layers", static_cast<std::size_t>(mostStages),
            [&](const Json& entry, const std::string& path) { out.layers.push_back(in.layer(entry, path)); });
    if (!in.ok()) return tl::unexpected(in.error);
    std::size_t stages = 0; // that have a time: what is missing of their bytes is 0
    for (const auto& byStage : out.m_byStage) stages = std::max(stages, byStage.size());
    for (const auto& [key, duration] : out.m_onRank)
        stages = std::max(stages, static_cast<std::size_t>(std::get<1>(key)) + 1);
    if (out.memory.size() < stages) out.memory.resize(stages);
    return out;
}

} // namespace stagewright
