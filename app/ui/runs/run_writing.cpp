#include "app/ui/runs/run_writing.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "traces/format/atomic_file.h"
#include "traces/store/run_file.h"
#include "traces/store/run_names.h"

namespace stagewright {
namespace {

template <typename Fill>
Result<void> fillPart(const std::string& part, Fill fill)
{
    auto file = RunFile::open(part, OpenMode::Create);
    return file ? fill(**file) : tl::unexpected(std::move(file.error()));
}

template <typename Fill>
Result<void> writeFile(const QString& target, Fill fill)
{
    const std::string path = target.toStdString();
    const PartFolder beside(path);
    if (beside.problem() != 0)
        return fail(ErrorCode::Unreadable,
                    "file " + path + ": can't be created (" + std::strerror(beside.problem()) + ")",
                    "check that its folder exists and is writable");
    const std::string part = beside.path() + "/runs.stagewright";
    if (auto done = fillPart(part, fill); !done) return tl::unexpected(renamed(std::move(done.error()), part, path));
    std::error_code failed;
    std::filesystem::rename(part, path, failed); // an old file is there until the new one is
    if (failed)
        return fail(ErrorCode::Failed, "file " + path + ": can't be written (" + failed.message() + ")",
                    "check that its folder is writable");
    return {};
}

} // namespace

Result<void> writeRuns(const QString& target, const std::vector<std::shared_ptr<const Run>>& runs,
                       const std::vector<std::vector<Note>>& notes)
{
    return writeFile(target, [&](RunFile& file) -> Result<void> {
        for (std::size_t i = 0; i < runs.size(); ++i) {
            STAGEWRIGHT_TRY(auto added, file.add(*runs[i]));
            if (auto noted = file.setNotes(added, notes[i]); !noted) return noted;
        }
        return {};
    });
}

Result<void> copyRuns(const QString& path, const QString& target)
{
    return writeFile(target, [&path](RunFile& file) { return file.merge(path.toStdString()); });
}

Result<std::vector<qint64>> adoptRuns(const QString& path, const QString& other)
{
    STAGEWRIGHT_TRY(auto file, RunFile::open(path.toStdString(), OpenMode::Create));
    STAGEWRIGHT_TRY(auto before, file->runs());
    STAGEWRIGHT_CHECK(file->merge(other.toStdString()));
    STAGEWRIGHT_TRY(auto after, file->runs());
    std::vector<qint64> ids;
    std::vector<RunInfo> there = before;
    for (const RunInfo& info : after) {
        if (std::any_of(before.begin(), before.end(), [&](const RunInfo& old) { return old.id == info.id; })) continue;
        ids.push_back(info.id);
        there.push_back(info);
        there.back().name.clear(); // itself is not in its way
        const std::string name = freeRunName(there, info.name);
        if (name != info.name) STAGEWRIGHT_CHECK(file->rename(info.id, name));
        there.back().name = name;
    }
    return ids;
}

} // namespace stagewright
