#include <cmath>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "app/cli/verbs/device_kernels.h"
#include "app/cli/verbs/remote_call.h"
#include "app/launch/pythons.h"
#include "engine/device/backend.h"
#include "schedules/base/quantity.h"
#include "schedules/model/analytic_costs.h"

namespace stagewright {

namespace {

// Models and devices of --costs analytic:MODEL@DEVICE.
Result<int> showPresets(Session& session)
{
    using Align = Table::Align;
    const bool colour = session.colourOut();
    Table models({{"model"},
                  {"layers", Align::Right},
                  {"hidden", Align::Right},
                  {"heads", Align::Right},
                  {"tokens", Align::Right},
                  {"microbatch", Align::Right},
                  {"parameters", Align::Right}});
    Json modelArray = Json::array();
    for (const ModelPreset& model : modelPresets()) {
        models.add({std::string(model.name), std::to_string(model.layers), std::to_string(model.hidden),
                    std::to_string(model.heads), std::to_string(model.sequence), std::to_string(model.microbatchSize),
                    fmt::format("{:.1f} G", model.parameters() / 1e9)});
        modelArray.push_back({{"name", model.name},
                              {"layers", model.layers},
                              {"hidden", model.hidden},
                              {"heads", model.heads},
                              {"sequence", model.sequence},
                              {"vocabulary", model.vocabulary},
                              {"microbatch_size", model.microbatchSize},
                              {"parameters", model.parameters()}});
    }
    Table devices({{"device"},
                   {""},
                   {"peak, 16 bit", Align::Right},
                   {"memory", Align::Right},
                   {"bandwidth", Align::Right},
                   {"link", Align::Right}});
    Json deviceArray = Json::array();
    for (const DevicePreset& device : devicePresets()) {
        devices.add({std::string(device.name), std::string(device.title),
                     fmt::format("{:.0f} TFLOP/s", device.flops / 1e12), formatBytes(std::llround(device.memory)),
                     fmt::format("{:.2f} TB/s", device.bytesPerSecond / 1e12),
                     fmt::format("{:.0f} GB/s", device.linkBytesPerSecond / 1e9)});
        deviceArray.push_back({{"name", device.name},
                               {"title", device.title},
                               {"flops", device.flops},
                               {"memory_bytes", device.memory},
                               {"memory_bytes_per_second", device.bytesPerSecond},
                               {"link_bytes_per_second", device.linkBytesPerSecond},
                               {"link_latency_ns", device.linkLatency}});
    }
    if (session.json) session.answer({{"models", std::move(modelArray)}, {"devices", std::move(deviceArray)}});
    session.out(models.text(colour) + "\n" + devices.text(colour));
    return ExitDone;
}

// Interpreters for --engine torch, in the order in which they are looked for.
std::string pythonTable(Json& array, Session& session)
{
    Table table({{"python"}, {"found by"}, {"version"}, {"PyTorch"}, {"usable"}, {"why not"}});
    const auto places = pythonPlaces();
    for (const PythonPlace& place : places ? *places : std::vector<PythonPlace>{}) {
        const PythonFound found = askPython(place, session.stop());
        table.add({found.path, found.origin, found.python, found.torch, found.usable() ? "yes" : "no", found.reason},
                  found.usable() ? Tint::None : Tint::Dim);
        array.push_back({{"path", found.path},
                         {"origin", found.origin},
                         {"python", found.python.empty() ? Json(nullptr) : Json(found.python)},
                         {"torch", found.torch.empty() ? Json(nullptr) : Json(found.torch)},
                         {"nccl", found.nccl},
                         {"gpus", found.gpus},
                         {"usable", found.usable()},
                         {"reason", found.usable() ? Json(nullptr) : Json(found.reason)}});
    }
    return array.empty() ? std::string("\nno python3 was found for --engine torch\n")
                         : "\n" + table.text(session.colourOut());
}

Result<int> runDevices(Session& session)
{
    Table table({{"backend"}, {"device"}, {"usable"}, {"why not"}});
    Json array = Json::array();
    const auto add = [&](const DeviceInfo& device) {
        table.add({device.backend, device.name, device.usable ? "yes" : "no", device.reason},
                  device.usable ? Tint::None : Tint::Dim);
        Json details = Json::object();
        for (const auto& [key, value] : device.details) {
            table.add({"", fmt::format("  {}: {}", key, value)}, Tint::Dim);
            details[key] = value;
        }
        array.push_back({{"backend", device.backend},
                         {"name", device.name},
                         {"usable", device.usable},
                         {"reason", device.usable ? Json(nullptr) : Json(device.reason)},
                         {"details", std::move(details)}});
    };
    for (const std::string_view name : backendNames()) {
        auto backend = makeBackend(name);
        if (!backend) {
            add({std::string(name), "", false, backend.error().message, {}});
            continue;
        }
        for (const DeviceInfo& device : (*backend)->devices()) add(device);
    }
    auto pythons = Json::array();
    const std::string text = pythonTable(pythons, session);
    if (session.json) session.answer({{"devices", std::move(array)}, {"pythons", std::move(pythons)}});
    session.out(table.text(session.colourOut()) + text);
    return ExitDone;
}

} // namespace

Command command_devices()
{
    return {"devices", "List the devices that can train here, and why the others can't", [](OptionSet& verb) -> Runner {
                auto presets = std::make_shared<bool>(false);
                auto setup = std::make_shared<Setup>();
                auto typed = std::make_shared<std::vector<TypedOption>>();
                verb.flag("--presets", *presets, "List the models and devices for --costs analytic:MODEL@DEVICE");
                addKernelTimesOptions(verb, *setup);
                verb.typed(*typed);
                return [presets, setup, typed](Session& session) {
                    return setup->elsewhere()      ? callOnHost("devices", setup->host, *typed, session)
                           : *presets              ? showPresets(session)
                           : !setup->model.empty() ? showKernelTimes(session, *setup)
                                                   : runDevices(session);
                };
            }};
}

} // namespace stagewright
