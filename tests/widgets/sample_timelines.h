// Timelines for tests of the views: a simulated schedule, and lanes written by hand.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright::samples {

inline constexpr Bytes gib = Bytes(1) << 30;

// F 10 ms, I 10 ms, W 10 ms, B 20 ms, link latency 1 ms, 1 GiB per activation.
inline std::shared_ptr<const Timeline> simulated(const std::string& name, int ranks = 4, int microbatches = 8)
{
    const auto schedule = makeSchedule(name, Shape{ranks, microbatches, 0});
    if (!schedule) return nullptr;
    CostModel costs(schedule->stages, CostSource::Analytic);
    for (int stage = 0; stage < schedule->stages; ++stage) {
        costs.setDuration(OpKind::Forward, stage, 10'000'000);
        costs.setDuration(OpKind::InputGrad, stage, 10'000'000);
        costs.setDuration(OpKind::WeightGrad, stage, 10'000'000);
        costs.setDuration(OpKind::Backward, stage, 20'000'000);
        StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        memory.activation = gib;
        memory.freedAtInput = gib / 2;
    }
    costs.links.all.latency = 1'000'000;
    const auto timeline = simulatedTimeline(*schedule, costs);
    return timeline ? *timeline : nullptr;
}

struct Piece {
    Nanos begin;
    Nanos end;
    OpKind kind = OpKind::Forward;
    int microbatch = 0;
};

// One rank per vector.
inline std::shared_ptr<const Timeline> written(const std::vector<std::vector<Piece>>& ranks)
{
    TimelineBuilder builder(Provenance::Imported, "wall", static_cast<int>(ranks.size()));
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const int track = builder.addTrack(static_cast<int>(r), Lane::Compute);
        for (const Piece& piece : ranks[r]) {
            Span span;
            span.start = piece.begin;
            span.end = piece.end;
            span.op = makeOp(piece.kind, static_cast<int>(r), piece.microbatch);
            builder.addSpan(track, span);
        }
    }
    const auto timeline = builder.build();
    return timeline ? *timeline : nullptr;
}

inline SpanId spanOf(const Timeline& timeline, const std::string& text)
{
    for (SpanId id = 0; id < timeline.spans().size(); ++id) {
        if (timeline.trackOf(id).lane == Lane::Compute && toText(timeline.spans()[id].op) == text) return id;
    }
    return noSpan;
}

} // namespace stagewright::samples
