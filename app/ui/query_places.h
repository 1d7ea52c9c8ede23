// Where the rows of a query lie on the timeline of a run: by the columns they happen to have. Pure functions for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "widgets/console/query_model.h"

namespace stagewright {

struct QueryPlace {
    std::int64_t run = 0;      // 0: the row names none
    int step = -1;             // −1: likewise
    SpanId span = noSpan;      // by span or from_span; by rank and name; by rank and start_ns
    std::optional<Nanos> time; // timeline time: start_ns, time_ns, arrival_ns, begin_ns
    bool known() const { return span != noSpan || time.has_value(); }
};

// How the run file numbers spans: as the timeline does, or step by step where it was recorded so.
enum class SpanNumbering { AsTimeline, StepByStep };

class QueryPlaces {
public:
    // Which columns name a place; nothing is read of the rows.
    explicit QueryPlaces(const std::vector<std::string>& columns);
    bool any() const; // such a column is there
    std::int64_t runOf(const std::vector<std::string>& row) const; // 0: none
    int stepOf(const std::vector<std::string>& row) const;         // −1: none
    QueryPlace of(const std::vector<std::string>& row, const Timeline& timeline, const std::vector<SpanId>& numbers) const;

private:
    int m_run, m_step, m_rank, m_span, m_name, m_time;
    bool m_timeIsStart = false;
};

// By the file's number of a span its id; empty: they are the same. O(spans).
std::vector<SpanId> spanNumbers(const Timeline& timeline, SpanNumbering numbering);

} // namespace stagewright
