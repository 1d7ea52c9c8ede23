#include "schedules/layout/cluster.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/json_input.h"
#include "schedules/base/text.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

// "25GB/s" in bytes per second.
bool readRate(std::string_view text, double& out)
{
    if (!text.ends_with("/s")) return false;
    const auto bytes = parseBytes(std::string(text.substr(0, text.size() - 2)));
    if (!bytes || *bytes <= 0) return false;
    out = static_cast<double>(*bytes);
    return true;
}

Result<void> readOption(std::string_view text, bool ofFile, Cluster& out)
{
    const auto [key, given] = keyValueOf(text);
    const std::string_view value = given.value_or("");
    const auto count = [&](int& place) { return readNumber(value, place) && place >= 1 && place <= 1024; };
    if (key == "per-host" && count(out.perHost)) return {};
    if (key == "cards" && count(out.cards)) return {};
    if (int hosts = 0; ofFile && key == "hosts" && count(hosts)) {
        out.devices = out.perHost * hosts;
        return {};
    }
    if (key == "within" && readRate(value, out.device.linkBytesPerSecond)) return {};
    if (key == "between" && readRate(value, out.between)) return {};
    if (key == "memory")
        if (const auto bytes = parseBytes(std::string(value)); bytes && *bytes > 0) {
            out.memory = static_cast<double>(*bytes);
            return {};
        }
    return fail(ErrorCode::Usage, fmt::format("'{}' is not an option of a cluster", text),
                "options are per-host=8, cards=8, memory=80GB, within=300GB/s, between=25GB/s, and of a file hosts=8");
}

Result<void> readOptions(std::string_view options, bool ofFile, Cluster& out)
{
    for (const std::string_view one : itemsOf(options, ":")) STAGEWRIGHT_CHECK(readOption(one, ofFile, out));
    if (out.devices > out.perHost && out.devices % out.perHost != 0)
        return fail(ErrorCode::Usage, fmt::format("{} devices are not whole hosts of {}", out.devices, out.perHost),
                    "choose another number, or :per-host=N");
    return {};
}

tl::unexpected<Error> unreadable(std::string what)
{
    return fail(ErrorCode::Unreadable, std::move(what),
                "write {\"hosts\": [{\"count\": 8, \"devices\": 8, \"device\": \"a100\"}]}, or the output of "
                "'stagewright devices --json' (docs/cli.md)");
}

// The preset of a device as its driver calls it: "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB".
Result<DevicePreset> deviceCalled(std::string_view name)
{
    for (const std::string_view word : itemsOf(name, " "))
        for (const std::string_view part : split(word, "-"))
            for (const DevicePreset& preset : devicePresets())
                if (lowered(part) == preset.name) return preset;
    return unreadable(fmt::format("the device '{}' is unknown here: give its figures", name.substr(0, 80)));
}

struct Figure {
    const char* key;
    double DevicePreset::*place;
};
constexpr auto figures = std::to_array<Figure>({{"flops", &DevicePreset::flops},
                                                {"memory_bytes_per_second", &DevicePreset::bytesPerSecond},
                                                {"link_bytes_per_second", &DevicePreset::linkBytesPerSecond}});

