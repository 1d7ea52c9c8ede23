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

std::vector<GridCell> stateGrid()
{
    std::vector<GridCell> out;
    for (const char* schedule : {"1f1b", "zb-h1", "bfs"}) // one backward, one in two parts, several chunks a rank
        for (const Sharing& sharing : everySharing) {
            ReplicaOptions replicas;
            replicas.replicas = sharing.replicas;
            replicas.shard = sharing.shard;
            replicas.gather = sharing.gather;
            replicas.reduce = sharing.reduce;
            out.push_back({schedule, std::move(replicas)});
        }
    return out;
}

ShapeOptions stateGridShape()
{
    ShapeOptions out;
    out.ranks = 2;
    out.microbatches = 4;
    return out;
}

} // namespace stagewright
