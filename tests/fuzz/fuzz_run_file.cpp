// Damaged run files: nothing may crash, hang or read out of bounds. An input is
//   "SQLite…"  a whole file, as it is;
//   'B' …      a block: rows, then its bytes, the checksum made right, given to every decoder;
//   'S' …      rows of a step that is not folded yet, its checksum right: how many bytes are facts (2), then facts and
//              blocks;
//   else       edits of a sound file: a byte picks a column, eight bytes are its new value in every row (texts: the
//              rest).
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/memory.h"
#include "traces/compare/compare.h"
#include "traces/store/blocks.h"
#include "traces/store/pyramid.h"
#include "traces/store/run_file.h"
#include "traces/store/schedule_text.h"
#include "traces/store/step_log.h"

namespace {

using namespace stagewright;

// In memory if the system allows it: a disk's flushes would be most of the time.
const std::string path =
    (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : std::filesystem::temp_directory_path().string() + "/") +
    std::string("stagewright_fuzz_") + std::to_string(::getpid()) + ".stagewright";

struct Target {
    const char* table;
    const char* column;
    bool text;
};
constexpr std::array<Target, 44> targets{{
    {"run", "id", false},
    {"run", "ranks", false},
    {"run", "stages", false},
    {"run", "steps", false},
    {"run", "span_count", false},
    {"run", "begin_ns", false},
    {"run", "end_ns", false},
    {"run", "time_unit", false},
    {"run", "memory_unit", false},
    {"run", "warmup_steps", false},
    {"run", "state", true},
    {"run", "provenance", true},
    {"run", "schedule", true},
    {"run", "realised", true},
    {"run", "costs", true},
    {"run", "name", true},
    {"track", "track", false},
    {"track", "rank", false},
    {"track", "lane", true},
    {"track", "name", true},
    {"label", "label", false},
    {"segment", "segment", false},
    {"segment", "spans", false},
    {"segment", "first_span", false},
    {"span_block", "track", false},
    {"span_block", "first", false},
    {"span_block", "step", false},
    {"span_block", "count", false},
    {"pyramid", "level", false},
    {"pyramid", "count", false},
    {"pyramid", "ordinal", false},
    {"memory_block", "rank", false},
    {"memory_block", "count", false},
    {"edge_block", "count", false},
    {"edge_block", "segment", false},
    {"counter", "rank", false},
    {"counter_block", "counter", false},
    {"metric_value", "step", false},
    {"metric_value", "value", true},
    {"span_block", "segment", false},
    {"label", "text", true},
    {"label_shape", "run", false},
    {"label_shape", "label", false},
    {"label_shape", "text", true},
}};

void removeFiles()
{
    for (const char* suffix : {"", "-wal", "-shm", "-journal", "-lock"}) ::unlink((path + suffix).c_str());
}

void writeFile(const char* data, std::size_t size)
{
    removeFiles();
    std::ofstream(path, std::ios::binary).write(data, static_cast<std::streamsize>(size));
}

// Kernels of one name: with a shape, with another, without.
void addKernels(TimelineBuilder& builder)
{
    const int track = builder.addTrack(1, Lane::Kernel, "rank 1 stream 7");
    Nanos at = 0;
    for (const char* shape : {"grid 8×2×1, block 128×1×1, inputs [[64,512],[512]]", "grid 4×2×1, block 128×1×1", ""}) {
        Span kernel;
        kernel.start = at;
        kernel.end = at += 10;
        kernel.label = builder.intern("gemm", shape) & 0xffffffu;
        builder.addSpan(track, kernel);
    }
}

const std::string& soundFile()
{
    static const std::string bytes = [] {
        removeFiles();
        auto file = RunFile::open(path, OpenMode::Create).value();
        for (const char* name : {"1f1b", "zb-h1"}) {
            Shape shape;
            shape.ranks = 2;
            shape.microbatches = 4;
            const Schedule schedule = makeSchedule(name, shape).value();
            Run run;
            run.costs = CostModel::uniform(schedule);
            TimelineBuilder builder(Provenance::Simulated, "model", 2);
            builder.append(*simulatedTimeline(schedule, *run.costs).value());
            builder.addSample(builder.addCounter(0, "counter", "unit"), 5, 1.5);
            addKernels(builder);
            run.timeline = builder.build().value();
            run.schedule = std::make_shared<const Schedule>(schedule);
            run.metrics = {{"loss", "nats", {1, 2}}};
            if (!file->add(run)) std::abort();
        }
        file.reset();
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    return bytes;
}

void editFile(const std::uint8_t* data, std::size_t size)
{
    writeFile(soundFile().data(), soundFile().size());
    sqlite3* database = nullptr;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) std::abort();
    while (size >= 9) {
        const Target& target = targets[data[0] % targets.size()];
        std::int64_t value = 0;
        std::memcpy(&value, data + 1, 8);
        data += 9;
        size -= 9;
        const std::string sql = std::string("UPDATE OR IGNORE ") + target.table + " SET " + target.column + "=?";
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) std::abort();
        if (target.text) {
            sqlite3_bind_text(statement, 1, reinterpret_cast<const char*>(data), static_cast<int>(size),
                              SQLITE_TRANSIENT);
            size = 0;
        } else {
            sqlite3_bind_int64(statement, 1, data[-9] & 0x80 ? value : value % 64);
        }
        sqlite3_step(statement);
        sqlite3_finalize(statement);
    }
    sqlite3_close(database);
}

