// Replaying a stream of steps into a run file: one transaction a step, each once.
#include "traces/store/merge.h"
#include "traces/store/run_overview.h"
#include "traces/store/run_reader.h"
#include "traces/store/step_stream.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "traces/store/rows.h"
#include "traces/store/run_names.h"
#include "traces/store/run_store.h"
#include "traces/store/step_blocks.h"
#include "traces/store/step_tables.h"

namespace stagewright {

namespace {

constexpr std::size_t mostPending = 900'000'000; // bytes of one step: SQLite's limit of a row is a billion
constexpr std::size_t mostRuns = 4096;
constexpr std::int64_t mostSegments = std::int64_t{1} << 31;

constexpr std::int64_t nothingYet = -2; // of a run's segments; its texts come with -1

struct Ongoing {
    ReplayedRun run;
    std::int64_t segment = nothingYet;        // the last one that is in the file
    std::vector<std::vector<std::byte>> rows; // payloads of the step that is not complete
    std::size_t pending = 0;
    bool begun = false; // in this replay
};

Result<std::int64_t> insertRun(RunStore& store, const StoredRow& row)
{
    Database& database = *store.database;
    STAGEWRIGHT_TRY(auto there, readRunInfos(store));
    std::string marks = "?";
    for (int i = 1; i < runRowCount; ++i) marks += ",?";
    STAGEWRIGHT_TRY(auto statement,
                    database.prepare(fmt::format("INSERT INTO main.run({}) VALUES({})", runRowColumns, marks)));
    const auto* name = std::get_if<std::string_view>(row.values.data());
    const std::string own = freeRunName(there, name ? std::string(*name) : std::string());
    statement.bind(std::string_view(own));
    for (int i = 1; i < runRowCount; ++i) bindValue(statement, row.values[static_cast<std::size_t>(i)]);
    STAGEWRIGHT_CHECK(database.run(statement));
    return database.lastId();
}

Result<void> setColumns(Database& database, std::int64_t run, std::string_view columns, const StoredRow& row,
                        std::size_t first)
{
    std::string places;
    for (std::size_t begin = 0; begin < columns.size();) {
        const std::size_t end = std::min(columns.find(", ", begin), columns.size());
        places += fmt::format("{}{}=?", places.empty() ? "" : ", ", columns.substr(begin, end - begin));
        begin = end + 2;
    }
    STAGEWRIGHT_TRY(auto statement, database.prepare(fmt::format("UPDATE main.run SET {} WHERE id=?", places)));
    for (std::size_t i = first; i < row.values.size(); ++i) bindValue(statement, row.values[i]);
    statement.bind(run);
    return database.run(statement);
}

Result<void> setState(Database& database, std::int64_t run, std::string_view state)
{
    auto statement =
        bound(database, "UPDATE main.run SET state=? WHERE id=?", [&](Statement& s) { s.bind(state).bind(run); });
    if (!statement) return tl::unexpected(statement.error());
    return database.run(*statement);
}

Result<void> setStateAlone(Database& database, std::int64_t run, std::string_view state)
{
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
    if (auto done = setState(database, run, state); !done) return done;
    return transaction.commit();
}

} // namespace

struct StreamReplay::State {
    std::string file;
    std::unique_ptr<RunFile> runs;
    std::shared_ptr<RunStore> store;
    bool recording = false;
    std::vector<Ongoing> ongoing;
    std::vector<ReplayedRun> shown; // runs()
    std::vector<std::byte> rest;    // bytes that are not a whole block yet
    std::int64_t at = 0;            // of the first of them in the stream
    std::int64_t taken = 0;
    bool headed = false;
    std::function<Result<void>(const std::vector<ReplayedRun>&)> began;

