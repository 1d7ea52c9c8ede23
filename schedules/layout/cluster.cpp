#include "schedules/layout/cluster.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

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

Result<void> readOption(std::string_view text, Cluster& out)
{
    const auto [key, given] = keyValueOf(text);
    const std::string_view value = given.value_or("");
    const auto count = [&](int& place) { return readNumber(value, place) && place >= 1 && place <= 1024; };
    if (key == "per-host" && count(out.perHost)) return {};
    if (key == "cards" && count(out.cards)) return {};
    if (key == "within" && readRate(value, out.device.linkBytesPerSecond)) return {};
    if (key == "between" && readRate(value, out.between)) return {};
    if (key == "memory")
        if (const auto bytes = parseBytes(std::string(value)); bytes && *bytes > 0) {
            out.memory = static_cast<double>(*bytes);
            return {};
        }
    return fail(ErrorCode::Usage, fmt::format("'{}' is not an option of a cluster", text),
                "options are per-host=8, cards=8, memory=80GB, within=300GB/s, between=25GB/s");
}

} // namespace

Result<Cluster> parseCluster(std::string_view text)
{
    Cluster out;
    const auto [what, options] = keyValueOf(text, ':');
    const auto [count, device] = keyValueOf(what, '@');
    if (!device || !readNumber(count, out.devices) || out.devices < 1 || out.devices > 1'000'000)
        return fail(ErrorCode::Usage, fmt::format("'{}' is not a number of devices and their kind", what),
                    "write 64@a100");
    STAGEWRIGHT_TRY(out.device, devicePresetOf(*device));
    out.memory = out.device.memory;
    bool cards = false;
    for (const std::string_view one : itemsOf(options.value_or(""), ":")) {
        STAGEWRIGHT_CHECK(readOption(one, out));
        cards = cards || one.starts_with("cards=");
    }
    if (!cards) out.cards = out.perHost;
    if (out.devices > out.perHost && out.devices % out.perHost != 0)
        return fail(ErrorCode::Usage, fmt::format("{} devices are not whole hosts of {}", out.devices, out.perHost),
                    "choose another number, or :per-host=N");
    return out;
}

std::string toText(const Cluster& cluster)
{
    return fmt::format("{} × {}, {} a host", cluster.devices, cluster.device.title,
                       std::min(cluster.devices, cluster.perHost));
}

Result<ModelPreset> parseModelShape(std::string_view text)
{
    if (text.find('=') == std::string_view::npos) return modelPresetOf(text);
    ModelPreset model{"your model", 0, 0, 0, 2048, 50304, 1};
    const auto places = std::to_array<std::pair<std::string_view, int ModelPreset::*>>({
        {"layers", &ModelPreset::layers},
        {"hidden", &ModelPreset::hidden},
        {"heads", &ModelPreset::heads},
        {"seq", &ModelPreset::sequence},
        {"vocab", &ModelPreset::vocabulary},
    });
    for (const std::string_view item : itemsOf(text)) {
        const auto [key, value] = keyValueOf(item);
        const auto place =
            std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.first == key; });
        int number = 0;
        if (place == places.end() || !readNumber(value.value_or(""), number) || number < 1 || number > 1 << 24)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not a size of a model", item),
                        "write layers=96,hidden=12288,heads=96, and seq=2048 or vocab=50304 where they differ");
        model.*place->second = number;
    }
    for (const auto& [key, place] : places)
        if (model.*place == 0) return fail(ErrorCode::Usage, fmt::format("the model's {} is missing", key), "add it");
    if (model.hidden % model.heads != 0)
        return fail(ErrorCode::Usage, fmt::format("hidden={} is not a multiple of heads={}", model.hidden, model.heads),
                    "choose others");
    return model;
}

} // namespace stagewright
