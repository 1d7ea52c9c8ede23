// Importing other tools' traces: files, folders and globs in, runs out. Used by both the command line and the window.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/import/assemble.h"

namespace stagewright {

struct RefusedFile {
    std::string path;
    Error error;
};

struct ImportResult {
    std::vector<ImportedRun> runs; // in order of their files' names
    std::vector<RefusedFile> refused;
};

// The files that `words` mean: a folder's files (not those of subfolders, unless it has none itself), what a glob with
// * and ? finds, each once, sorted. Usage error where a word names nothing.
Result<std::vector<std::string>> filesOf(const std::vector<std::string>& words);

// Files of one job by their names without the rank (and without times and processes); single files that name
// different ranks of a job of the same size are one job too. A repeated rank starts another run.
std::vector<std::vector<std::size_t>> groupsOf(const std::vector<std::string>& files, const std::vector<int>& ranks,
                                               const std::vector<int>& worldSizes);

// Reads files in parallel and builds runs. Exports of Nsight Systems are joined by groupsOfExports() (export_groups.h).
// Unreadable files are refused with the reason, and the others are imported; an Error if no run is left, and Cancelled.
Result<ImportResult> importTraces(const std::vector<std::string>& words, const ImportOptions& options,
                                  const Progress& progress = {});

// Runs of one import with the same name: by the folders of their files where these differ ("first/job"), else counted
// in order of time ("job 1 of 2").
void tellApart(std::vector<ImportedRun>& runs);

} // namespace stagewright
