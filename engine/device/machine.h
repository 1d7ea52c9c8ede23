// The machine a training runs on: cores that are free now, and facts for a run's environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stagewright {

int usableCores(); // by the process's affinity, at least 1

// How many of those other programs leave idle, measured over about 0.1 s (/proc/stat); usableCores() where it can't
// be read. Rounded: a core counts as idle from 75 % idle on.
int idleCores();

// "system", "usable_cores", "compiler", "stagewright", and those variables of the environment that choose how processes
// communicate: NCCL_…, GLOO_…, UCX_NET_DEVICES, OMPI_MCA_btl_tcp_if_include.
std::vector<std::pair<std::string, std::string>> machineFacts();

} // namespace stagewright