    tl::unexpected<Error> damaged(std::string_view what) const
    {
        return fail(ErrorCode::Unreadable, fmt::format("the stream of steps is damaged at byte {}: {}", at, what),
                    "complete steps before it are in the run file");
    }
    Ongoing* find(std::uint32_t run)
    {
        const auto found =
            std::find_if(ongoing.begin(), ongoing.end(), [&](const Ongoing& one) { return one.run.there == run; });
        return found == ongoing.end() ? nullptr : &*found;
    }
    Result<void> begin(const StepBlock& block);
    Result<void> rows(Ongoing& one, const StepBlock& block);
    Result<void> commit(Ongoing& one, const StepBlock& block);
    Result<void> storeRows(Ongoing& one, StepRows* step, std::int64_t& firstStep);
    Result<void> append(Ongoing& one, std::int64_t segment, const StoredRow& row);
    Result<void> close(Ongoing& one, const StoredRow& row);
    Result<void> remove(Ongoing& one);
    Result<void> take(const StepBlock& block);
    void show();
};

void StreamReplay::State::show()
{
    shown.clear();
    for (const Ongoing& one : ongoing) shown.push_back(one.run);
}

Result<void> StreamReplay::State::begin(const StepBlock& block)
{
    RowReader reader(block.payload);
    StoredRow row;
    if (!reader.next(row) || row.table != runRowTable || row.values.size() != static_cast<std::size_t>(runRowCount))
        return damaged("a run's row");
    constexpr std::size_t created = 3;
    const auto* when = std::get_if<std::int64_t>(&row.values[created]);
    if (!when) return damaged("a run's time");
    Database& database = *store->database;
    if (Ongoing* known = find(block.run)) {
        if (known->begun) return damaged("a run starts twice");
        known->begun = true;
        if (known->run.here == 0) return {}; // removed
        STAGEWRIGHT_TRY(
            auto found,
            bound(
                database,
                "SELECT created_unix_ms, max((SELECT ifnull(max(segment), -2) FROM main.segment WHERE run=?1), (SELECT "
                "ifnull(max(segment), -2) FROM main.step_log WHERE run=?1)), "
                "max(steps, (SELECT ifnull(max(steps), 0) FROM main.step_log WHERE run=?1)) FROM main.run WHERE id=?1",
                [&](Statement& s) { s.bind(known->run.here); }));
        STAGEWRIGHT_TRY(const auto there, database.step(found));
        if (there && found.integer(0) == *when) {
            known->segment = found.integer(1);
            known->run.steps = found.smallInteger(2);
            found.reset();
            return known->run.ended ? Result<void>() : setStateAlone(database, known->run.here, "recording");
        }
        known->run.ended = false; // it was removed here: once more
        known->run.steps = 0;
    } else if (ongoing.size() >= mostRuns) {
        return damaged("too many runs");
    } else {
        ongoing.push_back({{block.run, 0, *when, 0, false}, nothingYet, {}, 0, true});
    }
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
    STAGEWRIGHT_TRY(auto id, insertRun(*store, row));
    for (const std::string_view reset : {"steps", "span_count"}) // until a step is complete
        if (auto done = database.execute(fmt::format("UPDATE main.run SET {}=0 WHERE id={}", reset, id)); !done)
            return done;
    if (auto done = setState(database, id, "recording"); !done) return done;
    if (auto done = transaction.commit(); !done) return done;
    Ongoing& one = *find(block.run);
    one.run.here = id;
    one.run.createdUnixMs = *when;
    one.segment = nothingYet;
    show();
    return began ? began(shown) : Result<void>();
}

Result<void> StreamReplay::State::rows(Ongoing& one, const StepBlock& block)
{
    if ((one.pending += block.payload.size()) > mostPending)
        return damaged(fmt::format("a step of more than {} bytes", mostPending));
    one.rows.emplace_back(block.payload.begin(), block.payload.end());
    return {};
}

// Into the tables; of a step into its row, but for what is not the step's.
Result<void> StreamReplay::State::storeRows(Ongoing& one, StepRows* step, std::int64_t& firstStep)
{
    Database& database = *store->database;
    StoredRow row;
    for (const std::vector<std::byte>& payload : one.rows) {
        RowReader reader(payload);
        while (!reader.atEnd()) {
            const std::span<const std::byte> bytes = reader.rest();
            if (!reader.next(row) || row.table >= stepTableCount()) return damaged("a row");
            const StepTable table = stepTable(row.table);
            if (row.values.size() != static_cast<std::size_t>(table.count))
                return damaged(fmt::format("a row of {}", table.name));
            if (step != nullptr && !table.text) {
                (table.grows == "segment" ? step->blocks : step->facts)
                    .add(bytes.first(bytes.size() - reader.rest().size()));
                constexpr std::size_t stepOfBlock = 3;
                if (const auto* number =
                        table.name == "span_block" ? std::get_if<std::int64_t>(&row.values[stepOfBlock]) : nullptr)
                    firstStep = std::min(firstStep, *number);
                continue;
            }
            std::string marks;
            for (int i = 0; i < table.count; ++i) marks += ",?";
            STAGEWRIGHT_TRY(auto statement,
                            database.cached(fmt::format("INSERT OR REPLACE INTO main.{}(run, {}) VALUES(?{})",
                                                        table.name, table.columns, marks)));
            statement->bind(one.run.here);
            for (const StoredValue& value : row.values) bindValue(*statement, value);
            if (auto done = database.run(*statement); !done) return done;
        }
    }
    return {};
}

// A step as a recording appends it: one row.
Result<void> StreamReplay::State::append(Ongoing& one, std::int64_t segment, const StoredRow& row)
{
    LoggedStep totals;
    const std::array<std::int64_t*, 4> numbers{&totals.steps, &totals.spans, &totals.begin, &totals.end};
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (const auto* number = std::get_if<std::int64_t>(&row.values[i]))
            *numbers[i] = *number;
        else if (i < 2)
            return damaged("a number of spans");
    totals.empty =
        !std::holds_alternative<std::int64_t>(row.values[2]) || !std::holds_alternative<std::int64_t>(row.values[3]);
    totals.segment = segment;
    totals.firstStep = std::max<std::int64_t>(0, totals.steps - 1);
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store->database));
    const bool first = one.segment < 0;
    const bool aStep = segment >= 0;
    StepRows step;
    if (auto done = storeRows(one, aStep ? &step : nullptr, totals.firstStep); !done) return done;
    if (first) // what only a step shows, and the totals until there is one
        if (auto done = setColumns(*store->database, one.run.here, runStepColumns, row, 0); !done) return done;
    if (aStep)
        if (auto done = store->appendStep(one.run.here, totals, step); !done) return done;
    return transaction.commit();
}

