// Nsight Systems exported to SQLite (`nsys export --type sqlite`). Tables and columns vary with versions and with what
// was traced: each is checked before it is read, rows come in any order. Every process that used a GPU is a rank; host
// ranges (NVTX) are tied to kernels by the runtime calls within them.
#include "traces/import/nsight/nsys_sqlite.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "schedules/base/time_limits.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/kernels.h"
#include "traces/foreign/archive.h"
#include "traces/foreign/graph_node.h"
#include "traces/format/format_registry.h"
#include "traces/import/nsight/nccl_calls.h"
#include "traces/import/nsight/nvtx_payload.h"
#include "traces/store/trust.h"

namespace stagewright {

namespace {

using Columns = std::set<std::string, std::less<>>;

class NsightReader {
public:
    NsightReader(std::string path, const ImportOptions& options, const Progress& progress)
        : m_path(std::move(path)), m_options(options), m_progress(progress)
    {
    }

    Result<ForeignFile> read()
    {
        auto opened =
            isInMemory(m_path) ? Database::openInMemory(m_path) : Database::open(m_path, SQLITE_OPEN_READONLY);
        if (!opened) return tl::unexpected(std::move(opened.error()));
        std::int64_t bytes = 0;
        for (const char* suffix : {"", "-wal"}) {
            std::error_code absent;
            const auto size = std::filesystem::file_size(m_path + suffix, absent);
            if (!absent) bytes += static_cast<std::int64_t>(size);
        }
        return read(std::move(*opened), bytes);
    }

    Result<ForeignFile> read(std::unique_ptr<Database> database, std::int64_t bytes)
    {
        m_database = std::move(database);
        m_bytes = bytes;
        STAGEWRIGHT_CHECK(limitFor(*m_database, m_bytes));
        const Watch stop(*m_database, [this] { return m_progress.cancelled(); });
        if (auto done = readTables(); !done)
            return fail(ErrorCode::Unreadable, reasonOf(done.error()), "export it again: nsys export --type sqlite");
        if (m_tables.contains("run") && m_tables.contains("span_block"))
            return fail(ErrorCode::Unreadable, "a run file, not a foreign trace",
                        "open it directly, or copy its runs with runs --merge");
        if (!m_tables.contains("StringIds"))
            return fail(ErrorCode::Unreadable, "not an export of Nsight Systems: table StringIds is missing",
                        "create one with nsys export --type sqlite");
        readStrings();
        readSession();
        readDeviceWork("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName", "shortName", "mangledName"}, "kernel", false);
        readDeviceWork("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {}, std::string(wholeGraph), false);
        readDeviceWork("CUPTI_ACTIVITY_KIND_MEMCPY", {}, "", true);
        readDeviceWork("CUPTI_ACTIVITY_KIND_MEMSET", {}, "memset", true);
        m_deviceRead = !m_rankOf.empty();
        readLaunches();
        readSchemas();
        readRanges();
        readMemory();
        for (const char* table : {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "OSRT_API", "CUPTI_ACTIVITY_KIND_OVERHEAD",
                                  "PROFILER_OVERHEAD", "DIAGNOSTIC_EVENT"})
            countLeftOut(table);
        if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
        if (std::all_of(m_file.ranks.begin(), m_file.ranks.end(), [](const ForeignRank& rank) {
                return rank.device.empty() && rank.annotations.empty() && rank.memory.empty();
            }))
            return fail(ErrorCode::Unreadable, "no kernels, copies or NVTX ranges in the export",
                        "trace with nsys profile --trace=cuda,nvtx");
        return finish();
    }

private:
    // Without the file, which is named around it.
    std::string reasonOf(const Error& error) const
    {
        const std::string file = "file " + m_path + ": ";
        return error.message.starts_with(file) ? error.message.substr(file.size()) : error.message;
    }

