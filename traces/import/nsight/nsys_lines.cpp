// Nsight Systems exported as JSON (`nsys export --type json`): an object a line. Numbers are texts.
//
//     {"Type":79,"CudaEvent":{"startNs":"5","endNs":"9","correlationId":31,"streamId":7,…,"kernel":{"shortName":"12"}}}
//     {"Type":48,"TraceProcessEvent":{"startNs":"1","endNs":"2","correlationId":31,"name":"14","globalTid":"…"}}
//     {"Type":59,"NvtxEvent":{"Timestamp":"1","EndTimestamp":"9","Text":"PP:0F0","GlobalTid":"…"}}
//     {"data":["", "cudaLaunchKernel", …]}   the texts that numbers name; or {"type":"String","id":"1","value":"…"} each
//
// They become rows of the tables of the SQLite export, in a temporary database that its reader reads.
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/text.h"
#include "schedules/base/time_limits.h"
#include "traces/foreign/byte_source.h"
#include "traces/import/nsight/nsys_sqlite.h"
#include "traces/store/guarded_files.h"

namespace stagewright {

namespace {

using nlohmann::json;

constexpr std::size_t longestLine = std::size_t{256} << 20; // all texts may be on one
constexpr const char* bringSqlite = "export the report as SQLite: nsys export --type sqlite";

const json& memberOf(const json& object, const char* name)
{
    static const json none;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? none : *found;
}

std::optional<std::int64_t> wholeIn(const json& object, const char* name)
{
    const json& value = memberOf(object, name);
    if (value.is_number_unsigned())
        return static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), INT64_MAX));
    if (value.is_number_integer()) return value.get<std::int64_t>();
    return value.is_string() ? wholeOf<std::int64_t>(value.get_ref<const std::string&>()) : std::nullopt;
}

class LinesReader {
public:
    LinesReader(ByteSource& source, const Progress& progress) : m_source(source), m_progress(progress) {}

    Result<std::unique_ptr<Database>> read(const std::string& path)
    {
        // without a name it is a file that SQLite removes
        STAGEWRIGHT_TRY(m_database, Database::openTemporary(path));
        STAGEWRIGHT_CHECK(m_database->execute(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE StringIds(id, value);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, \"end\", deviceId, streamId, correlationId, globalPid, "
            "demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, \"end\", deviceId, streamId, correlationId, globalPid, "
            "copyKind, bytes, graphNodeId);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, \"end\", deviceId, streamId, correlationId, globalPid, "
            "bytes, graphNodeId);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, \"end\", globalTid, correlationId, nameId);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start);"
            "CREATE TABLE NVTX_EVENTS(start, \"end\", eventType, text, textId, globalTid); BEGIN"));
        std::string line;
        std::array<char, 1 << 16> buffer;
        for (std::size_t size = 0; (size = m_source.read(buffer.data(), buffer.size())) > 0;) {
            if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            m_progress.tell("reading", m_source.consumed(), m_source.size());
            std::string_view rest(buffer.data(), size);
            while (!rest.empty()) {
                const std::size_t end = rest.find('\n');
                if (line.size() <= longestLine) line += rest.substr(0, end);
                if (end == std::string_view::npos) break;
                STAGEWRIGHT_CHECK(take(line));
                line.clear();
                rest.remove_prefix(end + 1);
            }
        }
        STAGEWRIGHT_CHECK(take(line));
        STAGEWRIGHT_CHECK(m_database->execute("COMMIT"));
        return std::move(m_database);
    }

