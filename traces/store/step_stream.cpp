// Writing the stream: after every complete step the rows that it added are read back and appended.
#include "traces/store/step_stream.h"

#include <cerrno>
#include <cstring>
#include <limits>
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "traces/store/rows.h"
#include "traces/store/run_overview.h"
#include "traces/store/run_store.h"
#include "traces/store/step_blocks.h"
#include "traces/store/step_tables.h"

namespace stagewright {

namespace {

constexpr std::size_t fullBlock = std::size_t{1} << 20; // rows are packed to about so many bytes
constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();

// runStepColumns as they are with the last step, which the run's row does not have before the run ends.
std::string stepRow()
{
    std::string columns(runStepColumns);
    for (const std::string_view total : {"steps", "span_count", "begin_ns", "end_ns"}) {
        const std::size_t at = columns.find(total);
        columns.replace(
            at, total.size(),
            fmt::format(
                "coalesce((SELECT l.{0} FROM main.step_log AS l WHERE l.run=run.id ORDER BY l.id DESC LIMIT 1), {0})",
                total));
    }
    return columns;
}

struct Sent {
    bool begun = false;
    bool ended = false;
    std::int64_t segment = -1;                   // the last one
    std::int64_t logged = 0;                     // of the file's steps that are not folded, the last one
    std::map<std::size_t, std::int64_t> numbers; // by table: the last number
};

} // namespace

struct StepStreamWriter::State {
    std::string path;
    int descriptor = -1;
    std::map<std::int64_t, Sent> runs;
    RowWriter rows;

    ~State()
    {
        if (descriptor >= 0) ::close(descriptor);
    }

    Result<void> write(std::span<const std::byte> bytes) const
    {
        while (!bytes.empty()) {
            const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0)
                return fail(ErrorCode::Failed, fmt::format("file {}: {}", path, std::strerror(errno)),
                            "free some space");
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
        return {};
    }
    Result<void> flush(StepBlockKind kind, std::int64_t run)
    {
        auto written = write(blockBytes(kind, static_cast<std::uint32_t>(run), rows.bytes()));
        rows.clear();
        return written;
    }
    // Rows of a table from `from` to `to` in its growing column.
    Result<void> table(Database& database, std::int64_t run, std::size_t number, std::int64_t from, std::int64_t to,
                       std::int64_t& last)
    {
        const StepTable table = stepTable(number);
        const std::string where =
            table.grows.empty() ? std::string() : fmt::format(" AND {0} BETWEEN ? AND ? ORDER BY {0}", table.grows);
        const std::string first = table.grows.empty() ? "0" : std::string(table.grows);
        STAGEWRIGHT_TRY(auto statement, database.prepare(fmt::format("SELECT {}, {} FROM main.{} WHERE run=?{}", first,
                                                                     table.columns, table.name, where)));
        statement.bind(run);
        if (!table.grows.empty()) statement.bind(from).bind(to);
        for (;;) {
            STAGEWRIGHT_TRY(const auto more, database.step(statement));
            if (!more) return {};
            last = std::max(last, statement.integer(0));
            rows.add(static_cast<std::uint8_t>(number), statement, 1, table.count);
            if (rows.bytes().size() < fullBlock) continue;
            if (auto done = flush(StepBlockKind::Rows, run); !done) return done;
        }
    }
    Result<void> runRow(Database& database, std::int64_t run, std::string_view columns, int count)
    {
        STAGEWRIGHT_TRY(auto statement, database.prepare(fmt::format("SELECT {} FROM main.run WHERE id=?", columns)));
        statement.bind(run);
        STAGEWRIGHT_TRY(const auto there, database.step(statement));
        if (!there) return fail(ErrorCode::Failed, fmt::format("file {}: run {} is not in the run file", path, run));
        rows.add(runRowTable, statement, 0, count);
        return {};
    }
    // Steps that are not folded, as they are; the run's columns that the last of them changes.
    Result<void> steps(Database& database, std::int64_t run, Sent& sent, std::int64_t& segment);
    Result<void> send(RunStore& store, std::int64_t run, bool end);
    Result<void> sendAll(RunStore& store, std::int64_t run, bool end);
};

Result<void> StepStreamWriter::State::steps(Database& database, std::int64_t run, Sent& sent, std::int64_t& segment)
{
    STAGEWRIGHT_TRY(auto logged,
                    bound(database,
                          "SELECT id, segment, facts, data FROM main.step_log WHERE id>? AND run=? ORDER BY id",
                          [&](Statement& s) { s.bind(sent.logged).bind(run); }));
    std::vector<std::byte> step, blocks;
    StoredRow row;
    for (;;) {
        STAGEWRIGHT_TRY(const auto more, database.step(logged));
        if (!more) return {};
        sent.logged = logged.integer(0);
        if (logged.integer(1) <= sent.segment || !unpackStep(logged.blob(2), step) ||
            !unpackStep(logged.blob(3), blocks))
            continue;
        step.insert(step.end(), blocks.begin(), blocks.end());
        segment = std::max(segment, logged.integer(1));
        for (RowReader reader(step); !reader.atEnd() && reader.next(row);) {
            const std::string_view grows =
                row.table < stepTableCount() ? stepTable(row.table).grows : std::string_view();
            if (grows.empty() || grows == "segment" || row.values.size() < 2) continue;
            const auto* number = std::get_if<std::int64_t>(&row.values[grows == "step" ? 1 : 0]);
            if (number)
                sent.numbers[row.table] = std::max(*number, sent.numbers.try_emplace(row.table, -1).first->second);
        }
        if (!rows.bytes().empty())
            if (auto done = flush(StepBlockKind::Rows, run); !done) return done;
        if (auto done = write(blockBytes(StepBlockKind::Rows, static_cast<std::uint32_t>(run), step)); !done)
            return done;
    }
}

// A full disk: the file is cut back to whole steps, and what is missing comes with the next one or with the end, which
// may find room again.
Result<void> StepStreamWriter::State::send(RunStore& store, std::int64_t run, bool end)
{
    const Sent before = runs[run];
    const off_t whole = ::lseek(descriptor, 0, SEEK_END);
    auto done = sendAll(store, run, end);
    if (done || whole < 0) return done;
    runs[run] = before;
    rows.clear();
    if (::ftruncate(descriptor, whole) != 0 && errno != EINVAL) // a device keeps what it got
        done.error().message += fmt::format("; its torn end stays: {}", std::strerror(errno));
    return done;
}

Result<void> StepStreamWriter::State::sendAll(RunStore& store, std::int64_t run, bool end)
{
    Database& database = *store.database;
    Sent& sent = runs[run];
    rows.clear();
    if (!sent.begun) {
        if (auto done = runRow(database, run, runRowColumns, runRowCount); !done) return done;
        if (auto done = flush(StepBlockKind::Begin, run); !done) return done;
    }
    std::int64_t segment = sent.segment;
    for (std::size_t number = 0; number < stepTableCount(); ++number) {
        const StepTable table = stepTable(number);
        if (table.text && sent.begun && !end) continue;
        std::int64_t ignored = 0;
        if (table.grows == "segment") {
            if (auto done = this->table(database, run, number, sent.segment + 1, latest, segment); !done) return done;
            if (end && table.summarised) // of all segments; its number is below them
                if (auto done = this->table(database, run, number, summarySegment, summarySegment, ignored); !done)
                    return done;
            continue;
        }
        std::int64_t& last = sent.numbers.try_emplace(number, -1).first->second;
        if (auto done = this->table(database, run, number, last + 1, latest, last); !done) return done;
    }
    if (auto done = steps(database, run, sent, segment); !done) return done;
    if (!rows.bytes().empty())
        if (auto done = flush(StepBlockKind::Rows, run); !done) return done;
    rows.number(segment);
    if (auto done =
            end ? runRow(database, run, runRowColumns, runRowCount) : runRow(database, run, stepRow(), runStepCount);
        !done)
        return done;
    if (auto done = flush(end ? StepBlockKind::End : StepBlockKind::Commit, run); !done) return done;
    sent.begun = true;
    sent.ended = end;
    sent.segment = segment;
    return {};
}

Result<std::unique_ptr<StepStreamWriter>> StepStreamWriter::create(const std::string& path)
{
    auto state = std::make_unique<State>();
    state->path = path;
    state->descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (state->descriptor < 0)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", path, std::strerror(errno)),
                    "name a new or empty folder");
    STAGEWRIGHT_CHECK(state->write(streamHead()));
    return std::unique_ptr<StepStreamWriter>(new StepStreamWriter(std::move(state)));
}

