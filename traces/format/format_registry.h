// Formats that runs are written to for other tools and that their traces are read from: one file each, one line each in
// formats.def. The command line, dialogs and help iterate these descriptors; nothing else knows a format by its name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/foreign/import_options.h"
#include "traces/run/run.h"

namespace stagewright {

struct ForeignFile { // the content of a file
    std::vector<ForeignRank> ranks;
    std::optional<Schedule> schedule; // for a format that contains an order without times; then ranks is empty
};

struct FormatOption {       // of writing
    std::string_view name;  // without dashes: "pytorch"
    std::string_view value; // its argument: "RULE"; empty: a flag
    std::string_view help;
    Result<void> (*check)(const std::string& value) = nullptr; // a Usage error for a value that can't be; null: any
};

struct ExportRequest {
    const Run* run = nullptr;        // never null
    std::string path;                // of the file, or of a folder that is not there yet
    int step = -1;                   // where the format is of one step; −1: the representative one
    const Run* against = nullptr;    // where the format compares: A, the run being B
    const Schedule* order = nullptr; // where the format holds the order: this one instead of the run's; null: the run's
    std::string program;             // "Stagewright 0.1.0"; may be empty
    std::string source;              // where the run is stored: "demo.stagewright, run 3"
    std::string againstSource;
    TextPairs options = {}; // by FormatOption::name; of a flag the value is empty
    Progress progress = {};

    const std::string* option(std::string_view name) const; // nullptr: not given
};

struct WrittenFile {
    std::vector<std::pair<std::string, std::int64_t>> counts; // "spans" 112 …
    // on what was written: "112 spans, 49 bubbles, 80 flows, …"
    std::string sentence;
};

struct FormatInfo {
    std::string_view name;  // "chrome"
    std::string_view title; // "Chrome JSON"
    // what is read, within a sentence: "schedule CSV"; empty: it is not read
    std::string_view reads = {};
    std::string_view writes = {};                // what is written, likewise: "trace events for chrome://tracing"
    std::vector<std::string_view> suffixes = {}; // of its files, the usual one first: ".json"
    std::vector<FormatOption> options = {};
    // how its profiler records memory events, which a trace read may lack: "record with --cuda-memory-usage=true";
    // empty: unknown
    std::string_view recordMemory = {};
    // how its profiler records kernels, which a trace read may lack: "trace with nsys profile --trace=cuda,nvtx";
    // empty: unknown
    std::string_view recordKernels = {};
    bool folder = false;   // written as a folder, which has no suffix
    bool oneStep = false;  // written of one step that can be chosen
    bool compares = false; // may be written of two runs
    bool order = false;    // holds the order alone: ExportRequest::order
    // written by stagewright-ui alone, which takes the options as they are; `write` is null
    bool drawn = false;
    // a file of its suffix is of this format though sniff() does not take it: the reader says what is wrong
    bool bySuffix = false;
    // a file read holds what ran on a host, of any number of jobs (import/export_groups.h)
    bool hostExports = false;
    // To a temporary name, then renamed. Null if it is not written, or drawn.
    Result<WrittenFile> (*write)(const ExportRequest& request) = nullptr;
    // Whether the format can express what is requested; path is not looked at. Null: always.
    Result<void> (*can)(const ExportRequest& request) = nullptr;
    // Whether a file that starts like this (uncompressed) has this format. Null if it is not read.
    bool (*sniff)(std::string_view head) = nullptr;
    // Damage within is counted in the ranks; an Error if nothing can be read.
    Result<ForeignFile> (*read)(const std::string& path, const ImportOptions& options,
                                const Progress& progress) = nullptr;
};

std::span<const FormatInfo* const> allFormats();       // in the order of formats.def
const FormatInfo* findFormat(std::string_view name);   // nullptr: unknown
const FormatInfo* formatOfHead(std::string_view head); // the first that is read and takes it; nullptr: none
// the first that is written to files of that suffix, in whatever case; nullptr: none
const FormatInfo* formatOfSuffix(std::string_view path);
// of a format that is read and holds the order alone, by the suffix in whatever case
bool holdsOrder(std::string_view path);
// of a format that is read and holds more than an order, or packed, likewise
bool holdsTrace(std::string_view path);
// of every file that is read, packed ones last: ".pftrace" …, ".json" …, ".zip"
std::vector<std::string_view> readSuffixes();
bool holdsHostExports(std::string_view format); // FormatInfo::hostExports of the format of that name
std::string readableFormats();                  // "Kineto and Chrome JSON, plain or gzip, … and schedule CSV"

} // namespace stagewright