Result<HostKind> hostOf(const JsonInput::Json& json, std::size_t number)
{
    if (!json.is_object()) return unreadable(fmt::format("host {} is not an object", number));
    JsonInput in(json);
    HostKind out;
    out.count = in.get<int>("count", 1);
    out.devices = in.get<int>("devices", 8);
    out.device = {"own", "your device", 0, 0, 0, 0, 0};
    if (in.has("device")) {
        auto preset = devicePresetOf(in.get<std::string>("device"));
        if (!in.problem().empty()) return unreadable(fmt::format("host {}: {}", number, in.problem()));
        if (!preset) return tl::unexpected(std::move(preset.error()).with(fmt::format("host {}", number)));
        out.device = *preset;
    } else {
        out.title = in.get<std::string>("title", std::string("your device")).substr(0, 80);
    }
    const bool own = !in.has("device");
    const auto positive = [&](const char* key, std::optional<double> fallback) {
        const double value = in.get<double>(key, fallback);
        if (!(value > 0 && value <= 1e30)) in.wrong(fmt::format("{} is not above 0", key));
        return value;
    };
    for (const auto& [key, place] : figures)
        out.device.*place = positive(key, own ? std::nullopt : std::optional(out.device.*place));
    out.memory = positive("memory_bytes", own ? std::nullopt : std::optional(out.device.memory));
    if (own) out.device.memory = out.memory;
    out.device.linkLatency = in.get<Nanos>("link_latency_ns", out.device.linkLatency);
    out.between = positive("card_bytes_per_second", out.between);
    out.cards = in.get<int>("cards", out.devices);
    for (const auto& [key, value, most] :
         {std::tuple{"count", out.count, 100'000}, std::tuple{"devices", out.devices, 1024},
          std::tuple{"cards", out.cards, 1024}})
        if (value < 1 || value > most) in.wrong(fmt::format("{} is 1 to {}, not {}", key, most, value));
    if (out.device.linkLatency < 0) in.wrong("link_latency_ns is below 0");
    if (!in.problem().empty()) return unreadable(fmt::format("host {}: {}", number, in.problem()));
    return out;
}

Result<Cluster> clusterOf(std::vector<HostKind> kinds)
{
    Cluster out;
    const HostKind& first = kinds.front();
    out.devices = 0;
    out.perHost = first.devices;
    out.device = first.device;
    out.title = first.title;
    out.memory = first.memory;
    out.between = first.between;
    out.cards = first.cards;
    for (const HostKind& kind : kinds) {
        if (kind.devices != out.perHost)
            return unreadable(
                fmt::format("hosts of {} and of {} devices: all need as many", out.perHost, kind.devices));
        if (kind.count > 1'000'000 / kind.devices - out.devices / kind.devices)
            return unreadable("there are more than 1000000 devices");
        out.devices += kind.count * kind.devices;
        for (const auto& [key, place] : figures) out.device.*place = std::min(out.device.*place, kind.device.*place);
        out.device.linkLatency = std::max(out.device.linkLatency, kind.device.linkLatency);
        out.memory = std::min(out.memory, kind.memory);
        out.between = std::min(out.between, kind.between);
        out.cards = std::min(out.cards, kind.cards);
    }
    if (kinds.size() > 1) out.kinds = std::move(kinds);
    return out;
}

// The GPUs of one host, as 'devices --json' lists them.
Result<Cluster> clusterOfDevices(const JsonInput::Json& list)
{
    HostKind host;
    host.devices = 0;
    std::string name;
    for (const auto& json : list) {
        if (!json.is_object()) return unreadable("devices: one is not an object");
        JsonInput in(json);
        const auto backend = in.get<std::string>("backend", std::string()),
                   found = in.get<std::string>("name", std::string());
        const bool usable = in.get<bool>("usable", false);
        if (!in.problem().empty()) return unreadable("devices: " + in.problem());
        if (!usable || backend == "cpu" || found.empty()) continue;
        if (!name.empty() && found != name)
            return unreadable(fmt::format("devices of two kinds in one host: '{}' and '{}'", name.substr(0, 80),
                                          found.substr(0, 80)));
        if (name.empty()) {
            name = found;
            STAGEWRIGHT_TRY(host.device, deviceCalled(name));
            host.memory = host.device.memory;
            if (const auto details = json.find("details"); details != json.end() && details->is_object()) {
                auto memory = JsonInput(*details).get<std::string>("memory", std::string());
                std::erase(memory, ' ');
                if (const auto bytes = parseBytes(memory); bytes && *bytes > 0)
                    host.memory = static_cast<double>(*bytes);
            }
        }
        ++host.devices;
    }
    if (host.devices == 0) return unreadable("there is no usable GPU among its devices");
    host.cards = host.devices;
    return clusterOf({host});
}

// "8 × NVIDIA H100 80GB HBM3, driver 550.54", as 'hosts test --json' has it.
Result<Cluster> clusterOfFacts(const JsonInput::Json& facts)
{
    for (const auto& json : facts) {
        if (!json.is_object()) return unreadable("facts: one is not an object");
        if (json.value("key", JsonInput::Json()) != "gpus") continue;
        JsonInput in(json);
        if (json.contains("value") && json["value"].is_null()) break;
        const auto text = in.get<std::string>("value");
        const auto [list, driver] = keyValueOf(text, ',');
        constexpr std::string_view times = " × ";
        const auto at = list.find(times);
        HostKind host;
        if (at == std::string_view::npos || !readNumber(list.substr(0, at), host.devices) || host.devices < 1 ||
            host.devices > 1024 || (driver && driver->find(times) != std::string_view::npos))
            return unreadable(fmt::format("its GPUs are '{}': equal ones are expected", text.substr(0, 80)));
        STAGEWRIGHT_TRY(host.device, deviceCalled(list.substr(at + times.size())));
        host.memory = host.device.memory;
        host.cards = host.devices;
        return clusterOf({host});
    }
    return unreadable("the host has no GPU");
}

} // namespace

