// Holdings: what holds memory on a rank at any moment and since when, and where a microbatch holds it. Built once from
// the rank's events; immutable, shared between threads.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct Holding {
    int stage = 0;
    int microbatch = -1; // −1: none (weights …)
    int step = 0;        // of the event that started it
    Bytes bytes = 0;     // at the requested moment; in holdingsOf: the maximum
    Nanos since = 0;     // timeline time when it last rose from zero
    Nanos until = 0;     // only in holdingsOf: when it was freed, or the last event's time
};

class Holdings {
public:
    // shown: the categories that count, by MemoryCategory. O(events of the rank).
    Holdings(const Timeline& timeline, int rank, const std::vector<bool>& shown);

    // Oldest first. O(checkpoint + holders), independent of earlier events.
    std::vector<Holding> at(Nanos time) const;
    // What one microbatch holds, of one step or (−1) of every step, by start. O(log holdings + found).
    std::vector<Holding> of(int microbatch, int step) const;
    bool empty() const { return m_events.empty(); }

private:
    struct Event {
        Nanos time;
        Bytes delta;
        std::int32_t microbatch;
        std::int32_t step;
        std::uint16_t stage;
    };
    static void apply(std::vector<Holding>& held, const Event& event);

    std::vector<Event> m_events;
    std::vector<std::vector<Holding>> m_checkpoints; // the holders before event i × checkpointEvery
    std::vector<Holding> m_all;                      // every holding, by (microbatch, since)
};

} // namespace stagewright
