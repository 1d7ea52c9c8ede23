#include "traces/store/sql_tables.h"

#include <array>
#include <map>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/foreign/graph_node.h"
#include "traces/store/blocks.h"
#include "traces/store/virtual_table.h"

namespace stagewright {

namespace {

void resultText(sqlite3_context* context, std::string_view text)
{
    sqlite3_result_text64(context, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Where one virtual table takes its rows from: block rows of an SQL query, decoded one at a time.
class BlockSource {
public:
    virtual ~BlockSource() = default;
    virtual std::size_t load(Database& database, const Statement& row, bool& ok) = 0; // rows in the block
    virtual void column(sqlite3_context* context, int column, std::size_t row) const = 0;

protected:
    static bool countOk(std::int64_t count) { return count >= 0 && count <= static_cast<std::int64_t>(blockRows); }
};

struct Shape {
    // Ranks of one of the run's pipelines (schedules/model/mesh.h): rank = replica × these + pipeline rank. All of them
    // where it has no replicas.
    std::int64_t pipelineRanks = 1 << 20;
    bool stages = true; // false: unknown
};

Shape shapeOf(Database& database, std::int64_t run)
{
    Shape shape;
    auto statement = database.prepare(
        "SELECT ranks / coalesce(json_extract(schedule, '$.replicas'), 1), stages FROM run WHERE id=?");
    if (!statement) return shape;
    statement->bind(run);
    if (const auto found = database.step(*statement); !found || !*found) return shape;
    if (statement->integer(0) > 0) shape.pipelineRanks = statement->integer(0);
    shape.stages = statement->integer(1) > 0;
    return shape;
}

class SpanSource : public BlockSource {
public:
    std::size_t load(Database& database, const Statement& row, bool& ok) override
    {
        const std::int64_t run = row.integer(0);
        if (run != m_run || m_first) {
            ok = readLabels(database, run);
            m_shape = shapeOf(database, run);
        }
        m_first = false;
        m_run = run;
        m_step = row.integer(1);
        m_rank = row.integer(2);
        m_lane = row.text(3);
        m_firstSpan = row.integer(4);
        const std::int64_t count = row.integer(5);
        ok = ok && countOk(count) && decodeSpans(row.blob(6), static_cast<std::size_t>(count), 0, m_spans);
        return ok ? m_spans.size() : 0;
    }

    void column(sqlite3_context* context, int column, std::size_t row) const override
    {
        const auto& [span, cpu] = m_spans[row];
        const bool named = span.label != 0 && span.op == Op{}; // foreign work of no op: it has a name alone
        switch (column) {
        case 0: return sqlite3_result_int64(context, m_run);
        case 1: return m_step == outsideSteps ? sqlite3_result_null(context) : sqlite3_result_int64(context, m_step);
        case 2: return sqlite3_result_int64(context, m_rank);
        case 3: return resultText(context, m_lane);
        case 4: return named ? sqlite3_result_null(context) : sqlite3_result_int(context, span.op.stage);
        case 5: return named ? sqlite3_result_null(context) : resultText(context, ruleOf(span.op.kind).text);
        case 6:
            return span.op.microbatch < 0 ? sqlite3_result_null(context)
                                          : sqlite3_result_int(context, span.op.microbatch);
        case 7: return sqlite3_result_int64(context, span.start);
        case 8: return sqlite3_result_int64(context, span.end);
        case 9: return cpu < 0 ? sqlite3_result_null(context) : sqlite3_result_int64(context, cpu);
        case 10: return resultText(context, nameOf(span));
        case 11: return sqlite3_result_int64(context, span.duration());
        case 12: return sqlite3_result_int64(context, m_firstSpan + static_cast<std::int64_t>(row));
        case 14: return sqlite3_result_int64(context, m_rank / m_shape.pipelineRanks);
        case 15: return sqlite3_result_int64(context, m_rank % m_shape.pipelineRanks);
        case 16: return resultNumber(context, graphOf(span).graph);
        case 17: return resultNumber(context, graphOf(span).node);
        default:
            return m_step == outsideSteps ? sqlite3_result_null(context)
                                          : sqlite3_result_int64(context, stepNumber(m_step));
        }
    }

private:
    static void resultNumber(sqlite3_context* context, const std::optional<std::int64_t>& number)
    {
        return number ? sqlite3_result_int64(context, *number) : sqlite3_result_null(context);
    }

    bool readLabels(Database& database, std::int64_t run)
    {
        m_labels.clear();
        m_graphs.clear();
        // a file of an older version has no shapes
        if (auto shapes = database.prepare("SELECT label, text FROM label_shape WHERE run=?")) {
            shapes->bind(run);
            for (auto more = database.step(*shapes); more && *more; more = database.step(*shapes))
                if (const CudaGraphNode of = graphNodeIn(shapes->text(1)); of.known())
                    m_graphs[shapes->integer(0)] = of;
        }
        auto statement = database.prepare("SELECT label, text FROM label WHERE run=?");
        if (!statement) return false;
        statement->bind(run);
        for (;;) {
            const auto more = database.step(*statement);
            if (!more) return false;
            if (!*more) return true;
            m_labels[statement->integer(0)] = statement->text(1);
        }
    }

    std::string nameOf(const Span& span) const
    {
        const auto label = span.label == 0 ? m_labels.end() : m_labels.find(span.label);
        return label == m_labels.end() ? toText(span.op) : label->second;
    }

    CudaGraphNode graphOf(const Span& span) const
    {
        const auto found = span.label == 0 ? m_graphs.end() : m_graphs.find(span.label);
        return found == m_graphs.end() ? CudaGraphNode() : found->second;
    }

    bool m_first = true;
    std::int64_t m_run = 0;
    std::int64_t m_step = 0;
    std::int64_t m_rank = 0;
    Shape m_shape;
    std::int64_t m_firstSpan = 0;
    std::string m_lane;
    std::map<std::int64_t, std::string> m_labels;
    std::map<std::int64_t, CudaGraphNode> m_graphs; // by label: of kernels of CUDA graphs
    std::vector<StoredSpan> m_spans;
};

class MemorySource : public BlockSource {
public:
    std::size_t load(Database& database, const Statement& row, bool& ok) override
    {
        if (row.integer(0) != m_run || m_first) m_shape = shapeOf(database, row.integer(0));
        m_first = false;
        m_run = row.integer(0);
        const std::int64_t rank = row.integer(1);
        const std::int64_t count = row.integer(2);
        ok = countOk(count) && rank >= 0 && rank < 65536 &&
             decodeMemory(row.blob(3), static_cast<std::size_t>(count), static_cast<int>(rank), m_events);
        return ok ? m_events.size() : 0;
    }

    void column(sqlite3_context* context, int column, std::size_t row) const override
    {
        const MemoryEvent& event = m_events[row];
        switch (column) {
        case 0: return sqlite3_result_int64(context, m_run);
        case 1: return sqlite3_result_int(context, event.step);
        case 2: return sqlite3_result_int(context, event.rank);
        case 3: return m_shape.stages ? sqlite3_result_int(context, event.stage) : sqlite3_result_null(context);
        case 4:
            return event.microbatch < 0 ? sqlite3_result_null(context) : sqlite3_result_int(context, event.microbatch);
        case 5: return resultText(context, toText(event.category));
        case 6: return sqlite3_result_int64(context, event.time);
        case 7: return sqlite3_result_int64(context, event.delta);
        case 9: return sqlite3_result_int64(context, event.rank / m_shape.pipelineRanks);
        case 10: return sqlite3_result_int64(context, event.rank % m_shape.pipelineRanks);
        default: return sqlite3_result_int(context, stepNumber(event.step));
        }
    }

private:
    bool m_first = true;
    std::int64_t m_run = 0;
    Shape m_shape;
    std::vector<MemoryEvent> m_events;
};

class EdgeSource : public BlockSource {
public:
    std::size_t load(Database&, const Statement& row, bool& ok) override
    {
        m_run = row.integer(0);
        m_firstSpan = row.integer(1);
        const std::int64_t count = row.integer(2);
        ok = countOk(count) && decodeEdges(row.blob(3), static_cast<std::size_t>(count), m_edges);
        return ok ? m_edges.size() : 0;
    }

    void column(sqlite3_context* context, int column, std::size_t row) const override
    {
        static constexpr std::array<std::string_view, 4> kinds{"data", "transfer", "order", "launch"};
        const Edge& edge = m_edges[row];
        switch (column) {
        case 0: return sqlite3_result_int64(context, m_run);
        case 1: return sqlite3_result_int64(context, m_firstSpan + edge.from);
        case 2: return sqlite3_result_int64(context, m_firstSpan + edge.to);
        case 3: return resultText(context, kinds[static_cast<std::size_t>(edge.kind)]);
        default: return sqlite3_result_int64(context, edge.arrival);
        }
    }

private:
    std::int64_t m_run = 0;
    std::int64_t m_firstSpan = 0;
    std::vector<Edge> m_edges;
};

struct Narrowing { // a column whose equality the block query can use
    int column;
    std::string_view expression;
};

struct SqlTable {
    const char* name;
    const char* declaration;
    std::string_view select; // up to the WHERE
    std::string_view order;
    std::vector<Narrowing> narrowings;
    std::unique_ptr<BlockSource> (*make)();
};

template <typename Source>
std::unique_ptr<BlockSource> makeSource()
{
    return std::make_unique<Source>();
}

const std::array<SqlTable, 3>& sqlTables()
{
    static const std::array<SqlTable, 3> tables{
        SqlTable{
            "spans",
            "CREATE TABLE x(run INTEGER, step INTEGER, rank INTEGER, lane TEXT, stage INTEGER, kind TEXT, microbatch "
            "INTEGER, start_ns INTEGER, end_ns INTEGER, cpu_ns INTEGER, name TEXT, duration_ns INTEGER, span INTEGER, "
            "step_number INTEGER, replica INTEGER, pipeline_rank INTEGER, graph INTEGER, graph_node INTEGER)",
            "SELECT b.run, b.step, t.rank, t.lane, s.first_span + b.first, b.count, b.data FROM span_block AS b "
            "CROSS JOIN track AS t ON t.run=b.run AND t.track=b.track "
            "CROSS JOIN segment AS s ON s.run=b.run AND s.segment=b.segment WHERE 1",
            " ORDER BY b.run, b.segment, b.track, b.first",
            {{0, "b.run"}, {1, "b.step"}, {2, "t.rank"}},
            &makeSource<SpanSource>},
        SqlTable{
            "memory",
            "CREATE TABLE x(run INTEGER, step INTEGER, rank INTEGER, stage INTEGER, microbatch INTEGER, category TEXT, "
            "time_ns INTEGER, delta_bytes INTEGER, step_number INTEGER, replica INTEGER, pipeline_rank INTEGER)",
            "SELECT run, rank, count, data FROM memory_block WHERE 1",
            " ORDER BY run, segment, rank, ordinal",
            {{0, "run"}, {2, "rank"}},
            &makeSource<MemorySource>},
        SqlTable{"edges",
                 "CREATE TABLE x(run INTEGER, from_span INTEGER, to_span INTEGER, kind TEXT, arrival_ns INTEGER)",
                 "SELECT b.run, s.first_span, b.count, b.data FROM edge_block AS b "
                 "CROSS JOIN segment AS s ON s.run=b.run AND s.segment=b.segment WHERE 1",
                 " ORDER BY b.run, b.segment, b.ordinal",
                 {{0, "b.run"}},
                 &makeSource<EdgeSource>},
    };
    return tables;
}

struct Module { // our data passed through SQLite
    Database* database;
    const SqlTable* table;
};

struct VirtualTable {
    sqlite3_vtab base{};
    const Module* module = nullptr;
};

struct Cursor {
    sqlite3_vtab_cursor base{};
    const Module* module = nullptr;
    std::unique_ptr<BlockSource> source;
    Statement blocks;
    std::size_t rows = 0;
    std::size_t row = 0;
    std::int64_t rowId = 0;
    bool atEnd = true;
};

int connect(sqlite3* handle, void* aux, int, const char* const*, sqlite3_vtab** result, char**)
{
    const auto* module = static_cast<const Module*>(aux);
    const int code = sqlite3_declare_vtab(handle, module->table->declaration);
    if (code != SQLITE_OK) return code;
    auto* table = new (std::nothrow) VirtualTable;
    if (table == nullptr) return SQLITE_NOMEM;
    table->module = module;
    *result = &table->base;
    return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table)
{
    delete reinterpret_cast<VirtualTable*>(table);
    return SQLITE_OK;
}

int bestIndex(sqlite3_vtab* table, sqlite3_index_info* info)
{
    const SqlTable& sql = *reinterpret_cast<VirtualTable*>(table)->module->table;
    double cost = 1e7;
    int next = 1;
    for (std::size_t n = 0; n < sql.narrowings.size(); ++n) { // arguments in the order of the narrowings
        for (int i = 0; i < info->nConstraint; ++i) {
            const auto& constraint = info->aConstraint[i];
            if (constraint.usable == 0 || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ ||
                constraint.iColumn != sql.narrowings[n].column)
                continue;
            info->idxNum |= 1 << n;
            info->aConstraintUsage[i].argvIndex = next++; // checked again by SQLite: affinities stay its matter
            cost /= 10;
            break;
        }
    }
    info->estimatedCost = cost;
    info->estimatedRows = static_cast<sqlite3_int64>(cost);
    return SQLITE_OK;
}

int openCursor(sqlite3_vtab* table, sqlite3_vtab_cursor** result)
{
    auto cursor = std::make_unique<Cursor>();
    cursor->module = reinterpret_cast<VirtualTable*>(table)->module;
    cursor->source = cursor->module->table->make();
    *result = &cursor.release()->base;
    return SQLITE_OK;
}

int closeCursor(sqlite3_vtab_cursor* cursor)
{
    delete reinterpret_cast<Cursor*>(cursor);
    return SQLITE_OK;
}

int failed(Cursor& cursor, const std::string& message)
{
    sqlite3_free(cursor.base.pVtab->zErrMsg);
    cursor.base.pVtab->zErrMsg = sqlite3_mprintf("%s", message.c_str());
    return SQLITE_CORRUPT_VTAB;
}

// To the next block that has rows, or to the end.
int nextBlock(Cursor& cursor)
{
    cursor.row = 0;
    for (;;) {
        const auto more = cursor.module->database->step(cursor.blocks);
        if (!more)
            return more.error().code == ErrorCode::Cancelled ? SQLITE_INTERRUPT : failed(cursor, more.error().message);
        if (!*more) {
            cursor.atEnd = true;
            return SQLITE_OK;
        }
        bool ok = true;
        cursor.rows = cursor.source->load(*cursor.module->database, cursor.blocks, ok);
        if (!ok)
            return failed(cursor, fmt::format("a block of {} of run {} is damaged", cursor.module->table->name,
                                              cursor.blocks.integer(0)));
        if (cursor.rows > 0) return SQLITE_OK;
    }
}

int filter(sqlite3_vtab_cursor* base, int mask, const char*, int count, sqlite3_value** values)
{
    auto& cursor = *reinterpret_cast<Cursor*>(base);
    const SqlTable& table = *cursor.module->table;
    std::string sql(table.select);
    for (std::size_t n = 0; n < table.narrowings.size(); ++n)
        if ((mask & (1 << n)) != 0) sql += fmt::format(" AND {}=?", table.narrowings[n].expression);
    sql += table.order;
    auto blocks = cursor.module->database->prepare(sql);
    if (!blocks) return failed(cursor, blocks.error().message);
    cursor.blocks = std::move(*blocks);
    for (int i = 0; i < count; ++i) sqlite3_bind_value(cursor.blocks.handle(), i + 1, values[i]);
    cursor.atEnd = false;
    cursor.rowId = 0;
    return nextBlock(cursor);
}

int next(sqlite3_vtab_cursor* base)
{
    auto& cursor = *reinterpret_cast<Cursor*>(base);
    ++cursor.rowId;
    if (++cursor.row < cursor.rows) return SQLITE_OK;
    return nextBlock(cursor);
}

int atEnd(sqlite3_vtab_cursor* base) { return reinterpret_cast<Cursor*>(base)->atEnd ? 1 : 0; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int number)
{
    const auto& cursor = *reinterpret_cast<Cursor*>(base);
    cursor.source->column(context, number, cursor.row);
    return SQLITE_OK;
}

int rowId(sqlite3_vtab_cursor* base, sqlite3_int64* id)
{
    *id = reinterpret_cast<Cursor*>(base)->rowId;
    return SQLITE_OK;
}

} // namespace

Result<void> registerSqlTables(Database& database)
{
    for (const SqlTable& table : sqlTables()) {
        const auto& module =
            virtualTable<connect, disconnect, bestIndex, openCursor, closeCursor, filter, next, atEnd, column, rowId>();
        if (auto done = registerVirtualTable(database, table.name, table.name, module, new Module{&database, &table});
            !done)
            return done;
    }
    return {};
}

} // namespace stagewright
