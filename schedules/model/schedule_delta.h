// ScheduleDelta: what differs between two schedules, small where little does, so that any number of changes can be
// undone. Of each rank the stretch that differs is kept, of both; everything else of the schedule only where it
// changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/model/schedule.h"

namespace stagewright {

class ScheduleDelta {
public:
    ScheduleDelta(const Schedule& before, const Schedule& after); // O(ops)

    void undo(Schedule& schedule) const; // precondition: it equals `after`; then it equals `before`, name included
    void redo(Schedule& schedule) const; // the other way round
    bool empty() const { return m_rows.empty() && !m_frames; }
    std::size_t memoryUse() const; // bytes, about

private:
    struct Row {
        std::size_t rank = 0;
        std::size_t at = 0; // ops before it are alike
        std::vector<Op> before, after;
        bool pairsDiffer = false;
        std::vector<std::uint32_t> pairsBefore, pairsAfter;
    };
    struct Frame { // all but the orders
        std::string name;
        int ranks = 0, stages = 0, microbatches = 0;
        Placement placement;
        WeightRule weights = WeightRule::Synchronous;
        std::vector<std::uint32_t> sliceLengths;
        StageGraph graph;
        std::size_t rows = 0, pairRows = 0;
        bool operator==(const Frame&) const = default;
    };
    static Frame frameOf(const Schedule& schedule);
    void apply(Schedule& schedule, bool forward) const;

    std::vector<Row> m_rows;
    struct Frames {
        Frame before, after;
    };
    std::optional<Frames> m_frames;
};

} // namespace stagewright
