// The makers of the backends listed in backends.def, and their traits: stagewright::backends::<name>() and
// <name>Traits().
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace stagewright::backends {

#define STAGEWRIGHT_BACKEND(name)                                                                                      \
    Result<std::unique_ptr<Backend>> name(const DeviceOptions& options);                                               \
    const BackendTraits& name##Traits();
#include "engine/backends.def"
#undef STAGEWRIGHT_BACKEND

} // namespace stagewright::backends