// A sound file with one more step of its first run.
void addStep(const std::uint8_t* data, std::size_t size)
{
    if (size < 2) return;
    writeFile(soundFile().data(), soundFile().size());
    const std::span<const std::byte> rows(reinterpret_cast<const std::byte*>(data + 2), size - 2);
    const std::size_t facts = std::min<std::size_t>(rows.size(), data[0] | static_cast<std::size_t>(data[1]) << 8);
    sqlite3* database = nullptr;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) std::abort();
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database,
                           "INSERT INTO step_log SELECT 1, id, 7, steps, steps+1, span_count+9, begin_ns, end_ns+1000, "
                           "?, ? FROM run WHERE id=1",
                           -1, &statement, nullptr) != SQLITE_OK)
        std::abort();
    int number = 0;
    for (const auto part : {rows.first(facts), rows.subspan(facts)}) {
        const auto packed = packStep(part);
        sqlite3_bind_blob(statement, ++number, packed.data(), static_cast<int>(packed.size()), SQLITE_TRANSIENT);
    }
    if (sqlite3_step(statement) != SQLITE_DONE) std::abort();
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

// A range that starts and ends inside of ops, as the window reads it: through the bounds of the blocks and the header,
// and without them.
void readParts(const RunFile& file, std::int64_t id)
{
    const auto content = file.content(id);
    const auto blocks = file.blocks(id);
    const auto header = file.readHeader(id);
    if (!content || !blocks) return;
    (void)file.streamMemory(id, [](std::span<const MemoryEvent>) { return true; });
    const Nanos length = content->end - content->begin;
    const Nanos begin = content->begin + length / 3, end = content->begin + length / 2 + 1;
    std::vector<RunFile::BlockBounds> rows;
    for (const RunFile::BlockBounds& block : *blocks)
        if (block.begin < end && block.end > begin) rows.push_back(block);
    const auto part = rows.empty() ? file.readRange(id, begin, end)
                                   : file.readRange(id, begin, end, {}, rows, header ? &*header : nullptr);
    if (!part) return;
    for (const Span& span : part->timeline->spans())
        if (span.start >= end || span.end <= begin) std::abort();
}

void useFile()
{
    auto opened = RunFile::open(path, OpenMode::Read);
    if (opened) {
        const RunFile& file = **opened;
        auto infos = file.runs();
        std::vector<Run> runs;
        for (std::size_t i = 0; infos && i < infos->size() && i < 4; ++i) {
            const std::int64_t id = (*infos)[i].id;
            (void)file.overview(id, 100);
            readParts(file, id);
            if (const auto part = file.readForReport(id, -1))
                (void)analyseBubbles(*part->timeline, part->representativeStep());
            auto run = file.read(id);
            if (!run) continue;
            for (const Span& span : run->timeline->spans()) (void)run->timeline->shapeOf(span);
            const int step = run->representativeStep();
            const auto report = analyseBubbles(*run->timeline, step);
            for (const Gap& gap : report->gaps) (void)explainGap(*run->timeline, gap);
            (void)criticalPath(StepOps(*run->timeline, step));
            (void)peakByRank(*run->timeline, step);
            runs.push_back(std::move(*run));
        }
        if (runs.size() > 1) (void)compareRuns(runs[0], runs[1]);
        for (const char* sql :
             {"SELECT * FROM spans", "SELECT * FROM memory WHERE rank=1", "SELECT * FROM edges WHERE run=1",
              "SELECT * FROM steps", "SELECT * FROM metrics", "SELECT * FROM runs", "SELECT * FROM label_shape"})
            (void)file.query(sql, 1000);
    }
    opened = fail(ErrorCode::Usage, "closed");
    auto writable = RunFile::open(path, OpenMode::Write);
    if (writable) {
        (void)(*writable)->rename(1, "renamed");
        (void)(*writable)->remove(1);
    }
}

void decodeBlock(const std::uint8_t* data, std::size_t size)
{
    if (size < 6) return;
    const std::size_t rows = (data[0] | static_cast<std::size_t>(data[1]) << 8) % (blockRows + 2);
    std::vector<std::byte> bytes(size - 2);
    std::memcpy(bytes.data(), data + 2, bytes.size());
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + 4), static_cast<uInt>(bytes.size() - 4));
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(sum >> (8 * i));
    std::vector<StoredSpan> spans;
    std::vector<MemoryEvent> events;
    std::vector<Edge> edges;
    std::vector<CounterSample> samples;
    std::vector<Bucket> buckets;
    (void)decodeSpans(bytes, rows, 0, spans);
    (void)decodeMemory(bytes, rows, 0, events);
    (void)decodeEdges(bytes, rows, edges);
    (void)firstEdgeTarget(bytes, rows);
    (void)decodeSamples(bytes, rows, samples);
    (void)decodeBuckets(bytes, rows, buckets);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size > 6 && std::memcmp(data, "SQLite", 6) == 0) {
        writeFile(reinterpret_cast<const char*>(data), size);
        useFile();
    } else if (size > 0 && data[0] == 'B') {
        decodeBlock(data + 1, size - 1);
        (void)readScheduleText(std::string_view(reinterpret_cast<const char*>(data + 1), size - 1));
    } else if (size > 0 && data[0] == 'S') {
        addStep(data + 1, size - 1);
        useFile();
    } else {
        editFile(data, size);
        useFile();
    }
    removeFiles();
    return 0;
}