    Result<void> readTables()
    {
        const Deadline deadline(*m_database, secondsFor(m_bytes));
        auto list =
            m_database->prepare("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'");
        if (!list && deadline.passed())
            return fail(ErrorCode::Unreadable,
                        "its list of tables takes too long to read, so it is damaged or made to do so");
        if (!list) return tl::unexpected(std::move(list.error()));
        while (true) {
            auto row = m_database->step(*list);
            if (!row && deadline.passed())
                return fail(ErrorCode::Unreadable,
                            "its list of tables takes too long to read, so it is damaged or made to do so");
            if (!row) return tl::unexpected(std::move(row.error()));
            if (!*row) return {};
            m_tables.insert(list->text(0));
        }
    }

    Columns columnsOf(const std::string& table)
    {
        Columns columns;
        if (!m_tables.contains(table)) return columns;
        auto list = m_database->prepare(fmt::format("SELECT name FROM pragma_table_info('{}')", table));
        while (list) {
            const auto row = m_database->step(*list);
            if (!row || !*row) break;
            columns.insert(list->text(0));
        }
        return columns;
    }

    // Calls `take` for every row of these columns, NULL if a column is missing. A damaged table ends early and is
    // reported.
    template <typename Take>
    void each(const std::string& table, const Columns& has, std::initializer_list<const char*> columns, Take&& take)
    {
        if (has.empty() || m_progress.cancelled()) return;
        std::string sql = "SELECT ";
        for (const char* column : columns)
            sql += fmt::format("{}{}", column == *columns.begin() ? "" : ", ",
                               has.contains(column) ? fmt::format("\"{}\"", column) : "NULL");
        auto rows = m_database->prepare(fmt::format("{} FROM \"{}\"", sql, table));
        constexpr std::int64_t leastRow = 6; // bytes on a page; with less, pages are read again and again
        Deadline deadline(*m_database, secondsFor(m_bytes));
        std::int64_t count = 0;
        const auto damaged = [&](std::string_view why) {
            m_notes.push_back(fmt::format("table {} is damaged after row {}: {}", table, count, why));
            ++m_damaged;
        };
        while (rows) {
            const auto row = m_database->step(*rows);
            if (!row)
                return m_progress.cancelled()
                           ? void()
                           : damaged(deadline.passed() ? "its rows take too long" : reasonOf(row.error()));
            if (!*row) return;
            if (count > m_bytes / leastRow) return damaged("the file has no room for so many rows");
            take(*rows);
            if ((++count & 0x3fff) == 0) {
                m_progress.tell(table, count, count);
                if (m_progress.cancelled()) return;
                deadline.renew();
            }
        }
        m_notes.push_back(fmt::format("table {} can't be read: {}", table, reasonOf(rows.error())));
        ++m_damaged;
    }

    void readStrings()
    {
        each("StringIds", columnsOf("StringIds"), {"id", "value"},
             [this](Statement& row) { m_strings[row.integer(0)] = row.text(1); });
    }

    std::string stringOf(const Statement& row, int column) const
    {
        if (row.isNull(column)) return {};
        const auto found = m_strings.find(row.integer(column));
        return found == m_strings.end() ? std::string() : found->second;
    }

    void readSession()
    {
        each("TARGET_INFO_SESSION_START_TIME", columnsOf("TARGET_INFO_SESSION_START_TIME"), {"utcEpochNs"},
             [this](Statement& row) {
                 const std::int64_t epoch = row.integer(0);
                 if (epoch > 0 && epoch < farthestReading) m_epoch = epoch;
             });
        std::string version;
        each("META_DATA_EXPORT", columnsOf("META_DATA_EXPORT"), {"name", "value"}, [&](Statement& row) {
            if (row.text(0) == "EXPORT_SCHEMA_VERSION") version = row.text(1);
        });
        if (!version.empty()) m_environment.emplace_back("nsight_schema", version);
        std::map<std::string, int> devices;
        each("TARGET_INFO_GPU", columnsOf("TARGET_INFO_GPU"), {"name"},
             [&](Statement& row) { ++devices[row.text(0)]; });
        for (const auto& [name, count] : devices)
            if (!name.empty()) m_environment.emplace_back("device", fmt::format("{} × {}", count, name));
    }

