// Where the rows of a query are on a run's timeline, by the columns they have. Pure functions for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "widgets/console/query_model.h"

namespace stagewright {

struct QueryPlace {
    std::int64_t run = 0;      // 0: none in the row
    int step = -1;             // −1: none in the row
    SpanId span = noSpan;      // by span or from_span; by rank and name; by rank and start_ns
    std::optional<Nanos> time; // timeline time: start_ns, time_ns, arrival_ns, begin_ns
    bool known() const { return span != noSpan || time.has_value(); }
};

// How the run file numbers spans: like the timeline, or per step if recorded that way.
enum class SpanNumbering {
    AsTimeline,
    StepByStep,
};

class QueryPlaces {
public:
    // Finds the columns that name a place; reads no rows.
    explicit QueryPlaces(const std::vector<std::string>& columns);
    bool any() const;                                              // there is such a column
    std::int64_t runOf(const std::vector<std::string>& row) const; // 0: none
    int stepOf(const std::vector<std::string>& row) const;         // −1: none
    QueryPlace of(const std::vector<std::string>& row, const Timeline& timeline,
                  const std::vector<SpanId>& numbers) const;

private:
    int m_run, m_step, m_rank, m_span, m_name, m_time;
    bool m_timeIsStart = false;
};

// Span ids by the file's span numbers; empty: they are the same. O(spans).
std::vector<SpanId> spanNumbers(const Timeline& timeline, SpanNumbering numbering);

} // namespace stagewright
