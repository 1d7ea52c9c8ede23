#include "traces/import/other_files.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <system_error>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/format/format_registry.h"

namespace stagewright {

namespace {

constexpr const char* bringTrace = "bring the job's trace: torch.profiler's export_chrome_trace writes it";

bool hasSuffix(const std::string& path, std::initializer_list<std::string_view> suffixes)
{
    return std::any_of(suffixes.begin(), suffixes.end(),
                       [&path](std::string_view suffix) { return path.ends_with(suffix); });
}

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

// Whether every bracket outside texts is closed: '{"traceEvents":[{"ph":"X"}' is not.
bool isWhole(std::string_view json)
{
    int open = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (c == '\\' && quoted)
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            open += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    }
    return open == 0 && !quoted;
}

// An object a line, from the first: the first is whole and another follows.
std::string_view firstOfLines(std::string_view text)
{
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    std::string_view first = trimmed(text.substr(0, end));
    if (first.ends_with(',')) first = trimmed(first.substr(0, first.size() - 1));
    return first.starts_with('{') && first.ends_with('}') && isWhole(first) &&
                   trimmed(text.substr(end)).starts_with('{')
               ? first
               : std::string_view();
}

} // namespace

std::optional<Error> otherJsonOf(std::string_view head)
{
    if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
    const std::string_view text = trimmed(head);
    if (!text.starts_with('{') || has(head, "\"resourceSpans\"")) return std::nullopt;
    if (has(head, "\"rocprofiler-sdk-tool\""))
        return Error{ErrorCode::Unreadable, "JSON of rocprofv3, which is not read",
                     "record the job with PyTorch's profiler: its traces hold AMD GPUs' kernels, too"};
    if (const std::string_view line = firstOfLines(text); !line.empty()) {
        if (has(line, "\"traceEvents\""))
            return Error{ErrorCode::Unreadable, "several traces one after the other in one file",
                         "write each into a file of its own"};
        if (has(line, "\"ph\""))
            return Error{ErrorCode::Unreadable, "event lines: trace events one a line, not in one JSON array",
                         "put them into an array: jq -s . FILE > trace.json"};
        if (has(line, "\"log_type_name\"") && has(line, "\"event_name\""))
            return Error{ErrorCode::Unreadable,
                         "TorchTitan's structured log: it has times of steps, but none of a stage, a microbatch or a "
                         "kernel",
                         "bring the traces of the same job, profiling/traces/iteration_N/rankR_trace.json.gz in its "
                         "dump folder: set profiler.enable_profiling"};
        if (has(line, "\"Type\"") || has(line, "\"globalTid\""))
            return Error{
                ErrorCode::Unreadable,
                "JSON lines of Nsight Systems in a form that is not read, without CudaEvent, TraceProcessEvent "
                "or NvtxEvent at the start",
                "export the report as SQLite: nsys export --type sqlite"};
        return Error{ErrorCode::Unreadable, "JSON lines (an object a line), not a trace", bringTrace};
    }
    if (has(head, "\"traceEvents\"")) return std::nullopt;
    if (has(head, "\"workload_graph\"") || (has(head, "\"schema\"") && (has(head, "chakra") || has(head, "\"nodes\""))))
        return Error{ErrorCode::Unreadable,
                     "a Chakra execution trace: it holds operators and what they depend on, not when their kernels ran",
                     bringTrace};
    if (has(head, "speedscope.app/file-format-schema"))
        return Error{ErrorCode::Unreadable, "a profile in the form of speedscope: samples of stacks, not a trace",
                     bringTrace};
    return std::nullopt;
}

// Files that users may try to import but that are not supported, with the alternative.
Error unknownFile(const std::string& path, std::string_view head)
{
    const bool empty = head.empty();
    // Protocols 2 to 5, as torch.cuda.memory._dump_snapshot writes them; 0 and 1 by their suffix.
    if ((head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) ||
        (!empty && hasSuffix(path, {".pickle", ".pkl"})))
        return {
            ErrorCode::Unreadable,
            fmt::format("file {}: a Python pickle, which is not loaded because that runs what is in it", path),
            fmt::format(
                "if you trust it, convert it: python3 -c \"import json,pickle,sys; "
                "json.dump(pickle.load(open(sys.argv[1],'rb')), open(sys.argv[2],'w'), default=str)\" {} snapshot.json",
                path)};
    if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
        return {ErrorCode::Unreadable, fmt::format("file {}: text in UTF-16, which is not read", path),
                fmt::format("convert it: iconv -f UTF-16 -t UTF-8 {} > utf8.json", path)};
    if (hasSuffix(path, {".nsys-rep", ".qdrep"}))
        return {ErrorCode::Unreadable, fmt::format("file {}: an Nsight Systems report, not its export", path),
                fmt::format("export it: nsys export --type sqlite {}", path)};
    if (hasSuffix(path, {".pftrace", ".perfetto-trace"}))
        return {ErrorCode::Unreadable, fmt::format("file {}: not a Perfetto trace, although it is named as one", path),
                "bring it as it was written; a trace in Perfetto's JSON form is named .json"};
    if (!empty && hasSuffix(path, {".et"}))
        return {ErrorCode::Unreadable,
                fmt::format("file {}: a Chakra execution trace: it holds operators and what they depend on, not when "
                            "their kernels ran",
                            path),
                bringTrace};
    std::error_code failed;
    if (empty && std::filesystem::file_size(path, failed) > 0 && !failed)
        return {ErrorCode::Unreadable, fmt::format("file {}: the compressed data is damaged from the start", path),
                "copy it again from its source"};
    return {ErrorCode::Unreadable, fmt::format("file {}: {}", path, empty ? "it is empty" : "unknown trace format"),
            "supported are " + readableFormats()};
}

} // namespace stagewright