    // The rank of a process, or null: one without device work where others have some.
    ForeignRank* rankOf(std::int64_t process)
    {
        const auto found = m_rankOf.find(process);
        if (found != m_rankOf.end()) return &m_file.ranks[found->second];
        if (m_deviceRead || m_rankOf.size() >= 4096) return nullptr;
        m_rankOf.emplace(process, m_file.ranks.size());
        m_firstDevice.push_back(std::numeric_limits<std::int64_t>::max());
        ForeignRank rank;
        rank.source = m_path;
        rank.format = "nsight";
        rank.epoch = m_epoch;
        m_file.ranks.push_back(std::move(rank));
        return &m_file.ranks.back();
    }

    std::uint32_t threadOf(ForeignRank& rank, std::int64_t key, const std::string& name, bool device)
    {
        const auto [entry, added] = m_threads.try_emplace({&rank - m_file.ranks.data(), key, device},
                                                          static_cast<std::uint32_t>(rank.threads.size()));
        if (added) rank.threads.push_back({name, device});
        return entry->second;
    }

    static bool badTimes(Nanos start, Nanos end) { return start < 0 || end < start || end > farthestReading; }

    static std::string copyName(std::int64_t kind)
    {
        static constexpr auto names = std::to_array<const char*>(
            {"memcpy", "memcpy host to device", "memcpy device to host", "memcpy host to array", "memcpy array to host",
             "memcpy array to array", "memcpy array to device", "memcpy device to array", "memcpy device to device",
             "memcpy host to host", "memcpy peer to peer"});
        return kind >= 0 && kind < static_cast<std::int64_t>(names.size()) ? names[static_cast<std::size_t>(kind)]
                                                                           : names[0];
    }

    void readDeviceWork(const std::string& table, std::initializer_list<const char*> nameColumns,
                        const std::string& fallback, bool copy)
    {
        const Columns has = columnsOf(table);
        if (has.empty()) return;
        if (!has.contains("start") || !has.contains("end")) {
            m_notes.push_back(fmt::format("table {} has no times and was skipped", table));
            return;
        }
        const char* nameColumn = "";
        for (const char* column : nameColumns)
            if (*nameColumn == '\0' && has.contains(column)) nameColumn = column;
        each(table, has,
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "copyKind", nameColumn, "bytes",
              "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "graphId", "graphNodeId"},
             [&](Statement& row) {
                 const Nanos start = row.integer(0);
                 const Nanos end = row.integer(1);
                 ForeignRank* rank =
                     row.isNull(0) || row.isNull(1) || badTimes(start, end) ? nullptr : rankOf(row.integer(5) >> 24);
                 if (rank == nullptr) {
                     ++m_damaged;
                     return;
                 }
                 ++rank->events;
                 std::string name = fallback.empty() ? copyName(row.integer(6)) : stringOf(row, 7);
                 if (name.empty()) name = fallback;
                 DeviceSpan span;
                 span.start = start;
                 span.end = end;
                 const std::string launch = launchShape({row.integer(9), row.integer(10), row.integer(11)},
                                                        {row.integer(12), row.integer(13), row.integer(14)});
                 const CudaGraphNode graph = graphNodeOf(row.integer(15), row.integer(16));
                 span.name = rank->names.idOf(name, graph.known() ? withGraph(launch, graph) : launch);
                 span.thread = threadOf(*rank, (row.integer(2) << 32) ^ row.integer(3),
                                        fmt::format("GPU {} stream {}", row.integer(2), row.integer(3)), true);
                 rank->threads[span.thread].gpu =
                     static_cast<int>(std::clamp<std::int64_t>(row.integer(2), -1, 1'000'000));
                 span.correlation = row.isNull(4) || row.integer(4) <= 0 ? -1 : row.integer(4);
                 span.copy = copy;
                 auto& first = m_firstDevice[static_cast<std::size_t>(rank - m_file.ranks.data())];
                 first = std::min(first, row.integer(2));
                 if (!copy) addCollective(*rank, span, name);
                 if (copy && !row.isNull(8) && row.integer(8) >= 0)
                     rank->copyBytes.emplace_back(static_cast<std::uint32_t>(rank->device.size()), row.integer(8));
                 rank->device.push_back(span);
             });
    }

