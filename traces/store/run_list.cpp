#include "traces/store/run_list.h"

#include <cmath>
#include <limits>

#include "schedules/text/cost_json.h"
#include "traces/store/note_rows.h"
#include "traces/store/run_reader.h"

namespace stagewright {

namespace {

// Rows of a table, whose first column is the run, in the order of the runs.
class RowsByRun {
public:
    RowsByRun(Database& database, std::string_view sql) : m_database(database), m_rows(database.prepare(sql)) {}

    // Those of a run, which is a later one with each call.
    template <typename Row>
    Result<void> take(std::int64_t run, Row row)
    {
        if (!m_rows) return tl::unexpected(m_rows.error());
        for (;; m_read = false) {
            if (!m_read) {
                const auto more = m_database.step(*m_rows);
                m_ended = !more || !*more;
                m_read = true;
                if (!more) return tl::unexpected(more.error());
            }
            if (m_ended || m_rows->integer(0) > run) return {};
            if (m_rows->integer(0) == run) row(*m_rows);
        }
    }

private:
    Database& m_database;
    Result<Statement> m_rows;
    bool m_read = false; // a row that was not taken yet, or the end
    bool m_ended = false;
};

class List {
public:
    explicit List(Database& database)
        : m_rows(database, "SELECT id, time_unit, memory_unit, costs FROM run ORDER BY id"),
          m_texts(database,
                  "SELECT run, key, value, section='environment' FROM run_text WHERE section IN ('configuration', "
                  "'environment') ORDER BY run, section, ordinal"),
          m_contention(database, "SELECT m.run, v.step, v.value FROM metric AS m JOIN metric_value AS v ON v.run=m.run "
                                 "AND v.metric=m.metric "
                                 "WHERE m.name='contention' ORDER BY m.run, m.metric, v.step"),
          m_notes(database, allNotes())
    {
    }

    // What can't be read is left out, except notes.
    Result<RunFile::ListedRun> of(RunInfo info, bool notes)
    {
        RunFile::ListedRun listed;
        const std::int64_t id = info.id;
        listed.run.info = std::move(info);
        (void)m_rows.take(id, [&](const Statement& row) {
            listed.timeUnit = std::max<Nanos>(1, row.integer(1));
            listed.memoryUnit = std::max<Bytes>(1, row.integer(2));
            if (row.isNull(3)) return;
            if (auto costs = readCostsJson(row.text(3))) listed.run.costs = std::move(*costs);
        });
        (void)m_texts.take(id, [&](const Statement& row) {
            (row.integer(3) != 0 ? listed.run.environment : listed.run.configuration)
                .emplace_back(row.text(1), row.text(2));
        });
        (void)m_contention.take(id,
                                [&](const Statement& row) { addContention(listed.run, row.integer(1), row.real(2)); });
        if (!notes) return listed;
        if (auto taken = m_notes.take(id, [&](const Statement& row) { listed.notes.push_back(noteOf(row, 1)); });
            !taken)
            return tl::unexpected(std::move(taken.error()));
        return listed;
    }

private:
    // By step; steps without a value have no number, and there are not many more of them than values in the file.
    void addContention(Run& run, std::int64_t step, double value)
    {
        if (run.metrics.empty()) run.metrics.push_back({"contention", "", {}});
        std::vector<double>& values = run.metrics.front().values;
        if (step < static_cast<std::int64_t>(values.size())) return;
        const std::int64_t gap = step - static_cast<std::int64_t>(values.size());
        if (gap > m_gaps) return;
        m_gaps -= gap;
        values.resize(static_cast<std::size_t>(step), std::numeric_limits<double>::quiet_NaN());
        values.push_back(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
    }

    RowsByRun m_rows, m_texts, m_contention, m_notes;
    std::int64_t m_gaps = 1'000'000; // of all runs
};

} // namespace

Result<void> listRuns(RunStore& store, const RunFile::ListSink& sink, const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto total, store.database->integer("SELECT count(*) FROM run"));
    STAGEWRIGHT_TRY(const auto notes, hasNotes(*store.database));
    constexpr std::int64_t between = 1000;
    List list(*store.database);
    std::int64_t done = 0;
    return eachRunInfo(store, [&](RunInfo info) -> Result<void> { // none is kept: there may be millions
        if (progress.cancelled()) return fail(ErrorCode::Cancelled, "listing was cancelled");
        if (done > 0 && done % between == 0) progress.tell("runs", done, total);
        ++done;
        STAGEWRIGHT_TRY(auto listed, list.of(std::move(info), notes));
        sink(std::move(listed));
        return {};
    });
}

} // namespace stagewright
