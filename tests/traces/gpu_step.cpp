#include "gpu_step.h"

#include "sample_runs.h"

namespace stagewright::samples {

namespace {

using samples::us;

} // namespace

std::shared_ptr<const Timeline> gpuStep(const char* other)
{
    TimelineBuilder builder(Provenance::Measured, "wall", 2);
    const auto op = [&](int rank, Op what, Nanos begin, Nanos end) {
        Span span;
        span.start = begin * us;
        span.end = end * us;
        span.op = what;
        return builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
    };
    const auto work = [&](SpanId owner, int rank, Lane lane, const char* name, Nanos begin, Nanos end,
                          const char* track = "") {
        Span span;
        span.start = begin * us;
        span.end = end * us;
        span.label = builder.intern(name) & 0xffffffu;
        const SpanId id = builder.addSpan(builder.addTrack(rank, lane, track), span);
        if (owner != noSpan) builder.addEdge(owner, id, EdgeKind::Launch, span.start);
        return id;
    };
    const SpanId f0 = op(0, makeOp(OpKind::Forward, 0, 0), 0, 100);
    const SpanId f1 = op(1, makeOp(OpKind::Forward, 1, 0), 150, 250);
    const SpanId b1 = op(1, makeOp(OpKind::Backward, 1, 0), 250, 290);
    const SpanId b0 = op(0, makeOp(OpKind::Backward, 0, 0), 300, 400);
    work(f0, 0, Lane::Kernel, "gemm", 0, 40);
    work(f0, 0, Lane::Kernel, "gelu", 50, 90);
    work(f1, 1, Lane::Kernel, "gemm", 150, 250);
    work(b1, 1, Lane::Kernel, "gemm", 250, 270);
    work(b0, 0, Lane::Kernel, "gemm", 300, 400);
    work(f0, 0, Lane::Copy, "copy within the device", 100, 120);
    work(noSpan, 0, Lane::Kernel, other, 110, 115);
    work(b1, 1, Lane::Kernel, "ncclDevKernel_SendRecv", 290, 300, "rank 1 kernel, collective");
    work(b0, 0, Lane::Kernel, "ncclDevKernel_SendRecv", 280, 300, "rank 0 kernel, collective");
    const auto message = [&](SpanId from, int fromRank, SpanId to, int toRank, OpKind kind, Nanos sendPosted,
                             Nanos posted, Nanos begin, Nanos end) {
        Span span;
        span.op = makeOp(kind, fromRank, 0);
        span.start = begin * us;
        span.end = end * us;
        const SpanId send = builder.addSpan(builder.addTrack(fromRank, Lane::Send), span);
        span.op = makeOp(kind == OpKind::SendF ? OpKind::RecvF : OpKind::RecvB, toRank, 0);
        span.start = posted * us;
        const SpanId receive = builder.addSpan(builder.addTrack(toRank, Lane::Receive), span);
        builder.addEdge(from, send, EdgeKind::Order, sendPosted * us);
        builder.addEdge(send, receive, EdgeKind::Transfer, end * us);
        builder.addEdge(receive, to, EdgeKind::Transfer, end * us);
        builder.addEdge(from, to, EdgeKind::Data, end * us);
    };
    message(f0, 0, f1, 1, OpKind::SendF, 100, 100, 100, 120);
    message(b1, 1, b0, 0, OpKind::SendB, 290, 280, 290, 300);
    return builder.build().value();
}

Run gpuRun()
{
    Run run = simulatedRun("1f1b", 2, 1);
    run.costs.reset();
    run.timeline = gpuStep();
    run.schedule = run.timeline->schedule();
    run.info.name = "gpu";
    run.info.provenance = run.timeline->provenance();
    run.info.clock = run.timeline->clock();
    run.info.steps = run.timeline->steps();
    run.info.spanCount = static_cast<std::int64_t>(run.timeline->spans().size());
    run.configuration = {
        {"model", "layers=3,hidden=64,heads=4,seq=32"}, {"stage_layers", "2,1"}, {"microbatch_size", "4"}};
    run.environment = {{"ceiling_matrix_flops", "1e12"}, {"ceiling_copy_bytes", "2e11"}};
    return run;
}

} // namespace stagewright::samples