Result<std::unique_ptr<StepStreamWriter>> StepStreamWriter::reopen(const std::string& path)
{
    auto state = std::make_unique<State>();
    state->path = path;
    state->descriptor = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
    if (state->descriptor < 0 && errno == ENOENT) return create(path);
    const auto failed = [&] { return fail(ErrorCode::Failed, fmt::format("file {}: {}", path, std::strerror(errno))); };
    if (state->descriptor < 0) return failed();
    std::vector<std::byte> bytes(streamHeadBytes);
    off_t at = 0; // of the bytes in the file
    const auto fill = [&](std::size_t from) {
        for (std::size_t got = from; got < bytes.size();) {
            const ssize_t count =
                ::pread(state->descriptor, bytes.data() + got, bytes.size() - got, at + static_cast<off_t>(got));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return bytes.resize(got);
            got += static_cast<std::size_t>(count);
        }
    };
    fill(0);
    if (bytes.empty()) { // killed before it wrote its head
        STAGEWRIGHT_CHECK(state->write(streamHead()));
        return std::unique_ptr<StepStreamWriter>(new StepStreamWriter(std::move(state)));
    }
    if (const std::string why = whyNoStream(bytes); !why.empty())
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, why), "name a new or empty folder");
    at = streamHeadBytes;
    off_t whole = at;
    for (bytes.clear();;) {
        StepBlock block;
        std::size_t length = 0;
        if (bytes.empty() || readBlock(bytes, block, length) == BlockState::Partial) {
            const std::size_t had = bytes.size();
            if (had > blockHeadBytes + mostPayload) break;
            bytes.resize(had + fullBlock);
            fill(had);
            if (bytes.size() == had) break;
            continue;
        }
        if (length == 0) break; // damaged
        at += static_cast<off_t>(length);
        if (block.kind != StepBlockKind::Begin && block.kind != StepBlockKind::Rows) whole = at;
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    }
    if (::ftruncate(state->descriptor, whole) != 0) return failed();
    return std::unique_ptr<StepStreamWriter>(new StepStreamWriter(std::move(state)));
}

StepStreamWriter::StepStreamWriter(std::unique_ptr<State> state) : m_state(std::move(state)) {}

StepStreamWriter::~StepStreamWriter() = default;

Result<void> StepStreamWriter::append(const RunFile& file, std::int64_t run)
{
    return m_state->send(*file.store(), run, false);
}

Result<void> StepStreamWriter::end(const RunFile& file, std::int64_t run)
{
    return m_state->send(*file.store(), run, true);
}

Result<void> StepStreamWriter::remove(std::int64_t run)
{
    const auto sent = m_state->runs.find(run);
    if (sent == m_state->runs.end() || !sent->second.begun) return {};
    m_state->rows.clear();
    return m_state->flush(StepBlockKind::Remove, run);
}

} // namespace stagewright
