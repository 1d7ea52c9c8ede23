// The kinds of devices that the engine can train on, for the window.
#pragma once

#include <string_view>
#include <vector>

namespace stagewright {

struct BackendTitle {
    std::string_view name;  // as --backend takes it
    std::string_view title; // "GPUs (CUDA)"
};

// Those with devices of their own: all but the processor.
std::vector<BackendTitle> backendsWithDevices();

} // namespace stagewright
