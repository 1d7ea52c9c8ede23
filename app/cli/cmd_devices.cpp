#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/session.h"
#include "app/cli/table.h"
#include "engine/backend.h"

namespace stagewright {

namespace {

Result<int> run(Session& session)
{
    Table table({{"backend"}, {"device"}, {"usable"}, {"why not"}});
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    const auto add = [&](const DeviceInfo& device) {
        table.add({device.backend, device.name, device.usable ? "yes" : "no", device.reason}, device.usable ? Tint::None : Tint::Dim);
        nlohmann::ordered_json details = nlohmann::ordered_json::object();
        for (const auto& [key, value] : device.details) {
            table.add({"", fmt::format("  {}: {}", key, value)}, Tint::Dim);
            details[key] = value;
        }
        array.push_back({{"backend", device.backend},
                         {"name", device.name},
                         {"usable", device.usable},
                         {"reason", device.usable ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(device.reason)},
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
    if (session.json) session.answer({{"devices", std::move(array)}});
    session.out(table.text(session.colourOut()));
    return ExitDone;
}

} // namespace

Command command_devices()
{
    return {"devices", "List what can train here and, for what can't, why", [](CLI::App&) -> Runner { return run; }};
}

} // namespace stagewright