Result<Cluster> parseCluster(std::string_view text)
{
    Cluster out;
    const auto [what, options] = keyValueOf(text, ':');
    const auto [count, device] = keyValueOf(what, '@');
    if (!device || !readNumber(count, out.devices) || out.devices < 1 || out.devices > 1'000'000)
        return fail(ErrorCode::Usage, fmt::format("'{}' is not a number of devices and their kind", what),
                    "write 64@a100, or the name of a cluster's file, NAME.json");
    STAGEWRIGHT_TRY(out.device, devicePresetOf(*device));
    out.memory = out.device.memory;
    out.betweenDelay = out.device.linkLatency;
    out.cards = 0;
    STAGEWRIGHT_CHECK(readOptions(options.value_or(""), false, out));
    if (out.cards == 0) out.cards = out.perHost;
    return out;
}

Result<Cluster> readCluster(std::string_view text, std::string_view options)
{
    const auto json = readForeignJson<JsonInput::Json>(text);
    if (!json.is_object()) return unreadable("it is not a JSON object");
    const auto list = [&](const char* key) -> const JsonInput::Json* {
        const auto found = json.find(key);
        return found != json.end() && found->is_array() ? &*found : nullptr;
    };
    Cluster out;
    if (const auto* devices = list("devices")) {
        STAGEWRIGHT_TRY(out, clusterOfDevices(*devices));
    } else if (const auto* facts = list("facts")) {
        STAGEWRIGHT_TRY(out, clusterOfFacts(*facts));
    } else {
        const auto* hosts = list("hosts");
        if (hosts == nullptr || hosts->empty() || hosts->size() > 1000)
            return unreadable("hosts: 1 to 1000 are expected");
        std::vector<HostKind> kinds;
        for (const auto& host : *hosts) {
            STAGEWRIGHT_TRY(auto kind, hostOf(host, kinds.size() + 1));
            kinds.push_back(std::move(kind));
        }
        STAGEWRIGHT_TRY(out, clusterOf(std::move(kinds)));
    }
    JsonInput in(json);
    out.duplex = in.get<bool>("duplex", true);
    out.betweenDelay = in.get<Nanos>("between_latency_ns", out.device.linkLatency);
    if (out.betweenDelay < 0) in.wrong("between_latency_ns is below 0");
    if (!in.problem().empty()) return unreadable(in.problem());
    STAGEWRIGHT_CHECK(readOptions(options, true, out));
    return out;
}

Result<Cluster> namedCluster(std::string_view text, const FileReader& read)
{
    const auto [file, options] = keyValueOf(text, ':');
    if (!file.ends_with(".json")) return parseCluster(text);
    const std::string path(file);
    if (!read) return fail(ErrorCode::Usage, fmt::format("{}: files can't be read here", path), "write 64@a100");
    STAGEWRIGHT_TRY(const auto json, read(path));
    if (json.empty()) return fail(ErrorCode::Unreadable, path + ": it is absent or empty", "check its name");
    auto out = readCluster(json, options.value_or(""));
    if (!out) return tl::unexpected(std::move(out.error()).with(path));
    return out;
}

