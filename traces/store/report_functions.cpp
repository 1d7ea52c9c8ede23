// The SQL functions report_NAME(run, step): the tables of a run's report as rows. Eponymous virtual tables whose
// arguments are hidden columns, so that they join: FROM runs, report_bubbles(runs.run).
#include "traces/store/report_functions.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "traces/report/tables.h"
#include "traces/store/sql_tables.h"
#include "traces/store/virtual_table.h"

namespace stagewright {

namespace {

// The run last asked for, read by a connection of its own: reading takes a savepoint, which a query may not.
class LastRun {
public:
    explicit LastRun(const Database& asking) : m_asking(asking) {}

    // A large run is read as far as a table of that step needs (−1: of the representative one), and whole once another
    // step is asked for, or a table of all.
    Result<std::shared_ptr<const Run>> read(std::int64_t id, int step, bool ofEveryStep)
    {
        const Progress progress = m_asking.query() != nullptr ? *m_asking.query() : Progress();
        if (!m_file) {
            STAGEWRIGHT_TRY(m_file, RunFile::open(m_asking.path(), OpenMode::Read));
        }
        auto infos = m_file->runs(); // a run that is being recorded grows
        if (!infos) return tl::unexpected(std::move(infos.error()));
        for (const RunInfo& info : *infos) {
            if (info.id != id) continue;
            const bool known = m_run && m_run->info.id == id && m_run->info.spanCount == info.spanCount;
            if (known && (!m_part || (*m_part == step && !ofEveryStep))) return m_run;
            m_part = std::nullopt;
            if (!known && !ofEveryStep && info.spanCount > wholeRunSpans) m_part = step;
            m_run = nullptr;
            STAGEWRIGHT_TRY(auto run, m_part ? m_file->readForReport(id, step, progress) : m_file->read(id, progress));
            m_run = std::make_shared<const Run>(std::move(run));
            return m_run;
        }
        return std::shared_ptr<const Run>(); // as of a table without such a row
    }

private:
    const Database& m_asking; // it lives longer
    std::unique_ptr<RunFile> m_file;
    std::shared_ptr<const Run> m_run;
    std::optional<int> m_part; // the step that it was read for; nothing: it is whole
};

struct Function { // what SQLite carries for us
    const AnalysisInfo* analysis;
    std::shared_ptr<LastRun> runs; // shared by the functions of a connection
};

struct FunctionTable {
    sqlite3_vtab base{};
    const Function* function = nullptr;
};

struct FunctionCursor {
    sqlite3_vtab_cursor base{};
    const Function* function = nullptr;
    ReportTable table;
    std::int64_t run = 0;
    int step = 0;
    std::size_t row = 0;
};

enum Argument {
    ArgumentRun = 1,
    ArgumentStep = 2,
}; // bits of what xBestIndex passes on, in this order

int connect(sqlite3* handle, void* aux, int, const char* const*, sqlite3_vtab** result, char**)
{
    const auto* function = static_cast<const Function*>(aux);
    std::string columns;
    for (const TableColumn& column : function->analysis->columns()) {
        const char* type = column.kind == ColumnKind::Text                                       ? "TEXT"
                           : column.kind == ColumnKind::Share || column.kind == ColumnKind::Real ? "REAL"
                                                                                                 : "INTEGER";
        columns += fmt::format("\"{}\" {}, ", column.key, type);
    }
    const int code = sqlite3_declare_vtab(
        handle, fmt::format("CREATE TABLE x({}run INTEGER HIDDEN, step INTEGER HIDDEN)", columns).c_str());
    if (code != SQLITE_OK) return code;
    auto* table = new (std::nothrow) FunctionTable;
    if (table == nullptr) return SQLITE_NOMEM;
    table->function = function;
    *result = &table->base;
    return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table)
{
    delete reinterpret_cast<FunctionTable*>(table);
    return SQLITE_OK;
}

int failed(sqlite3_vtab* table, const Function& function, const std::string& message)
{
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s: %s", reportFunction(*function.analysis).c_str(), message.c_str());
    return SQLITE_ERROR;
}

int bestIndex(sqlite3_vtab* base, sqlite3_index_info* info)
{
    const auto* table = reinterpret_cast<FunctionTable*>(base);
    const int runColumn = static_cast<int>(table->function->analysis->columns().size());
    int next = 1;
    for (const int argument : {0, 1}) {
        for (int i = 0; i < info->nConstraint; ++i) {
            const auto& constraint = info->aConstraint[i];
            if (constraint.iColumn != runColumn + argument || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
            if (constraint.usable == 0) return SQLITE_CONSTRAINT; // another order of the join can give it
            info->idxNum |= 1 << argument;
            info->aConstraintUsage[i].argvIndex = next++;
            info->aConstraintUsage[i].omit = 1;
            break;
        }
    }
    info->estimatedCost = 1e4;
    if ((info->idxNum & ArgumentRun) != 0) return SQLITE_OK;
    return failed(base, *table->function,
                  fmt::format("of which run? write {}(1)", reportFunction(*table->function->analysis)));
}

int openCursor(sqlite3_vtab* table, sqlite3_vtab_cursor** result)
{
    auto* cursor = new (std::nothrow) FunctionCursor;
    if (cursor == nullptr) return SQLITE_NOMEM;
    cursor->function = reinterpret_cast<FunctionTable*>(table)->function;
    *result = &cursor->base;
    return SQLITE_OK;
}

int closeCursor(sqlite3_vtab_cursor* cursor)
{
    delete reinterpret_cast<FunctionCursor*>(cursor);
    return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int arguments, const char*, int, sqlite3_value** values)
{
    auto& cursor = *reinterpret_cast<FunctionCursor*>(base);
    cursor.table = {};
    cursor.row = 0;
    cursor.run = sqlite3_value_int64(values[0]);
    const bool given = (arguments & ArgumentStep) != 0 && sqlite3_value_type(values[1]) != SQLITE_NULL;
    const std::int64_t asked =
        given ? std::clamp<std::int64_t>(sqlite3_value_int64(values[1]), -1, std::numeric_limits<int>::max()) : -1;
    if (given && asked < 0) return SQLITE_OK;
    auto run = cursor.function->runs->read(cursor.run, static_cast<int>(asked), cursor.function->analysis->ofEveryStep);
    if (!run)
        return run.error().code == ErrorCode::Cancelled ? SQLITE_INTERRUPT
                                                        : failed(base->pVtab, *cursor.function, run.error().message);
    if (!*run || !(*run)->timeline) return SQLITE_OK;
    const Timeline& timeline = *(*run)->timeline;
    const std::int64_t step = given ? asked : std::max(0, (*run)->representativeStep());
    if (step >= timeline.steps()) return SQLITE_OK;
    cursor.step = static_cast<int>(step);
    cursor.table = reportTable(*cursor.function->analysis, StepContext(**run, cursor.step));
    return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* base)
{
    ++reinterpret_cast<FunctionCursor*>(base)->row;
    return SQLITE_OK;
}

int atEnd(sqlite3_vtab_cursor* base)
{
    const auto& cursor = *reinterpret_cast<FunctionCursor*>(base);
    return cursor.row >= cursor.table.rows.size() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int number)
{
    const auto& cursor = *reinterpret_cast<FunctionCursor*>(base);
    const auto& row = cursor.table.rows[cursor.row];
    const auto at = static_cast<std::size_t>(number);
    if (at >= row.size()) {
        sqlite3_result_int64(context, at == row.size() ? cursor.run : cursor.step);
        return SQLITE_OK;
    }
    if (const auto* text = std::get_if<std::string>(&row[at]))
        sqlite3_result_text64(context, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    else if (const auto* real = std::get_if<double>(&row[at]))
        sqlite3_result_double(context, *real);
    else if (const auto* whole = std::get_if<std::int64_t>(&row[at]))
        sqlite3_result_int64(context, *whole);
    else
        sqlite3_result_null(context);
    return SQLITE_OK;
}

int rowId(sqlite3_vtab_cursor* base, sqlite3_int64* id)
{
    *id = static_cast<sqlite3_int64>(reinterpret_cast<FunctionCursor*>(base)->row);
    return SQLITE_OK;
}

} // namespace

Result<void> registerReportFunctions(Database& database)
{
    const auto runs = std::make_shared<LastRun>(database);
    for (const AnalysisInfo* analysis : allAnalyses()) {
        const std::string name = reportFunction(*analysis);
        const auto& module =
            virtualTable<connect, disconnect, bestIndex, openCursor, closeCursor, filter, next, atEnd, column, rowId>();
        if (auto done = registerVirtualTable(database, name, name + "(0)", module, new Function{analysis, runs}); !done)
            return done;
    }
    return {};
}

} // namespace stagewright
