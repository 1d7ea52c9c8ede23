// Coverage: the union of time intervals, and how much of it lies inside another interval.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

class Coverage {
public:
    void add(Nanos begin, Nanos end); // in any order; empty ones are ignored

    // Part of [begin, end) that is covered. O(log intervals); the first call after an add() sorts.
    Nanos within(Nanos begin, Nanos end);
    Nanos total(); // total covered time
    bool empty() const { return m_parts.empty(); }

private:
    struct Part {
        Nanos begin;
        Nanos end;
        Nanos before; // covered time before begin
    };
    void merge();
    Nanos until(Nanos time);

    std::vector<Part> m_parts;
    std::size_t m_near = 0; // the part that was asked for last: the next is mostly there or just behind
    bool m_merged = true;
};

} // namespace stagewright
