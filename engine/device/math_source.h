// A backend that gives access to its arithmetic, so that it can be compared with the CPU's kernel by kernel.
#pragma once

#include <memory>

#include "engine/device/math.h"

namespace stagewright::layers {

class MathSource {
public:
    virtual ~MathSource() = default;
    // allocator: of a memory of this backend; outlives the LayerMath. streaming: attention streams its keys at any
    // length. Throws std::runtime_error where the memory is another's.
    virtual std::unique_ptr<LayerMath> makeMath(Allocator& allocator, bool streaming) const = 0;
};

} // namespace stagewright::layers