// The run's end: its whole row, and its steps in the tables.
Result<void> StreamReplay::State::close(Ongoing& one, const StoredRow& row)
{
    Database& database = *store->database;
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
    std::int64_t ignored = 0;
    if (auto done = storeRows(one, nullptr, ignored); !done) return done;
    const std::string_view all = runRowColumns;
    if (auto done = setColumns(database, one.run.here, all.substr(all.find(", ") + 2), row, 1); !done) return done;
    if (auto done = transaction.commit(); !done) return done;
    (void)foldSteps(database, one.run.here); // on a full disk they stay: readers know both forms
    return {};
}

Result<void> StreamReplay::State::commit(Ongoing& one, const StepBlock& block)
{
    const bool end = block.kind == StepBlockKind::End;
    const int columns = end ? runRowCount : runStepCount;
    RowReader reader(block.payload);
    const auto segment = reader.number();
    StoredRow row;
    if (!segment || *segment < -1 || *segment >= mostSegments || !reader.next(row) || row.table != runRowTable ||
        row.values.size() != static_cast<std::size_t>(columns))
        return damaged("the end of a step");
    const auto* steps = std::get_if<std::int64_t>(&row.values[end ? 10 : 0]);
    if (!steps || *steps < 0 || *steps >= mostSegments) return damaged("a number of steps");
    const bool known = end ? one.run.ended : *segment <= one.segment;
    if (one.run.here != 0 && !known) {
        if (auto there = store->inPlace(); !there) return there;
        if (auto done = end ? close(one, row) : append(one, *segment, row); !done) return done;
        store->committed();
        one.segment = *segment;
    }
    one.run.steps = std::max(one.run.steps, static_cast<int>(*steps));
    one.run.ended = one.run.ended || end;
    one.rows.clear();
    one.pending = 0;
    return {};
}

