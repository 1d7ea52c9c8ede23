#include "app/cli/options/run_access.h"

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "app/cli/session_of_call.h"
#include "app/cli/text/figures.h"

namespace stagewright {

namespace {

class OpenedFiles {
public:
    void tell(const RunFile& file)
    {
        if (file.missing().empty() && file.ignored().empty()) return;
        const std::lock_guard lock(m_mutex);
        if (sessionOfCall == nullptr || !m_told.insert(file.path()).second) return;
        if (!file.missing().empty()) sessionOfCall->warn(fmt::format("{}: {}", file.path(), file.missing()));
        if (!file.ignored().empty())
            sessionOfCall->note(fmt::format("{}: tables and indexes that stagewright did not make are not read: {}",
                                            file.path(), file.ignored()));
    }

private:
    std::mutex m_mutex;
    std::set<std::string> m_told;
};

OpenedFiles& openedFiles()
{
    static OpenedFiles files;
    return files;
}

} // namespace

Result<std::unique_ptr<RunFile>> openRunFile(const std::string& path, OpenMode mode, std::stop_token stop)
{
    if (isFolder(path))
        return fail(ErrorCode::Unreadable, fmt::format("{} is a folder, not a run file", path), "name a file in it");
    auto file = RunFile::open(path, mode, std::move(stop));
    if (file) openedFiles().tell(**file);
    return file;
}

Result<StoredRun> readRun(const RunReference& reference, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto file, openRunFile(reference.file));
    return readRun(*file, reference.run, progress);
}

namespace {

constexpr std::int64_t readWhole = 250'000; // spans: about 70 MB

// wanted: the step of a report, if only that is needed.
Result<StoredRun> readStored(const RunFile& file, const std::string& idOrName, std::optional<int> wanted,
                             const Progress& progress)
{
    std::int64_t id = 0;
    if (idOrName.empty()) {
        STAGEWRIGHT_TRY(auto runs, file.runs());
        if (runs.empty())
            return fail(ErrorCode::Usage, fmt::format("{} holds no run", file.path()),
                        fmt::format("record one: stagewright record -o {}", file.path()));
        id = runs.back().id;
    } else {
        STAGEWRIGHT_TRY(id, file.find(idOrName));
    }
    bool large = false;
    if (wanted) {
        const auto header = file.readHeader(id);
        large = header && header->info.spanCount > readWhole;
    }
    STAGEWRIGHT_TRY(auto run, large ? file.readForReport(id, *wanted, progress) : file.read(id, progress));
    if (!run.timeline)
        return fail(ErrorCode::Unreadable, fmt::format("{}#{} has no timeline", file.path(), id),
                    "record the run again");
    if (run.info.damagedBlocks > 0 && run.timeline->empty())
        return fail(ErrorCode::Unreadable,
                    fmt::format("{}#{} {}: damaged: none of its spans can be read", file.path(), id, run.info.name),
                    "restore the file from a copy, or record the run again");
    STAGEWRIGHT_TRY(auto notes, file.notes(id, true));
    return StoredRun{file.path(), std::move(run), std::move(notes)};
}

} // namespace

Result<StoredRun> readRun(const RunFile& file, const std::string& idOrName, const Progress& progress)
{
    return readStored(file, idOrName, std::nullopt, progress);
}

Result<StoredRun> readRunForReport(const RunFile& file, const std::string& idOrName, int step, const Progress& progress)
{
    return readStored(file, idOrName, step, progress);
}

Result<StoredRun> readRunForReport(const RunReference& reference, int step, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto file, openRunFile(reference.file));
    return readStored(*file, reference.run, step, progress);
}

void warnOfDamage(const StoredRun& stored, Session& session)
{
    if (stored.run.info.damagedBlocks == 0) return;
    session.warn(fmt::format(
        "{}: {} could not be read and {} left out, so figures may be wrong; restore the file from a copy, or record "
        "the run again",
        describe(stored), plural(stored.run.info.damagedBlocks, "damaged block"),
        stored.run.info.damagedBlocks == 1 ? "is" : "are"));
}

std::string describe(const StoredRun& stored)
{
    return fmt::format("{}#{} {}", stored.file, stored.run.info.id, stored.run.info.name);
}

RunReference parseRunReference(const std::string& text)
{
    const auto hash = text.rfind('#');
    if (hash == std::string::npos || hash == 0 || fileExists(text)) return {text, {}};
    return {text.substr(0, hash), text.substr(hash + 1)};
}

} // namespace stagewright
