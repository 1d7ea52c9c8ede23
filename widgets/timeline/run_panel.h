// A run too large for one timeline, prepared for drawing: first its stored overview, then the lanes of every step from
// consecutive blocks of spans (16 bytes per slice and their pyramid), then the details of one step beside them. Pure;
// any thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "traces/store/run_file.h"
#include "widgets/timeline/rank_tints.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

class RunPanelBuilder {
public:
    // steps: of the run, by step. Memory for the slices of compute lanes is taken at once.
    RunPanelBuilder(const RunFile::Content& content, const std::vector<RunFile::StepBounds>& steps,
                    const QString& name);

    void setKernelsByClass(bool byClass) { m_panel->byClass = m_panel->noOps || byClass; } // before the first block
    // as RunFile::streamSpans gives them
    void add(const RunFile::SpanBlock& block);
    // As RunFile::streamMemory gives them. The chart keeps first, smallest, largest and last value of at most this many
    // intervals per rank, so that the peak stays exact.
    void addMemory(std::span<const MemoryEvent> events);
    // Builds pyramids and busy shares. The panel's timeline is empty. The builder can't be used afterwards.
    std::shared_ptr<const TimelinePanel> build();

private:
    struct Row { // a rank's state while blocks arrive
        std::set<int> stages;
        std::unique_ptr<RankTints> tints;
        Nanos busy = 0;
        struct {
            Bytes inUse = 0;
            Nanos time = 0; // of inUse
            bool any = false;
            std::int64_t interval = -1;
            MemoryPoint first, least, most, last; // of the interval
        } memory;
    };
    struct Sublanes { // of one track without ops
        int rank = 0;
        Lane lane = Lane::Send;
        std::string track = {};
        std::vector<Nanos> freeAt = {};
        std::vector<LaneData> lanes = {};
    };
    void addOps(Row& row, PanelRank& rank, std::span<const Span> spans);
    void addWork(Sublanes& work, std::size_t spans, const RunFile::SpanBlock& block);
    void commit(std::size_t rank); // a memory value that lasted
    void flush(std::size_t rank);

    const RunFile::Content& m_content;
    std::shared_ptr<TimelinePanel> m_panel;
    std::vector<Row> m_rows;
    std::map<std::size_t, Sublanes> m_work; // by track
    KernelClasses m_classes;
    Nanos m_interval = 1;
};

Lane overviewLane(const RunFile::Content& content); // whose stored overview is the first picture: ops, else kernels
// The first picture: lanes of compute tracks as stored, no slices; of a run without ops a bar a device.
std::shared_ptr<const TimelinePanel> overviewPanel(const RunFile::Content& content,
                                                   const std::vector<RunFile::StepBounds>& steps,
                                                   const RunFile::Overview& overview, const QString& name);
// How many buckets to request from the file: about one per pixel, but no more than it has without reading spans.
// ofAllRanks: at most that many together where no slices will follow; 0: few, they will.
int overviewBuckets(const RunFile::Content& content, std::int64_t ofAllRanks = 0);

// The same lanes, shared, with the spans, causes and critical path of a step's own panel beside them. O(ops of the step
// × log).
std::shared_ptr<const TimelinePanel> withDetails(const TimelinePanel& lanes, const TimelinePanel& step);

} // namespace stagewright
