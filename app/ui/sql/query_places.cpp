#include "app/ui/sql/query_places.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "traces/run/notes.h"

namespace stagewright {
namespace {

int placeOf(const std::vector<std::string>& columns, std::initializer_list<const char*> names)
{
    for (const char* name : names) {
        const auto found = std::find(columns.begin(), columns.end(), name);
        if (found != columns.end()) return static_cast<int>(found - columns.begin());
    }
    return -1;
}

std::optional<std::int64_t> integer(const std::vector<std::string>& row, int column)
{
    if (column < 0 || column >= static_cast<int>(row.size())) return std::nullopt;
    const std::string& text = row[static_cast<std::size_t>(column)];
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                       : std::nullopt;
}

SpanId startingAt(const Timeline& timeline, int rank, Nanos start)
{
    for (const Track& track : timeline.tracks()) {
        if (track.rank != rank) continue;
        const auto spans = timeline.spansOf(track);
        const auto at = std::lower_bound(spans.begin(), spans.end(), start,
                                         [](const Span& span, Nanos t) { return span.start < t; });
        if (at != spans.end() && at->start == start) return track.begin + static_cast<SpanId>(at - spans.begin());
    }
    return noSpan;
}

} // namespace

QueryPlaces::QueryPlaces(const std::vector<std::string>& columns)
    : m_run(placeOf(columns, {"run"})), m_step(placeOf(columns, {"step"})), m_rank(placeOf(columns, {"rank"})),
      m_span(placeOf(columns, {"span", "from_span", "to_span"})), m_name(placeOf(columns, {"name", "op"})),
      m_time(placeOf(columns, {"start_ns", "time_ns", "arrival_ns", "begin_ns"}))
{
    m_timeIsStart = m_time >= 0 && columns[static_cast<std::size_t>(m_time)] == "start_ns";
}

bool QueryPlaces::any() const { return m_span >= 0 || m_time >= 0 || (m_rank >= 0 && m_name >= 0); }

std::int64_t QueryPlaces::runOf(const std::vector<std::string>& row) const { return integer(row, m_run).value_or(0); }

int QueryPlaces::stepOf(const std::vector<std::string>& row) const
{
    const auto step = integer(row, m_step);
    return step ? static_cast<int>(std::clamp<std::int64_t>(*step, -1, 1'000'000'000)) : -1;
}

QueryPlace QueryPlaces::of(const std::vector<std::string>& row, const Timeline& timeline,
                           const std::vector<SpanId>& numbers) const
{
    QueryPlace place;
    place.run = runOf(row);
    place.step = stepOf(row);
    place.time = integer(row, m_time);
    const auto rank = integer(row, m_rank);
    if (const auto number = integer(row, m_span);
        number && *number >= 0 && *number < static_cast<std::int64_t>(timeline.spans().size()))
        place.span = numbers.empty() ? static_cast<SpanId>(*number) : numbers[static_cast<std::size_t>(*number)];
    if (place.span == noSpan && rank && place.time && m_timeIsStart)
        place.span = startingAt(timeline, static_cast<int>(*rank), *place.time);
    if (place.span == noSpan && rank && m_name >= 0) {
        Note anchor;
        anchor.rank = static_cast<int>(*rank);
        anchor.op = row[static_cast<std::size_t>(m_name)];
        anchor.step = std::max(0, place.step);
        place.span = spanOfNote(timeline, anchor);
    }
    if (place.span != noSpan) {
        place.step = timeline.spans()[place.span].step;
        if (!place.time) place.time = timeline.spans()[place.span].start;
    }
    return place;
}

std::vector<SpanId> spanNumbers(const Timeline& timeline, SpanNumbering numbering)
{
    std::vector<SpanId> numbers;
    if (numbering == SpanNumbering::AsTimeline) return numbers;
    numbers.reserve(timeline.spans().size());
    for (int step = 0; step < timeline.steps(); ++step)
        for (const Track& track : timeline.tracks()) {
            const auto [first, last] = timeline.stepRange(track, step);
            for (SpanId id = first; id < last; ++id)
                if (timeline.spans()[id].step == step) numbers.push_back(id);
        }
    return numbers;
}

} // namespace stagewright
