// Memory timelines of PyTorch (torch.profiler's export_memory_timeline), in both forms:
//
//     [[1759300000000000, …], [[0, 4096, 0, 0, 512, 0, 0, 0, 0], …]]      times in µs; after a 0, bytes by category
//     [[-1, 1, 4096, 0], [1759300000000000000, 2, 512, 3], …]             *.raw.json: ns, action, ± bytes, category
//
// A time of −1 is before the first. Read as a stream of numbers.
#include "traces/import/memory/memory_timeline.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/base/time_limits.h"
#include "traces/foreign/byte_iterator.h"
#include "traces/import/memory/memory_snapshot.h"

namespace stagewright {

namespace {

using nlohmann::json;

constexpr const char* bringMemoryTrace =
    "bring the trace of the same profiler, recorded with profile_memory=True, or a memory snapshot (docs/formats.md)";

struct TimelineCategory {
    MemoryCategory category;
    const char* counter; // of what has no category here; null: it has one
};
// In PyTorch's order.
constexpr std::array<TimelineCategory, 8> timelineCategories{{
    {MemoryCategory::Weights, nullptr},
    {MemoryCategory::Optimizer, nullptr},
    {MemoryCategory::Workspace, "inputs"},
    {MemoryCategory::Workspace, nullptr}, // temporary
    {MemoryCategory::Activations, nullptr},
    {MemoryCategory::Gradients, nullptr},
    {MemoryCategory::Workspace, "autograd detail"},
    {MemoryCategory::Workspace, "memory of unknown category"},
}};

// Changes as they come. The number of lists around a number says what it is.
class TimelineSax {
public:
    TimelineSax(const Progress& progress, const ByteSource& source) : m_progress(progress), m_source(source) {}

    bool null() { return other(); }
    bool boolean(bool) { return other(); }
    bool number_integer(std::int64_t number) { return take(number); }
    bool number_unsigned(std::uint64_t number)
    {
        return take(static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX)));
    }
    bool number_float(double number, const std::string&)
    {
        return number > -9e18 && number < 9e18 ? take(static_cast<std::int64_t>(number)) : other();
    }
    bool string(std::string&) { return other(); }
    bool binary(json::binary_t&) { return false; }
    bool key(std::string&) { return false; }
    bool start_object(std::size_t) { return refuse(); }
    bool end_object() { return false; }
    bool start_array(std::size_t)
    {
        ++m_depth;
        if (m_depth == inList) ++m_list;
        if (m_depth == inRow && m_list == 1 && m_row.empty()) m_sizes = true;
        if (m_depth > (m_sizes ? inRow : inList)) return refuse();
        m_row.clear();
        m_wholeRow = true;
        return true;
    }
    bool end_array()
    {
        if (m_depth == inRow) endSizes();
        if (m_depth == inList && !m_sizes && m_list > 0) {
            if (m_list == 1) addFirst();
            endChange(m_row, m_wholeRow);
        }
        --m_depth;
        if ((++m_ended & 0xffff) == 0) m_progress.tell("reading", m_source.consumed(), m_source.size());
        return !m_progress.cancelled();
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception&)
    {
        if (m_errorAt < 0) m_errorAt = static_cast<std::int64_t>(position);
        return false;
    }

    // After the last value. What a file of one row holds is a change.
    void end()
    {
        if (!m_sizes && m_list == 0) addFirst();
        const auto first = std::find_if(m_changes.begin(), m_changes.end(), [](const auto& c) { return c.time >= 0; });
        if (first == m_changes.end()) {
            m_changes.clear();
            return;
        }
        Nanos least = first->time;
        for (const MemoryChangeSeen& change : m_changes)
            if (change.time >= 0) least = std::min(least, change.time);
        for (MemoryChangeSeen& change : m_changes) change.time = change.time < 0 ? least : change.time;
        for (CounterSeen& counter : m_counters)
            for (CounterSample& sample : counter.samples) sample.time = sample.time < 0 ? least : sample.time;
    }
    std::vector<MemoryChangeSeen>& changes() { return m_changes; }
    std::array<CounterSeen, timelineCategories.size()>& counters() { return m_counters; }
    std::int64_t rows() const { return m_rows; }
    std::int64_t damaged() const { return m_damaged + (m_sizes ? lacking() : 0); }
    std::int64_t errorAt() const { return m_errorAt; } // byte; −1: none
    bool refused() const { return m_refused; }

private:
    static constexpr int inList = 2; // the times, or a change
    static constexpr int inRow = 3;  // sizes at a time

