// The list of workloads, alone in its source: a test program may have a longer one.
#include "engine/workload/workload.h"

namespace stagewright {

const std::vector<WorkloadInfo>& allWorkloads()
{
    static const std::vector<WorkloadInfo> all = {
#define STAGEWRIGHT_WORKLOAD(name) workloads::name(),
#include "engine/workload/workloads.def"
#undef STAGEWRIGHT_WORKLOAD
    };
    return all;
}

} // namespace stagewright
