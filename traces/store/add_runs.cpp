#include "traces/store/add_runs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "schedules/base/open_files.h"
#include "traces/format/atomic_file.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> noPlace(const fs::path& folder, const char* why)
{
    return fail(ErrorCode::Unreadable, "folder " + folder.string() + ": can't be written to (" + why + ")",
                "choose another location");
}

fs::path folderOf(const std::string& path)
{
    const fs::path folder = fs::path(path).parent_path();
    return folder.empty() ? fs::path(".") : folder;
}

bool isThere(const std::string& path)
{
    std::error_code problem;
    return fs::exists(path, problem);
}

// Without replacing a file created meanwhile, if the file system supports this.
Result<void> putInPlace(const std::string& part, const std::string& path)
{
    if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno == EINVAL && !isThere(path) && std::rename(part.c_str(), path.c_str()) == 0) return {};
    return fail(ErrorCode::Failed, "file " + path + ": can't be created (" + std::strerror(errno) + ")",
                "choose another name");
}

Result<std::vector<std::int64_t>> idsIn(const RunFile& file)
{
    STAGEWRIGHT_TRY(const auto infos, file.runs());
    std::vector<std::int64_t> ids;
    for (const RunInfo& info : infos) ids.push_back(info.id);
    return ids;
}

// What was written is read again before it counts as stored.
Result<void> readBack(const std::string& part, std::span<const Run* const> runs, const std::vector<std::int64_t>& ids,
                      const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto file, RunFile::open(part, OpenMode::Read, progress.stop));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        Progress one;
        one.stop = progress.stop;
        one.report = [&](std::string_view, std::int64_t done, std::int64_t total) {
            progress.tell("checking", done, total);
        };
        STAGEWRIGHT_TRY(const auto found, file->damage(ids[i], one));
        const auto spans = static_cast<std::int64_t>(runs[i]->timeline ? runs[i]->timeline->spans().size() : 0);
        if (found.blocks > 0 || found.spans != spans)
            return fail(ErrorCode::Failed,
                        "file " + part + ": what was written of run " + runs[i]->info.name + " can't be read back (" +
                            std::to_string(found.spans) + " of " + std::to_string(spans) +
                            " spans), so nothing is stored",
                        "check the disk, and try again");
    }
    return {};
}

// Into the file `part`, which becomes `path` or is merged into it.
Result<std::vector<std::int64_t>> addThrough(const std::string& part, const std::string& path,
                                             std::span<const Run* const> runs, const Progress& progress)
{
    std::vector<std::int64_t> ids;
    {
        STAGEWRIGHT_TRY(auto file, RunFile::open(part, OpenMode::Create));
        std::int64_t before = 0;
        std::int64_t total = 0;
        for (const Run* run : runs)
            total += run->timeline ? static_cast<std::int64_t>(run->timeline->spans().size()) : 0;
        for (const Run* run : runs) {
            Progress one;
            one.stop = progress.stop;
            one.report = [&](std::string_view what, std::int64_t done, std::int64_t) {
                progress.tell(what, before + done, total);
            };
            STAGEWRIGHT_TRY(auto id, file->add(*run, one));
            ids.push_back(id);
            before += run->timeline ? static_cast<std::int64_t>(run->timeline->spans().size()) : 0;
        }
    }
    if (progress.cancelled()) return storingCancelled();
    STAGEWRIGHT_CHECK(readBack(part, runs, ids, progress));
    if (!isThere(path)) {
        STAGEWRIGHT_CHECK(putInPlace(part, path));
        return ids;
    }
    STAGEWRIGHT_TRY(auto file, RunFile::open(path, OpenMode::Create, progress.stop));
    auto old = idsIn(*file);
    if (!old) return old;
    STAGEWRIGHT_CHECK(file->merge(part, progress));
    auto all = idsIn(*file);
    if (all)
        std::erase_if(*all, [&](std::int64_t id) { return std::find(old->begin(), old->end(), id) != old->end(); });
    return all;
}

} // namespace

Result<void> mayAddRuns(const std::string& path)
{
    std::error_code problem;
    if (fs::is_directory(path, problem))
        return fail(ErrorCode::Unreadable, path + " is a folder, not a run file", "name a file in it");
    if (isThere(path)) {
        if (fs::file_size(path, problem) == 0 && !problem) return {}; // created but not used yet: it becomes a run file
        const auto file = RunFile::open(path, OpenMode::Write);
        return file ? Result<void>() : tl::unexpected(file.error());
    }
    const fs::path folder = folderOf(path);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) return noPlace(folder, std::strerror(errno));
    return {};
}

Result<std::vector<std::int64_t>> addRuns(const std::string& path, std::span<const Run* const> runs,
                                          const Progress& progress)
{
    STAGEWRIGHT_CHECK(mayAddRuns(path));
    const PartFolder beside(path);
    if (beside.problem() != 0) {
        if (auto full = tooManyOpenFiles(beside.problem(), "file " + path)) return tl::unexpected(std::move(*full));
        return noPlace(folderOf(path), std::strerror(beside.problem()));
    }
    const std::string part = beside.path() + "/runs.stagewright";
    auto ids = addThrough(part, path, runs, progress);
    if (!ids) return tl::unexpected(renamed(std::move(ids.error()), part, path));
    return ids;
}

} // namespace stagewright