Result<void> StreamReplay::State::remove(Ongoing& one)
{
    if (one.run.here == 0) return {};
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store->database));
    if (auto done = removeRun(*store->database, one.run.here); !done) return done;
    if (auto done = transaction.commit(); !done) return done;
    one.run.here = 0;
    one.run.ended = true;
    return {};
}

Result<void> StreamReplay::State::take(const StepBlock& block)
{
    if (block.kind == StepBlockKind::Begin) return begin(block);
    Ongoing* one = find(block.run);
    if (!one || !one->begun) return damaged("a step of a run that has not started");
    switch (block.kind) {
    case StepBlockKind::Rows: return rows(*one, block);
    case StepBlockKind::Remove: return remove(*one);
    default: return commit(*one, block);
    }
}

Result<std::unique_ptr<StreamReplay>>
StreamReplay::open(const std::string& runFile, const std::vector<ReplayedRun>& known,
                   std::function<Result<void>(const std::vector<ReplayedRun>&)> began)
{
    auto state = std::make_unique<State>();
    STAGEWRIGHT_TRY(auto opened, RunFile::open(runFile, OpenMode::Create));
    state->file = runFile;
    state->runs = std::move(opened);
    state->store = state->runs->store();
    STAGEWRIGHT_CHECK(state->store->beginRecording());
    state->recording = true;
    state->began = std::move(began);
    for (const ReplayedRun& run : known) state->ongoing.push_back({run, nothingYet, {}, 0, false});
    state->show();
    return std::unique_ptr<StreamReplay>(new StreamReplay(std::move(state)));
}

StreamReplay::StreamReplay(std::unique_ptr<State> state) : m_state(std::move(state)) {}

StreamReplay::~StreamReplay()
{
    if (!m_state->recording) return;
    try {
        for (const Ongoing& one : m_state->ongoing)
            if (one.begun && one.run.here != 0 && !one.run.ended &&
                setStateAlone(*m_state->store->database, one.run.here, "interrupted"))
                if (const auto whole = foldSteps(*m_state->store->database, one.run.here); whole && *whole)
                    (void)summarisePyramids(*m_state->store, one.run.here);
    } catch (const std::bad_alloc&) { // the next writer does it
    }
    m_state->store->endRecording();
}

Result<void> StreamReplay::take(std::span<const std::byte> bytes)
{
    State& state = *m_state;
    state.rest.insert(state.rest.end(), bytes.begin(), bytes.end());
    std::span<const std::byte> rest = state.rest;
    if (!state.headed) {
        if (rest.size() < streamHeadBytes) return {};
        if (const std::string why = whyNoStream(rest); !why.empty()) return state.damaged(why);
        rest = rest.subspan(streamHeadBytes);
        state.headed = true;
        state.at = state.taken = static_cast<std::int64_t>(streamHeadBytes);
    }
    Result<void> done;
    for (;;) {
        StepBlock block;
        std::size_t length = 0;
        const BlockState read = readBlock(rest, block, length);
        if (read == BlockState::Partial) break;
        if (read == BlockState::Damaged) {
            done = state.damaged("its checksum or form is wrong");
            break;
        }
        done = state.take(block);
        if (!done) break;
        rest = rest.subspan(length);
        state.at += static_cast<std::int64_t>(length);
        if (block.kind != StepBlockKind::Rows) state.taken = state.at;
    }
    state.rest = std::vector<std::byte>(rest.begin(), rest.end());
    state.show();
    return done;
}

std::int64_t StreamReplay::taken() const { return m_state->taken; }

void StreamReplay::rewind()
{
    m_state->rest.clear();
    m_state->at = m_state->taken;
    for (Ongoing& one : m_state->ongoing) {
        one.rows.clear();
        one.pending = 0;
    }
}

const std::vector<ReplayedRun>& StreamReplay::runs() const { return m_state->shown; }

const std::string& StreamReplay::file() const { return m_state->file; }

} // namespace stagewright
