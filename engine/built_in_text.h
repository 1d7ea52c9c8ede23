// Texts that are built into the program.
#pragma once

#include <cstdint>
#include <span>

namespace stagewright {

std::span<const std::uint8_t> builtInText(); // engine/workload/gpt/workshop.txt
std::span<const std::uint8_t> torchDriver(); // engine/torch/driver.py with the workloads' forms

} // namespace stagewright
