// The list of workloads of a test program: the engine's, and those that exist in tests. It comes instead of
// engine/workload/workloads.cpp.
#include "engine/workload/workload.h"

namespace stagewright {

namespace workloads {
#define STAGEWRIGHT_WORKLOAD(name) WorkloadInfo name();
#include "support/workloads.def"
#undef STAGEWRIGHT_WORKLOAD
} // namespace workloads

const std::vector<WorkloadInfo>& allWorkloads()
{
    static const std::vector<WorkloadInfo> all = {
#define STAGEWRIGHT_WORKLOAD(name) workloads::name(),
#include "engine/workload/workloads.def"
#include "support/workloads.def"
#undef STAGEWRIGHT_WORKLOAD
    };
    return all;
}

} // namespace stagewright