    std::int64_t damaged() const { return m_damaged; }
    std::int64_t left() const { return m_left; } // events of other kinds
    bool anyText() const { return m_texts > 0; }

private:
    Result<void> take(std::string_view line)
    {
        line = trimmed(line);
        if (line.ends_with(',')) line.remove_suffix(1);
        if (line.empty() || line == "[" || line == "]") return {};
        const json object =
            line.size() > longestLine ? json(json::value_t::discarded) : json::parse(line, nullptr, false);
        if (!object.is_object()) {
            ++m_damaged;
            return {};
        }
        if (const json& data = memberOf(object, "data"); data.is_array()) return takeTexts(data);
        if (const json& value = memberOf(object, "value"); value.is_string())
            if (const auto id = wholeIn(object, "id"); id) return addText(*id, value.get_ref<const std::string&>());
        if (const json& event = memberOf(object, "CudaEvent"); event.is_object()) return takeWork(event);
        if (const json& event = memberOf(object, "TraceProcessEvent"); event.is_object())
            return insert("CUPTI_ACTIVITY_KIND_RUNTIME", event,
                          {"startNs", "endNs", "globalTid", "correlationId", "name"});
        if (const json& event = memberOf(object, "NvtxEvent"); event.is_object()) return takeRange(object, event);
        m_left += memberOf(object, "Type").is_null() ? 0 : 1;
        return {};
    }
    Result<void> takeTexts(const json& texts)
    {
        std::int64_t id = 0;
        for (const json& text : texts) { // a list of streams, or of others, has none
            if (text.is_string()) STAGEWRIGHT_CHECK(addText(id, text.get_ref<const std::string&>()));
            ++id;
        }
        return {};
    }
    Result<void> addText(std::int64_t id, const std::string& text)
    {
        ++m_texts;
        STAGEWRIGHT_TRY(Statement * row, m_database->cached("INSERT INTO StringIds VALUES (?, ?)"));
        row->bind(id).bind(std::string_view(text));
        return m_database->run(*row);
    }
    Result<void> takeWork(const json& event)
    {
        if (const json& kernel = memberOf(event, "kernel"); kernel.is_object())
            return insert("CUPTI_ACTIVITY_KIND_KERNEL", event, ofDevice,
                          {{&kernel, memberOf(kernel, "demangledName").is_null() ? "shortName" : "demangledName"},
                           {&kernel, "gridX"},
                           {&kernel, "gridY"},
                           {&kernel, "gridZ"},
                           {&kernel, "blockX"},
                           {&kernel, "blockY"},
                           {&kernel, "blockZ"},
                           {&event, "graphNodeId"}});
        if (const json& copy = memberOf(event, "memcpy"); copy.is_object())
            return insert("CUPTI_ACTIVITY_KIND_MEMCPY", event, ofDevice,
                          {{&copy, "copyKind"}, {&copy, "sizebytes"}, {&event, "graphNodeId"}});
        if (const json& fill = memberOf(event, "memset"); fill.is_object())
            return insert("CUPTI_ACTIVITY_KIND_MEMSET", event, ofDevice,
                          {{&fill, "sizebytes"}, {&event, "graphNodeId"}});
        return insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", event, {"startNs"});
    }
    Result<void> takeRange(const json& object, const json& event)
    {
        constexpr std::int64_t mark = 34, range = 59;
        const json& text = memberOf(event, "Text");
        STAGEWRIGHT_TRY(Statement * row, m_database->cached("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)"));
        bind(*row, event, "Timestamp");
        bind(*row, event, "EndTimestamp");
        row->bind(wholeIn(object, "Type") == mark ? mark : range);
        if (text.is_string())
            row->bind(std::string_view(text.get_ref<const std::string&>()));
        else
            row->bindNull();
        bind(*row, event, "TextId");
        bind(*row, event, "GlobalTid");
        return m_database->run(*row);
    }
    static void bind(Statement& row, const json& object, const char* name)
    {
        if (const auto value = wholeIn(object, name))
            row.bind(*value);
        else
            row.bindNull();
    }
    Result<void> insert(const char* table, const json& event, std::initializer_list<const char*> members,
                        std::initializer_list<std::pair<const json*, const char*>> more = {})
    {
        std::string marks = "?";
        for (std::size_t i = 1; i < members.size() + more.size(); ++i) marks += ", ?";
        STAGEWRIGHT_TRY(Statement * row, m_database->cached(fmt::format("INSERT INTO {} VALUES ({})", table, marks)));
        for (const char* name : members) bind(*row, event, name);
        for (const auto& [object, name] : more) bind(*row, *object, name);
        return m_database->run(*row);
    }

    static constexpr std::initializer_list<const char*> ofDevice = {"startNs",  "endNs",         "deviceId",
                                                                    "streamId", "correlationId", "globalPid"};
    ByteSource& m_source;
    const Progress& m_progress;
    std::unique_ptr<Database> m_database;
    std::int64_t m_damaged = 0, m_left = 0, m_texts = 0;
};

Result<ForeignFile> readNsysLines(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    const UnlimitedTemporaryFiles copy; // as large as what is read of the file
    LinesReader lines(*source, progress);
    STAGEWRIGHT_TRY(auto database, lines.read(path));
    const std::int64_t bytes =
        std::max<std::int64_t>(source->size(), database->integer("PRAGMA page_count").value_or(0) * 4096);
    auto file = readNsightTables(std::move(database), path, bytes, options, progress);
    if (!file) {
        if (file.error().code != ErrorCode::Cancelled) file.error().remedy = bringSqlite;
        return file;
    }
    ForeignRank& first = file->ranks.front();
    first.damaged += lines.damaged();
    if (lines.left() > 0) first.leftOut["other events of Nsight Systems"] += lines.left();
    if (!lines.anyText())
        first.notes.push_back(fmt::format("the names of its kernels and calls are unknown, because the file ends "
                                          "before its texts; {}",
                                          bringSqlite));
    if (!source->damage().empty()) first.notes.push_back(source->damage());
    return file;
}

// An event of Nsight Systems is on one of its first lines.
bool looksLikeNsysLines(std::string_view head)
{
    if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
    const std::string_view text = trimmed(head);
    const auto has = [text](std::string_view what) { return text.find(what) != std::string_view::npos; };
    return text.starts_with('{') && !has("\"traceEvents\"") && has("\"Type\"") &&
           (has("\"CudaEvent\"") || has("\"TraceProcessEvent\"") || has("\"NvtxEvent\""));
}

} // namespace

namespace formats {

extern const FormatInfo nsys_lines;
const FormatInfo nsys_lines{
    .name = "nsight-lines",
    .title = "Nsight Systems, JSON lines",
    .reads = "JSON lines of Nsight Systems",
    .suffixes = {".json", ".jsonl", ".json.gz"},
    .recordMemory = "record with --cuda-memory-usage=true, and export the report as SQLite",
    .recordKernels = "trace with nsys profile --trace=cuda,nvtx",
    .hostExports = true,
    .sniff = looksLikeNsysLines,
    .read = readNsysLines,
};

} // namespace formats

} // namespace stagewright
