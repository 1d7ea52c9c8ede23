#include "engine/device/traits.h"

#include "engine/device/backends.h"

namespace stagewright {

const BackendTraits& traitsOf(std::string_view wanted)
{
#define STAGEWRIGHT_BACKEND(name)                                                                                      \
    if (wanted == #name) return backends::name##Traits();
#include "engine/backends.def"
#undef STAGEWRIGHT_BACKEND
    return backends::cpuTraits();
}

} // namespace stagewright
