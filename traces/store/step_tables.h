// Which tables of a run a stream of steps carries, and by which column each of them grows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/store/schema.h"

namespace stagewright {

struct StepTable {
    std::string_view name;
    std::string_view columns; // besides the run
    int count = 0;            // of them
    std::string_view grows;   // the column; "": sent as a whole
    bool text = false;        // sent with the first step and at the end
    bool summarised = false;  // has rows of summarySegment at the end
};

inline constexpr std::uint8_t runRowTable = 255; // a row of `run` itself
inline constexpr std::string_view runRowColumns =
    "name, schedule_name, note, created_unix_ms, state, provenance, clock, ranks, stages, microbatches, steps, "
    "warmup_steps, "
    "span_count, begin_ns, end_ns, time_unit, memory_unit, schedule, realised, costs";
inline constexpr int runRowCount = 20;
inline constexpr std::string_view runStepColumns =
    "steps, span_count, begin_ns, end_ns, time_unit, memory_unit, realised";
inline constexpr int runStepCount = 7;

// A user's notes and bookmarks are not part of a recording.
inline std::size_t stepTableCount()
{
    return static_cast<std::size_t>(std::find_if(runTables().begin(), runTables().end(),
                                                 [](const RunTable& table) { return table.name == "note"; }) -
                                    runTables().begin());
}

inline StepTable stepTable(std::size_t number)
{
    const RunTable& table = runTables()[number];
    StepTable out{
        table.name, table.columns, static_cast<int>(std::count(table.columns.begin(), table.columns.end(), ',')) + 1,
        {},         false,         false};
    if (table.name == "run_text")
        out.text = true;
    else if (table.name == "metric_value")
        out.grows = "step";
    else
        out.grows = table.columns.substr(0, table.columns.find(',')); // segment, or the table's own number
    out.summarised = table.name == "pyramid";
    return out;
}

} // namespace stagewright
