#include "app/costs/training_backends.h"

#include "engine/device/backend.h"

namespace stagewright {

std::vector<BackendTitle> backendsWithDevices()
{
    std::vector<BackendTitle> out;
    for (const std::string_view name : backendNames())
        if (traitsOf(name).hasDevices) out.push_back({name, traitsOf(name).title});
    return out;
}

} // namespace stagewright