    // "ncclDevKernel_AllReduce_Sum_f32_RING_LL" → a collective "AllReduce"
    static void addCollective(ForeignRank& rank, DeviceSpan& span, const std::string& name)
    {
        const std::string kind = collectiveOfKernel(name);
        if (kind.empty()) return;
        span.collective = true;
        ForeignMessage message;
        message.start = span.start;
        message.end = span.end;
        message.name = rank.names.idOf(kind);
        message.group = rank.names.idOf("");
        message.correlation = span.correlation;
        message.work = static_cast<std::int64_t>(rank.device.size());
        message.device = true;
        rank.messages.push_back(message);
    }

    void readLaunches()
    {
        const Columns has = columnsOf("CUPTI_ACTIVITY_KIND_RUNTIME");
        if (!has.contains("correlationId") || !has.contains("start")) return;
        each("CUPTI_ACTIVITY_KIND_RUNTIME", has, {"start", "correlationId", "globalTid", "end", "nameId"},
             [&](Statement& row) {
                 takeKeptCall(row);
                 if (row.isNull(1) || row.integer(1) == 0) return; // called nothing on the device
                 const std::int64_t thread = row.integer(2);
                 ForeignRank* rank = rankOf(thread >> 24);
                 if (rank == nullptr) return;
                 ++rank->events;
                 rank->launches.push_back({row.integer(1), row.integer(0), hostThread(*rank, thread)});
             });
    }

    // Calls that wait for the device, and launches of graphs. The version at the end of a name, as in
    // "cudaStreamSynchronize_v3020", says nothing here.
    void takeKeptCall(Statement& row)
    {
        if (row.isNull(0) || row.isNull(3) || row.isNull(4) || badTimes(row.integer(0), row.integer(3))) return;
        const auto [known, added] = m_keptCalls.try_emplace(row.integer(4));
        if (added) {
            const std::string name = stringOf(row, 4);
            if (isSynchronisingCall(name) || isGraphLaunch(name)) known->second = name.substr(0, name.find("_v"));
        }
        ForeignRank* rank = known->second.empty() ? nullptr : rankOf(row.integer(2) >> 24);
        if (rank == nullptr) return;
        rank->hostOps.push_back(
            {row.integer(0), row.integer(3), rank->names.idOf(known->second), hostThread(*rank, row.integer(2))});
    }

    std::uint32_t hostThread(ForeignRank& rank, std::int64_t thread)
    {
        return threadOf(rank, thread, fmt::format("thread {}", thread & 0xffffff), false);
    }

    // Ranges within others that the framework named are its operators: thousands a step.
    static bool isOperator(std::string_view name)
    {
        return name.starts_with("aten::") || name.starts_with("autograd::");
    }

    void readSchemas()
    {
        each("NVTX_PAYLOAD_SCHEMA_ENTRIES", columnsOf("NVTX_PAYLOAD_SCHEMA_ENTRIES"),
             {"domainId", "schemaId", "idx", "type", "name", "offset"}, [this](Statement& row) {
                 // The first one's offset is not written.
                 m_schemas.add(row.integer(0), row.integer(1), row.integer(2), row.integer(3), row.text(4),
                               row.isNull(5) ? -1 : row.integer(5));
             });
    }

    // A call of NCCL with its payload, which names the peer.
    void takeCall(const Statement& row, int column, const ForeignSpan& span, std::size_t rank, const std::string& name)
    {
        if (m_schemas.empty() || !isNcclCall(name)) return;
        NcclCall call{span, row.isNull(column) ? NvtxPayload() : m_schemas.read(row.blob(column))};
        if (!row.isNull(column)) ++(call.payload.empty() ? m_payloadsUnread : m_payloadsRead);
        m_calls[rank].push_back(std::move(call));
    }

