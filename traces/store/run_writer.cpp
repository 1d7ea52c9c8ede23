// Writing a run step by step: a step's rows are taken in memory and appended as one row of the file.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "traces/store/rows.h"
#include "traces/store/run_names.h"
#include "traces/store/run_overview.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/schema.h"

namespace stagewright {

struct RunWriter::State {
    std::shared_ptr<RunStore> store;
    std::unique_ptr<Database> staged; // in memory: the rows of the step at hand
    RunRows rows;
    StepRows step;
    std::int64_t steps = 0;
    bool done = false;
};

namespace {

// A database in memory with the run's row, which takes the rows of one step after the other.
Result<std::unique_ptr<Database>> stagingFor(const Run& run, std::int64_t id)
{
    auto opened = Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!opened) return opened;
    STAGEWRIGHT_CHECK(migrate(**opened, 0, migrations()));
    STAGEWRIGHT_TRY(const auto row, RunRows::insertHeader(**opened, run, RunState::Recording));
    if (auto done = (*opened)->execute(
            fmt::format("DELETE FROM main.run_text; UPDATE main.run SET id={} WHERE id={}", id, row));
        !done)
        return tl::unexpected(std::move(done.error()));
    return opened;
}

// What only a step shows: the run's row has it from the first one on.
Result<void> setUnits(Database& database, Database& staged, std::int64_t run)
{
    auto from =
        bound(staged, "SELECT provenance, clock, ranks, time_unit, memory_unit, realised FROM main.run WHERE id=?",
              [&](Statement& s) { s.bind(run); });
    if (!from) return tl::unexpected(from.error());
    STAGEWRIGHT_CHECK(staged.step(*from));
    STAGEWRIGHT_TRY(
        auto to,
        database.prepare(
            "UPDATE main.run SET provenance=?, clock=?, ranks=?, time_unit=?, memory_unit=?, realised=? WHERE id=?"));
    for (int column = 0; column < 6; ++column)
        sqlite3_bind_value(to.handle(), column + 1, sqlite3_column_value(from->handle(), column));
    sqlite3_bind_int64(to.handle(), 7, run);
    return database.run(to);
}

} // namespace

Result<std::unique_ptr<RunWriter>> RunFile::begin(const Run& header)
{
    const auto& store = this->store();
    STAGEWRIGHT_CHECK(store->beginRecording());
    const auto start = [&]() -> Result<std::unique_ptr<RunWriter>> {
        STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store->database));
        Run own = header;
        own.timeline = nullptr;
        STAGEWRIGHT_TRY(auto there, inSnapshot(*store, [&] { return readRunInfos(*store); }));
        own.info.name = freeRunName(there, own.info.name.empty() ? own.info.scheduleName : own.info.name);
        STAGEWRIGHT_TRY(const auto id, RunRows::insertHeader(*store->database, own, RunState::Recording));
        STAGEWRIGHT_TRY(auto staged, stagingFor(own, id));
        RunRows rows(*staged, id);
        STAGEWRIGHT_CHECK(rows.declareMetrics(header.metrics));
        StepRows step;
        STAGEWRIGHT_CHECK(takeStepRows(*staged, id, step));
        STAGEWRIGHT_CHECK(addStepRows(*store->database, "main.", id, step.facts.bytes()));
        step.facts.clear();
        STAGEWRIGHT_CHECK(transaction.commit());
        rows.accept();
        auto state = std::make_unique<RunWriter::State>(
            RunWriter::State{store, std::move(staged), std::move(rows), std::move(step), 0, false});
        return std::unique_ptr<RunWriter>(new RunWriter(std::move(state)));
    };
    struct End { // unless it starts
        RunStore* store;
        ~End()
        {
            if (store != nullptr) store->endRecording();
        }
    } end{store.get()};
    auto writer = start();
    (void)store->database->execute("PRAGMA wal_checkpoint(PASSIVE)"); // the file alone says that it is being recorded
    if (!writer) return writer;
    store->committed();
    end.store = nullptr;
    return writer;
}

