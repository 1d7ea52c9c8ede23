// The makers of the backends listed in backends.def, one each: stagewright::backends::<name>().
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace stagewright::backends {

#define STAGEWRIGHT_BACKEND(name) Result<std::unique_ptr<Backend>> name(const DeviceOptions& options);
#include "engine/backends.def"
#undef STAGEWRIGHT_BACKEND

} // namespace stagewright::backends