    void readRanges()
    {
        const Columns has = columnsOf("NVTX_EVENTS");
        if (!has.contains("start") || !has.contains("end")) return;
        struct Range {
            ForeignSpan span;
            std::size_t rank;
        };
        std::vector<Range> ranges;
        each("NVTX_EVENTS", has, {"start", "end", "eventType", "text", "textId", "globalTid", "binaryData"},
             [&](Statement& row) {
                 const std::int64_t type = row.integer(2);
                 const bool range = row.isNull(2) || type == 59 || type == 60 || type == 70 || type == 71;
                 if (!range) return; // marks, names of domains
                 if (row.isNull(1)) {
                     ++m_openRanges;
                     return;
                 }
                 const std::int64_t thread = row.integer(5);
                 ForeignRank* rank = rankOf(thread >> 24);
                 if (rank == nullptr) return;
                 ++rank->events;
                 if (badTimes(row.integer(0), row.integer(1))) {
                     ++m_damaged;
                     return;
                 }
                 std::string name = row.isNull(3) ? stringOf(row, 4) : row.text(3);
                 // of PyTorch's emit_nvtx: other for every call
                 for (const char* tail : {", op_id = ", ", seq = ", ", sizes = "})
                     if (const std::size_t at = name.find(tail); at != std::string::npos) name.erase(at);
                 const auto number = static_cast<std::size_t>(rank - m_file.ranks.data());
                 ranges.push_back(
                     {{row.integer(0), row.integer(1), rank->names.idOf(name), hostThread(*rank, thread)}, number});
                 takeCall(row, 6, ranges.back().span, number, name);
             });
        for (auto& [rank, calls] : m_calls) tieNcclCalls(m_file.ranks[rank], std::move(calls));
        if (m_payloadsUnread > 0)
            m_notes.push_back(fmt::format("{} of {} payloads of NCCL calls have an unknown layout", m_payloadsUnread,
                                          m_payloadsRead + m_payloadsUnread));
        std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
            return std::tuple(a.rank, a.span.thread, a.span.start, -a.span.end) <
                   std::tuple(b.rank, b.span.thread, b.span.start, -b.span.end);
        });
        std::size_t rank = 0;
        std::uint32_t thread = 0xffffffffu;
        Nanos until = 0;
        for (const Range& range : ranges) {
            ForeignRank& of = m_file.ranks[range.rank];
            const bool inside = range.rank == rank && range.span.thread == thread && range.span.end <= until;
            if (inside && isOperator(of.names[range.span.name])) {
                if (m_options.hostOps)
                    of.hostOps.push_back(range.span);
                else
                    ++of.leftOut["operators of the host"];
                continue;
            }
            of.annotations.push_back(range.span);
            if (inside) continue;
            rank = range.rank;
            thread = range.span.thread;
            until = range.span.end;
        }
    }

    void readMemory()
    {
        const Columns has = columnsOf("CUDA_GPU_MEMORY_USAGE_EVENTS");
        if (!has.contains("start") || !has.contains("bytes") || !has.contains("memoryOperationType")) return;
        each("CUDA_GPU_MEMORY_USAGE_EVENTS", has,
             {"start", "globalPid", "globalTid", "bytes", "memoryOperationType", "address", "deviceId"},
             [&](Statement& row) {
                 const std::int64_t id = row.isNull(1) ? row.integer(2) : row.integer(1);
                 ForeignRank* rank = rankOf(id >> 24);
                 const std::int64_t operation = row.integer(4);
                 const Bytes bytes = row.integer(3);
                 if (rank == nullptr || operation < 0 || operation > 1 || bytes <= 0 ||
                     badTimes(row.integer(0), row.integer(0)))
                     return;
                 ++rank->events;
                 rank->memory.push_back(
                     {row.integer(0), operation == 0 ? bytes : -bytes, static_cast<std::uint64_t>(row.integer(5)), -1,
                      0, true, std::nullopt, 0, -1,
                      row.isNull(6) ? -1 : static_cast<int>(std::clamp<std::int64_t>(row.integer(6), -1, 1'000'000))});
             });
    }