RunWriter::RunWriter(std::unique_ptr<State> state) : m_state(std::move(state)) {}

RunWriter::~RunWriter()
{
    try {
        if (!m_state->done) (void)finish(RunState::Interrupted);
    } catch (const std::bad_alloc&) { // as if it had been killed
    }
}

std::int64_t RunWriter::id() const { return m_state->rows.run(); }

Result<void> RunWriter::append(const Timeline& step, const std::vector<std::pair<std::string, double>>& metrics)
{
    State& state = *m_state;
    if (state.done) return fail(ErrorCode::Usage, fmt::format("run {} is finished", id()), "start another run");
    Database& database = *state.store->database;
    if (auto there = state.store->inPlace(); !there) return there;
    const auto write = [&]() -> Result<void> {
        STAGEWRIGHT_TRY(auto staged, Transaction::begin(*state.staged));
        if (auto done = state.rows.addSegment(step); !done) return done;
        for (const auto& [name, value] : metrics)
            if (auto done = state.rows.addMetric(name, {}, state.steps, value); !done) return done;
        STAGEWRIGHT_TRY(auto totals, totalsOf(*state.staged, id()));
        totals.firstStep = std::max<std::int64_t>(0, totals.steps - 1);
        for (const Span& span : step.spans()) totals.firstStep = std::min<std::int64_t>(totals.firstStep, span.step);
        state.step.facts.clear();
        state.step.blocks.clear();
        if (auto done = takeStepRows(*state.staged, id(), state.step); !done) return done;
        STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
        if (state.steps == 0)
            if (auto done = setUnits(database, *state.staged, id()); !done) return done;
        if (auto done = state.store->appendStep(id(), totals, state.step); !done) return done;
        if (auto done = transaction.commit(); !done) return done;
        return staged.commit();
    };
    auto done = write();
    if (!done) {
        state.rows.rollBack();
        return tl::unexpected(
            std::move(done.error()).with(fmt::format("run {}, step {}", id(), stepNumber(state.steps))));
    }
    state.store->committed();
    state.rows.accept();
    ++state.steps;
    return done;
}

Result<void> RunWriter::setSchedule(const Schedule& schedule)
{
    State& state = *m_state;
    if (state.done) return fail(ErrorCode::Usage, fmt::format("run {} is finished", id()), "start another run");
    if (auto there = state.store->inPlace(); !there) return there;
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*state.store->database));
    STAGEWRIGHT_CHECK(RunRows(*state.store->database, id()).setSchedule(schedule));
    return transaction.commit();
}

Result<void> RunWriter::finish(RunState reached, const std::optional<CostModel>& costs, const Progress& progress)
{
    State& state = *m_state;
    if (state.done) return {};
    state.done = true;
    Database& database = *state.store->database;
    struct End { // whatever happens
        RunStore& store;
        ~End() { store.endRecording(); }
    } const end{*state.store};
    if (auto there = state.store->inPlace(); !there) return there;
    const auto close = [&]() -> Result<void> {
        STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
        RunRows kept(database, id());
        STAGEWRIGHT_TRY(const auto totals, totalsOf(*state.staged, id()));
        if (auto done = setTotals(database, id(), totals); !done) return done;
        if (costs)
            if (auto done = kept.setCosts(*costs); !done) return done;
        if (auto done = kept.setState(reached == RunState::Recording ? RunState::Interrupted : reached); !done)
            return done;
        return transaction.commit();
    };
    auto closed = close();
    if (!closed) { // what SQLite's log holds of a full disk is free after this
        state.store->leaveWal();
        closed = close();
    }
    const auto folded = foldSteps(database, id(), progress);
    if (folded && *folded) { // else readers do without
        (void)summarisePyramids(*state.store, id(), progress);
    }
    return closed;
}

} // namespace stagewright
