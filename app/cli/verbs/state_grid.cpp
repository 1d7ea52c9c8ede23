#include "app/cli/verbs/state_grid.h"

namespace stagewright {

namespace {

struct Sharing {
    int replicas;
    const char* shard;
    const char* gather; // "": not asked for
    const char* reduce;
};

constexpr Sharing everySharing[] = {
    {2, "none", "", "overlapped"},
    {2, "optimizer:by=layer", "", "late"},
    {2, "gradients", "", "microbatch"},
    {2, "weights:shares=2/3,1/3", "batch:prefetch=1", "overlapped:bucket=4kB"},
    {3, "none", "", "late"},
    {3, "optimizer", "", "overlapped"},
    {3, "gradients:shares=1/2,1/3,1/6", "", "late"},
    {3, "weights", "microbatch:prefetch=1", "microbatch"},
};

} // namespace

std::vector<Setup> stateGrid(const Setup& setup)
{
    std::vector<Setup> out;
    for (const char* schedule : {"1f1b", "zb-h1", "bfs"}) // one backward, one in two parts, several chunks a rank
        for (const Sharing& sharing : everySharing) {
            Setup& cell = out.emplace_back(setup);
            cell.schedules = {schedule};
            cell.ranks = 2;
            cell.microbatches = 4;
            cell.replicas = sharing.replicas;
            cell.shard = sharing.shard;
            cell.gather = sharing.gather;
            cell.reduce = sharing.reduce;
        }
    return out;
}

} // namespace stagewright