    void countLeftOut(const char* table)
    {
        if (!m_tables.contains(table) || m_file.ranks.empty()) return;
        const Deadline deadline(*m_database, secondsFor(m_bytes));
        const auto count =
            m_database->integer(fmt::format("SELECT count(*) FROM (SELECT 1 FROM \"{}\" LIMIT {})", table, m_bytes));
        if (count && *count > 0) m_file.ranks.front().leftOut[fmt::format("rows of {}", table)] += *count;
    }

    Result<ForeignFile> finish()
    {
        std::vector<std::size_t> order(m_file.ranks.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::vector<std::int64_t> processes(order.size());
        for (const auto& [process, number] : m_rankOf) processes[number] = process;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return std::pair(m_firstDevice[a], processes[a]) < std::pair(m_firstDevice[b], processes[b]);
        });
        ForeignFile out;
        for (const std::size_t i : order) {
            ForeignRank& rank = m_file.ranks[i];
            if (order.size() > 1) rank.rank = static_cast<int>(out.ranks.size());
            out.ranks.push_back(std::move(rank));
        }
        ForeignRank& first = out.ranks.front();
        first.environment = m_environment;
        first.damaged = m_damaged;
        first.notes = m_notes;
        if (m_openRanges > 0) first.leftOut["ranges without an end"] = m_openRanges;
        if (!m_tables.contains("NVTX_EVENTS"))
            first.notes.emplace_back("no NVTX ranges were traced, so ops have no names");
        if (std::all_of(out.ranks.begin(), out.ranks.end(),
                        [](const ForeignRank& rank) { return rank.device.empty(); }))
            first.notes.emplace_back("no kernels were traced: trace with nsys profile --trace=cuda,nvtx");
        return out;
    }

    std::string m_path;
    const ImportOptions& m_options;
    const Progress& m_progress;
    std::unique_ptr<Database> m_database;
    std::int64_t m_bytes = 0; // of the file and its log
    std::set<std::string, std::less<>> m_tables;
    std::unordered_map<std::int64_t, std::string> m_strings;
    std::map<std::int64_t, std::size_t> m_rankOf; // by process
    std::vector<std::int64_t> m_firstDevice;      // by rank
    std::map<std::tuple<std::ptrdiff_t, std::int64_t, bool>, std::uint32_t> m_threads;
    ForeignFile m_file;
    NvtxPayloadSchemas m_schemas;
    std::map<std::size_t, std::vector<NcclCall>> m_calls; // by rank
    std::map<std::int64_t, std::string> m_keptCalls;      // by id of the call's name; empty: it is not kept
    std::int64_t m_payloadsRead = 0;
    std::int64_t m_payloadsUnread = 0;
    Nanos m_epoch = 0;
    std::vector<std::pair<std::string, std::string>> m_environment;
    std::vector<std::string> m_notes;
    std::int64_t m_damaged = 0;
    std::int64_t m_openRanges = 0;
    bool m_deviceRead = false;
};

Result<ForeignFile> readNsight(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    return NsightReader(path, options, progress).read();
}

bool looksLikeSqlite(std::string_view head) { return head.starts_with("SQLite format 3"); }

} // namespace

Result<ForeignFile> readNsightTables(std::unique_ptr<Database> database, const std::string& path, std::int64_t bytes,
                                     const ImportOptions& options, const Progress& progress)
{
    return NsightReader(path, options, progress).read(std::move(database), bytes);
}

namespace formats {

extern const FormatInfo nsys_sqlite;
const FormatInfo nsys_sqlite{
    .name = "nsight",
    .title = "Nsight Systems",
    .reads = "Nsight Systems exported to SQLite",
    .suffixes = {".sqlite"},
    .recordMemory = "record with --cuda-memory-usage=true",
    .recordKernels = "trace with nsys profile --trace=cuda,nvtx",
    .hostExports = true,
    .sniff = looksLikeSqlite,
    .read = readNsight,
};

} // namespace formats

} // namespace stagewright
