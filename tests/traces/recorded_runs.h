// Run files of any size, written step by step as a recording writes them: one synchronous pipeline step after another,
// each simulated once and moved, every 7th step 20 % slower. Memory of the writer: one step.
#pragma once

#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "sample_runs.h"
#include "schedules/execute/simulate.h"
#include "traces/store/run_file.h"

namespace stagewright::samples {

inline std::int64_t writtenBytes() // by this process, in all its calls
{
    std::ifstream in("/proc/self/io");
    for (std::string name; in >> name;) {
        std::int64_t count = 0;
        in >> count;
        if (name == "wchar:") return count;
    }
    return -1;
}

struct RecordedShape {
    int ranks = 4;
    int microbatches = 8;
    int steps = 10;
    std::string schedule = "zb-h1";
    double latency = 0.05;
    bool memory = true;
    bool oneStep = false; // all of it is one step, too large for a timeline
};

class Recording {
public:
    Recording(const std::string& path, const RecordedShape& shape)
        : m_shape(shape), m_base(simulatedRun(shape.schedule, shape.ranks, shape.microbatches, shape.latency)),
          m_file(RunFile::open(path, OpenMode::Create).value())
    {
        Run header = m_base;
        header.timeline = nullptr;
        header.info.name = shape.schedule + " recorded";
        header.info.steps = 0;
        header.info.warmupSteps = shape.oneStep ? 0 : 1;
        header.metrics = {{"step_time_ns", "ns", {}}};
        m_writer = m_file->begin(header).value();
    }

    std::int64_t spansPerStep() const { return static_cast<std::int64_t>(m_base.timeline->spans().size()); }
    std::int64_t id() const { return m_writer->id(); }
    int steps() const { return m_step; }

    Result<void> append()
    {
        const Timeline& base = *m_base.timeline;
        const double pace = m_step % 7 == 6 ? 1.2 : 1.0;
        const auto at = [&](Nanos t) {
            return m_begin + static_cast<Nanos>(static_cast<double>(t - base.begin()) * pace);
        };
        TimelineBuilder builder(base.provenance(), base.clock(), base.ranks());
        builder.setUnits(base.timeUnit(), base.memoryUnit());
        builder.setSchedule(base.schedule());
        builder.reserve(base.spans().size());
        std::vector<SpanId> ids(base.spans().size(), noSpan);
        Nanos end = m_begin;
        for (const Track& track : base.tracks()) {
            const int number = builder.addTrack(track.rank, track.lane, track.name);
            for (SpanId id = track.begin; id < track.end; ++id) {
                Span span = base.spans()[id];
                span.start = at(span.start);
                span.end = at(span.end);
                span.step = stepNumber();
                span.label = 0;
                end = std::max(end, span.end);
                ids[id] = builder.addSpan(number, span);
            }
        }
        for (const Edge& edge : base.edges())
            builder.addEdge(ids[edge.from], ids[edge.to], edge.kind, at(edge.arrival));
        if (m_shape.memory)
            for (MemoryEvent event : base.memory()) {
                event.time = at(event.time);
                event.step = stepNumber();
                builder.addMemory(event);
            }
        STAGEWRIGHT_TRY(auto built, builder.build());
        auto done = m_writer->append(*built, {{"step_time_ns", static_cast<double>(end - m_begin)}});
        m_begin = end;
        ++m_step;
        return done;
    }

    Result<void> finish() { return m_writer->finish(); }

private:
    int stepNumber() const { return m_shape.oneStep ? 0 : m_step; }

    RecordedShape m_shape;
    Run m_base;
    std::unique_ptr<RunFile> m_file;
    std::unique_ptr<RunWriter> m_writer;
    Nanos m_begin = 1'000'000;
    int m_step = 0;
};

// The number of spans.
inline Result<std::int64_t> recordRun(const std::string& path, const RecordedShape& shape)
{
    Recording recording(path, shape);
    for (int step = 0; step < shape.steps; ++step) STAGEWRIGHT_CHECK(recording.append());
    STAGEWRIGHT_CHECK(recording.finish());
    return recording.spansPerStep() * shape.steps;
}

// A child records the steps and is killed where it is; after: called with the number of each step. False: it did not
// come so far.
inline bool recordAndDie(const std::string& path, const RecordedShape& shape,
                         const std::function<void(int)>& after = {})
{
    const pid_t child = ::fork();
    if (child == 0) {
        Recording recording(path, shape);
        for (int step = 0; step < shape.steps; ++step) {
            if (!recording.append()) ::_exit(1);
            if (after) after(step);
        }
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

} // namespace stagewright::samples
