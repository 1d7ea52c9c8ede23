// Helpers of the training tests: the fake backend under a library schedule.
#pragma once

#include <memory>

#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "support/fake_backend.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

namespace stagewright::test {

inline Schedule librarySchedule(std::string_view name, int ranks, int microbatches, int chunks = 0)
{
    Shape shape;
    shape.ranks = ranks;
    shape.microbatches = microbatches;
    shape.chunks = chunks;
    return *makeSchedule(name, shape);
}

inline TrainingOptions fakeOptions(ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions options;
    options.workload = test::gpt({16, 16, 2, 8, 256});
    options.microbatchSize = 2;
    options.clock = clock;
    options.backend = "fake";
    options.timeoutSeconds = 30;
    return options;
}

inline Result<std::unique_ptr<Training>> fakeTraining(const Schedule& schedule, const TrainingOptions& options,
                                                      const FakeOptions& fake = {})
{
    TrainingOptions own = options;
    own.workload = fakeWorkload(*options.workload, fake);
    return trainingOf(schedule, own, std::make_unique<BareBackend>(fake.memory));
}

// 1 − busy / (ranks × time from the first to the last busy span).
inline double bubbleOf(const Timeline& timeline)
{
    Nanos first = timeline.end();
    Nanos last = timeline.begin();
    for (const Span& span : timeline.spans()) {
        if (!isBusy(span.op.kind)) continue;
        first = std::min(first, span.start);
        last = std::max(last, span.end);
    }
    Nanos covered = 0; // a pair once; optimizer and reductions between busy ops, too
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        Nanos until = first;
        for (const Span& span : timeline.spansOf(track)) {
            covered += std::max<Nanos>(0, std::min(span.end, last) - std::max(span.start, until));
            until = std::max(until, span.end);
        }
    }
    return 1.0 -
           static_cast<double>(covered) / (static_cast<double>(timeline.ranks()) * static_cast<double>(last - first));
}

} // namespace stagewright::test
