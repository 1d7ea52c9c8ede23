// The machine a training runs on: cores that are free now, and facts for a run's environment.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stagewright {

int usableCores(); // by the process's affinity, at least 1

// How many of those other programs leave idle, measured over about 0.1 s (/proc/stat); usableCores() where it can't
// be read. Rounded: a core counts as idle from 75 % idle on.
int idleCores();

// "system", "usable_cores", "compiler", "stagewright".
std::vector<std::pair<std::string, std::string>> machineFacts();

// "1.5 GiB", "12.0 KiB": rounded up, in the largest unit that is not below one.
std::string sizeText(std::int64_t bytes);

} // namespace stagewright