    bool refuse()
    {
        m_refused = true;
        return false;
    }
    bool other()
    {
        m_wholeRow = false;
        return take(INT64_MAX); // out of every range; in a list of times it keeps the place
    }
    bool take(std::int64_t number)
    {
        if (m_depth < inList) return refuse();
        if (m_list == 0)
            m_first.push_back(number);
        else if (m_row.size() <= timelineCategories.size() + 1)
            m_row.push_back(number);
        return true;
    }
    // The first list is of times, or the first change.
    void addFirst()
    {
        endChange(m_first, true);
        m_first.clear();
    }
    std::int64_t lacking() const { return static_cast<std::int64_t>(m_first.size()) - m_rows - m_damaged; }
    void endChange(const std::vector<std::int64_t>& row, bool isWhole)
    {
        constexpr std::int64_t mostActions = 16; // four are known
        if (row.empty()) return;
        if (!isWhole || row.size() != 4 || row[1] < 0 || row[1] >= mostActions || row[3] < 0 ||
            row[3] >= static_cast<std::int64_t>(timelineCategories.size()) || !add(row[0], row[3], row[2]))
            ++m_damaged;
        else
            ++m_rows;
    }
    void endSizes()
    {
        const auto at = static_cast<std::size_t>(m_rows + m_damaged);
        bool fits = m_wholeRow && m_row.size() == timelineCategories.size() + 1 && at < m_first.size() &&
                    m_first[at] <= farthestReading / 1000;
        for (std::size_t c = 0; fits && c < timelineCategories.size(); ++c)
            fits = m_row[c + 1] >= -mostMemoryBytes && m_row[c + 1] <= mostMemoryBytes;
        if (!fits) {
            ++m_damaged;
            return;
        }
        ++m_rows;
        for (std::size_t c = 0; c < timelineCategories.size(); ++c)
            add(m_first[at] < 0 ? -1 : m_first[at] * 1000, static_cast<std::int64_t>(c), m_row[c + 1] - m_held[c]);
    }
    bool add(Nanos time, std::int64_t category, std::int64_t bytes)
    {
        if (bytes < -2 * mostMemoryBytes || bytes > 2 * mostMemoryBytes || time > farthestReading) return false;
        if (bytes == 0) return true;
        const auto c = static_cast<std::size_t>(category);
        Bytes& held = m_held[c];
        if (held + bytes < -2 * mostMemoryBytes || held + bytes > 2 * mostMemoryBytes) return false;
        held += bytes;
        MemoryChangeSeen change;
        change.time = time < 0 ? -1 : time;
        change.delta = bytes;
        change.device = true;
        change.category = timelineCategories[c].category;
        m_changes.push_back(change);
        if (timelineCategories[c].counter != nullptr)
            m_counters[c].samples.push_back({change.time, static_cast<double>(held)});
        return true;
    }

    const Progress& m_progress;
    const ByteSource& m_source;
    int m_depth = 0;
    int m_list = -1;                          // of the root's lists
    bool m_sizes = false;                     // the form of times and sizes; else that of changes
    std::vector<std::int64_t> m_first, m_row; // the root's first list; the list that is open
    bool m_wholeRow = true;                   // it has numbers only
    std::array<Bytes, timelineCategories.size()> m_held{};
    std::vector<MemoryChangeSeen> m_changes;
    std::array<CounterSeen, timelineCategories.size()> m_counters{};
    std::int64_t m_rows = 0, m_damaged = 0, m_ended = 0;
    std::int64_t m_errorAt = -1;
    bool m_refused = false;
};

