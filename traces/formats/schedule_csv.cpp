// Schedule CSV as a foreign format: an order without times. Reading and writing are schedules/csv.h.
#include <filesystem>

#include "schedules/csv.h"
#include "schedules/lower.h"
#include "schedules/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "schedules/validate.h"
#include "traces/formats/atomic_file.h"
#include "traces/formats/format_registry.h"
#include "traces/import/byte_source.h"

namespace stagewright {

namespace {

constexpr std::size_t mostBytes = std::size_t{512} << 20;

// The first cells are ops, or blank.
bool looksLikeSchedule(std::string_view head)
{
    if (head.find('\0') != std::string_view::npos) return false;
    const std::size_t whole = head.rfind('\n'); // the last line may be cut
    const auto schedule = readScheduleCsv(whole == std::string_view::npos ? head : head.substr(0, whole + 1));
    return schedule && schedule->opCount() > 0;
}

Result<ForeignFile> read(const std::string& path, const ImportOptions&, const Progress&)
{
    auto source = ByteSource::open(path);
    if (!source) return tl::unexpected(std::move(source.error()));
    std::string text;
    while (true) {
        const std::size_t before = text.size();
        if (before > mostBytes) return fail(ErrorCode::Unreadable, "the schedule is larger than 512 MiB");
        text.resize(before + (std::size_t{1} << 20));
        const std::size_t got = (*source)->read(text.data() + before, text.size() - before);
        text.resize(before + got);
        if (got == 0) break;
    }
    if (!(*source)->damage().empty()) return fail(ErrorCode::Unreadable, (*source)->damage());
    auto schedule = readScheduleCsv(text, {}, std::filesystem::path(path).stem().string());
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    if (auto valid = validate(*schedule).toResult(); !valid) return tl::unexpected(std::move(valid.error()));
    if (std::string name = recognise(withoutCommunication(*schedule)); !name.empty()) schedule->name = std::move(name);
    ForeignFile file;
    file.schedule = std::move(*schedule);
    return file;
}

Result<std::string> write(const Run& run, const std::string& path, const Progress&)
{
    Schedule schedule;
    if (run.schedule) {
        schedule = *run.schedule;
    } else {
        auto realised = scheduleOf(*run.timeline, run.representativeStep());
        if (!realised) return tl::unexpected(std::move(realised.error()));
        schedule = std::move(*realised);
    }
    auto text = writeScheduleCsv(schedule);
    if (!text) return tl::unexpected(std::move(text.error()));
    if (auto done = writeFileAtomically(path, *text); !done) return tl::unexpected(std::move(done.error()));
    return std::to_string(schedule.ranks) + " ranks, " + std::to_string(schedule.opCount()) + " ops";
}

} // namespace

namespace formats {

extern const FormatInfo schedule_csv;
const FormatInfo schedule_csv{
    .name = "csv",
    .title = "Schedule CSV (PyTorch pipelining)",
    .suffix = ".csv",
    .write = write,
    .sniff = looksLikeSchedule,
    .read = read,
};

} // namespace formats

} // namespace stagewright