std::string toJson(const Cluster& cluster)
{
    auto kinds = cluster.kinds;
    if (kinds.empty())
        kinds.push_back({cluster.hosts(), std::min(cluster.perHost, cluster.devices), cluster.device, cluster.title,
                         cluster.memory, cluster.between, cluster.cards});
    JsonInput::Json hosts = JsonInput::Json::array();
    for (const HostKind& kind : kinds) {
        JsonInput::Json host{{"count", kind.count}, {"devices", kind.devices}};
        if (kind.title.empty())
            host["device"] = kind.device.name;
        else
            host["title"] = kind.title;
        for (const auto& [key, place] : figures) host[key] = kind.device.*place;
        host["link_latency_ns"] = kind.device.linkLatency;
        host["memory_bytes"] = kind.memory;
        host["cards"] = kind.cards;
        host["card_bytes_per_second"] = kind.between;
        hosts.push_back(std::move(host));
    }
    return JsonInput::Json{{"hosts", hosts}, {"duplex", cluster.duplex}, {"between_latency_ns", cluster.betweenDelay}}
               .dump(2) +
           "\n";
}

std::string toText(const Cluster& cluster)
{
    const auto named = [](const std::string& title, const DevicePreset& device) {
        return title.empty() ? std::string(device.title) : title;
    };
    if (cluster.kinds.empty())
        return fmt::format("{} × {}, {} a host", cluster.devices, named(cluster.title, cluster.device),
                           std::min(cluster.devices, cluster.perHost));
    std::string out;
    for (const HostKind& kind : cluster.kinds)
        out += fmt::format("{}{} × {}", out.empty() ? "" : " and ", kind.count * kind.devices,
                           named(kind.title, kind.device));
    return fmt::format("{}, {} a host, counted as the slowest", out, cluster.perHost);
}

Result<ModelPreset> parseModelShape(std::string_view text)
{
    ModelPreset model{"your model", 0, 0, 0, 2048, 50304, 1};
    auto items = itemsOf(text);
    if (items.size() < 2 && text.find('=') == std::string_view::npos) return modelPresetOf(text);
    if (!items.empty() && items.front().find('=') == std::string_view::npos) { // a preset, with what differs
        STAGEWRIGHT_TRY(model, modelPresetOf(items.front()));
        items.erase(items.begin());
    }
    const auto places = std::to_array<std::pair<std::string_view, int ModelPreset::*>>({
        {"layers", &ModelPreset::layers},
        {"hidden", &ModelPreset::hidden},
        {"heads", &ModelPreset::heads},
        {"seq", &ModelPreset::sequence},
        {"vocab", &ModelPreset::vocabulary},
        {"kv", &ModelPreset::keyHeads},
        {"ffn", &ModelPreset::ffn},
        {"experts", &ModelPreset::experts},
    });
    for (const std::string_view item : items) {
        const auto [key, value] = keyValueOf(item);
        if (key == "tied" && (!value || *value == "yes" || *value == "no")) {
            model.embeddings = value && *value == "no" ? Embeddings::Own : Embeddings::Tied;
            continue;
        }
        const auto place =
            std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.first == key; });
        int number = 0;
        if (place == places.end() || !readNumber(value.value_or(""), number) || number < 1 || number > 1 << 24)
            return fail(
                ErrorCode::Usage, fmt::format("'{}' is not a size of a model", item),
                "write layers=96,hidden=12288,heads=96, and seq=2048, vocab=50304, kv=8, ffn=28672, experts=8, tied or "
                "tied=no where they differ");
        model.*place->second = number;
        model.name = "your model";
    }
    for (const auto& [key, place] : places)
        if (model.*place == 0 && place != &ModelPreset::keyHeads && place != &ModelPreset::ffn)
            return fail(ErrorCode::Usage, fmt::format("the model's {} is missing", key), "add it");
    if (model.hidden % model.heads != 0)
        return fail(ErrorCode::Usage, fmt::format("hidden={} is not a multiple of heads={}", model.hidden, model.heads),
                    "choose others");
    if (model.keyHeads > 0 && model.heads % model.keyHeads != 0)
        return fail(ErrorCode::Usage, fmt::format("heads={} is not a multiple of kv={}", model.heads, model.keyHeads),
                    "choose others");
    return model;
}

} // namespace stagewright