// What is workspace here only because no category is its own.
std::string elsewhereText(const std::array<CounterSeen, timelineCategories.size()>& counters)
{
    std::string text;
    for (std::size_t c = 0; c < counters.size(); ++c) {
        double most = 0;
        for (const CounterSample& sample : counters[c].samples) most = std::max(most, sample.value);
        if (most > 0)
            text += fmt::format("{}{} (at most {})", text.empty() ? "" : ", ", timelineCategories[c].counter,
                                formatBytes(static_cast<Bytes>(most)));
    }
    return text;
}

Result<ForeignFile> readTimelineFile(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    (void)options;
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    return readMemoryTimeline(*source, path, progress);
}

// "[[1759300000000, …": lists of numbers.
bool looksLikeTimeline(std::string_view head)
{
    if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
    std::string_view text = trimmed(head);
    for (int opened = 0; opened < 2; ++opened) {
        if (!text.starts_with('[')) return false;
        text = trimmed(text.substr(1));
    }
    return !text.empty() && (isDigit(text.front()) || text.front() == '-' || text.front() == ']');
}

} // namespace

Result<ForeignFile> readMemoryTimeline(ByteSource& source, const std::string& name, const Progress& progress)
{
    TimelineSax sax(progress, source);
    const bool whole = json::sax_parse(ByteIterator(source), ByteIterator(), &sax);
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
    if (!sax.refused()) sax.end();
    if (sax.refused() || (whole && sax.rows() == 0 && sax.damaged() > 0))
        return fail(ErrorCode::Unreadable,
                    "lists of numbers, but not those of PyTorch's memory timeline (export_memory_timeline)",
                    bringMemoryTrace);
    if (sax.changes().empty())
        return fail(ErrorCode::Unreadable,
                    whole ? std::string("the memory timeline has no change of memory at a time")
                          : fmt::format("damaged at byte {}", sax.errorAt()),
                    "export it for the device that the job uses: export_memory_timeline(path, device=\"cuda:0\")");
    ForeignFile out;
    ForeignRank& rank = out.ranks.emplace_back();
    rank.source = name;
    rank.format = "memory-timeline";
    rank.events = sax.rows();
    rank.damaged = sax.damaged();
    rank.memory = std::move(sax.changes());
    rank.threads.push_back({"host", false});
    const auto [first, last] = std::minmax_element(rank.memory.begin(), rank.memory.end(),
                                                   [](const auto& a, const auto& b) { return a.time < b.time; });
    rank.annotations.push_back({first->time, last->time, rank.names.idOf("memory timeline"), 0});
    rank.notes.push_back(fmt::format("memory by category over time: by which op, stage and microbatch it is held is "
                                     "unknown; {}",
                                     bringMemoryTrace));
    if (const std::string elsewhere = elsewhereText(sax.counters()); !elsewhere.empty())
        rank.notes.push_back("counted as workspace: " + elsewhere);
    for (std::size_t c = 0; c < timelineCategories.size(); ++c) {
        CounterSeen& counter = sax.counters()[c];
        if (counter.samples.empty()) continue;
        counter.name = timelineCategories[c].counter;
        counter.unit = "bytes";
        rank.counters.push_back(std::move(counter));
    }
    if (!whole)
        rank.notes.push_back(
            source.damage().empty()
                ? fmt::format("the file is damaged at byte {}: what comes after it is missing", sax.errorAt())
                : source.damage());
    return out;
}

namespace formats {

extern const FormatInfo memory_timeline;
const FormatInfo memory_timeline{
    .name = "memory-timeline",
    .title = "Memory timeline of PyTorch",
    .reads = "memory timelines of PyTorch",
    .suffixes = {".json", ".json.gz"},
    .sniff = looksLikeTimeline,
    .read = readTimelineFile,
};

} // namespace formats

} // namespace stagewright
