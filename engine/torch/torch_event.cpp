#include "engine/torch/torch_event.h"

#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 7> names = {"beat", "ready", "step", "check", "error", "done", "traced"};

} // namespace

std::optional<TorchEvent> parseTorchEvent(std::string_view line)
{
    using Json = nlohmann::json;
    if (!line.starts_with("{\"event\":")) return std::nullopt;
    const Json object = readForeignJson<Json>(line);
    if (!object.is_object()) return std::nullopt;
    const auto text = [&object](const char* key) {
        const auto found = object.find(key);
        return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto number = [&object](const char* key) {
        const auto found = object.find(key);
        return found != object.end() && found->is_number() ? found->get<double>()
                                                           : std::numeric_limits<double>::quiet_NaN();
    };
    const auto whole = [&object](const char* key) {
        const auto found = object.find(key);
        return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    };
    TorchEvent event;
    bool known = false;
    const std::string name = text("event");
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name != names[i]) continue;
        event.kind = static_cast<TorchEvent::Kind>(i);
        known = true;
    }
    if (!known) return std::nullopt;
    event.rank = static_cast<int>(object.contains("rank") ? whole("rank") : -1);
    event.step = static_cast<int>(whole(event.kind == TorchEvent::Kind::Done ? "steps" : "step"));
    event.ops = whole("ops");
    event.where = text("where");
    event.loss = number("loss");
    event.stepTime = whole("step_time_ns");
    event.profiling = whole("profiler_ns");
    event.writing = whole("writing_ns");
    event.worst = number("worst");
    event.message = text("message");
    event.peer = object.value("peer", Json(false)) == Json(true);
    event.torch = text("torch");
    event.python = text("python");
    event.device = text("device");
    return event;
}

} // namespace stagewright
