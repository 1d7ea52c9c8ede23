// DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) and its published DualPipe code: eight steps, the fourth of them the
// steady state of overlapped pairs. W waits in one queue of the rank, first in, first out.
#include "schedules/library/dual_pipe_list.h"

#include <array>
#include <cstddef>

namespace stagewright::library {

namespace {

struct Builder {
    std::array<DualPipePhase, 2> phases;
    DualPipeList list;
    std::array<int, 2> forwards{};
    std::array<int, 2> backwards{};
    std::vector<Op> waiting; // W ops, oldest first
    std::size_t oldest = 0;

    void forward(int phase) { add(OpKind::Forward, phase, forwards[static_cast<std::size_t>(phase)]++); }
    void backward(int phase, bool split = false)
    {
        const int microbatch = backwards[static_cast<std::size_t>(phase)]++;
        add(split ? OpKind::InputGrad : OpKind::Backward, phase, microbatch);
        if (split) waiting.push_back(opOf(OpKind::WeightGrad, phase, microbatch));
    }
    void weightGrad()
    {
        if (oldest < waiting.size()) list.ops.push_back(waiting[oldest++]);
    }
    void pair(int forwardPhase, int backwardPhase)
    {
        list.paired.push_back(static_cast<std::uint32_t>(list.ops.size()));
        forward(forwardPhase);
        backward(backwardPhase);
    }

private:
    Op opOf(OpKind kind, int phase, int microbatch) const
    {
        const DualPipePhase& at = phases[static_cast<std::size_t>(phase)];
        return makeOp(kind, at.stage, at.firstMicrobatch + microbatch);
    }
    void add(OpKind kind, int phase, int microbatch) { list.ops.push_back(opOf(kind, phase, microbatch)); }
};

} // namespace

DualPipeList dualPipeList(DualPipePhase own, DualPipePhase other, int outer, int half, int n)
{
    Builder build;
    build.phases = {own, other};
    build.list.ops.reserve(6 * static_cast<std::size_t>(n));
    const int inner = half - outer - 1; // ranks between this one and the turn
    for (int i = 0; i < 2 * inner; ++i) build.forward(0);
    for (int i = 0; i <= outer; ++i) {
        build.forward(0);
        build.forward(1);
    }
    for (int i = 0; i < inner; ++i) {
        build.backward(1, true);
        build.weightGrad();
        build.forward(1);
    }
    for (int i = 0; i < n - 2 * half + outer + 1; ++i) {
        if (i == 0 && inner == 0) { // nothing else is ready at the turn yet: not overlapped
            build.forward(0);
            build.backward(1);
        } else {
            build.pair(0, 1);
        }
        build.pair(1, 0);
    }
    for (int i = 0; i < inner; ++i) {
        build.backward(1);
        build.pair(1, 0);
    }
    bool split = false;
    const int switchAt = (outer + 1) / 2;
    for (int i = 0; i <= outer; ++i) {
        if (i == switchAt && outer % 2 == 1) split = true;
        build.backward(1, split);
        if (i == switchAt && outer % 2 == 0) split = true;
        build.backward(0, split);
    }
    for (int i = 0; i < inner; ++i) {
        build.weightGrad();
        build.backward(0, true);
    }
    for (int i = 0; i <= outer; ++i) build.weightGrad();
    return std::move(build.list);
}

} // namespace stagewright::library
