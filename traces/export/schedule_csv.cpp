// Schedule CSV as a foreign format: an order without times. Reading and writing are schedules/text/csv.h.
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/text/csv.h"
#include "schedules/text/pytorch.h"
#include "traces/export/requested_order.h"
#include "traces/foreign/byte_source.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"

namespace stagewright {

namespace {

constexpr std::size_t mostBytes = std::size_t{512} << 20;
constexpr std::size_t lineBytes = 65536; // of the first line, for a message

// The first cells are ops, or blank.
bool looksLikeSchedule(std::string_view head)
{
    if (head.find('\0') != std::string_view::npos) return false;
    const std::size_t whole = head.rfind('\n'); // the last line may be cut
    const auto schedule = readScheduleCsv(whole == std::string_view::npos ? head : head.substr(0, whole + 1));
    return schedule && schedule->opCount() > 0;
}

// A table of something else: no cell of the first line starts like an op, with a stage.
bool isForeign(std::string_view text)
{
    std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    while (!line.empty()) {
        const std::size_t cell = line.find_first_not_of(" \t\"");
        if (cell != std::string_view::npos && std::isdigit(static_cast<unsigned char>(line[cell])) != 0) return false;
        const std::size_t comma = line.find(',');
        line = comma == std::string_view::npos ? std::string_view() : line.substr(comma + 1);
    }
    return true;
}

Result<ForeignFile> read(const std::string& path, const ImportOptions&, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    std::size_t bytes = 0;
    std::string start; // of the first line
    const auto part = [&](char* to, std::size_t size) -> std::size_t {
        if (bytes > mostBytes || progress.cancelled()) return 0;
        const std::size_t got = source->read(to, size);
        if (bytes == 0) start.assign(to, std::min(got, lineBytes));
        bytes += got;
        progress.tell("reading the schedule", source->consumed(), source->size());
        return got;
    };
    auto schedule = readScheduleCsv(part, {}, std::filesystem::path(path).stem().string());
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
    if (bytes > mostBytes) return fail(ErrorCode::Unreadable, "the schedule is larger than 512 MiB");
    if (!source->damage().empty()) return fail(ErrorCode::Unreadable, source->damage());
    if (!schedule && isForeign(start))
        return fail(ErrorCode::Unreadable,
                    fmt::format("a CSV, but not a schedule: its first line is \"{}\"",
                                start.substr(0, std::min<std::size_t>(start.find_first_of("\r\n"), 60))),
                    "a schedule has ops such as 0F0 in its cells (docs/orders.md)");
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    STAGEWRIGHT_CHECK(validate(*schedule).toResult());
    if (std::string name = recognise(*schedule); !name.empty()) schedule->name = std::move(name);
    ForeignFile file;
    file.schedule = std::move(*schedule);
    return file;
}

Result<void> checkLowering(const std::string& rule)
{
    const auto parsed = parseLowering(rule);
    return parsed ? Result<void>() : tl::unexpected(parsed.error());
}

struct Text {
    std::string text;
    int ranks = 0;
    std::int64_t ops = 0;
    // that can run it, if it was written for PyTorch; none also with groups of messages, which need its option for them
    std::optional<TorchVersion> torch;
};

Result<Text> textOf(const ExportRequest& request)
{
    auto schedule = requestedOrder(request);
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    CsvOptions csv;
    csv.pytorch = request.option("pytorch") != nullptr;
    if (csv.pytorch) STAGEWRIGHT_CHECK(pytorchForms(*schedule));
    if (const std::string* text = request.option("lower")) {
        STAGEWRIGHT_TRY(const auto rule, parseLowering(*text));
        STAGEWRIGHT_TRY(schedule, lower(*schedule, rule));
    }
    STAGEWRIGHT_TRY(auto text, writeScheduleCsv(*schedule, csv));
    return Text{std::move(text), schedule->ranks, static_cast<std::int64_t>(schedule->opCount()),
                csv.pytorch && text.find("BATCH_P2P") == std::string::npos ? std::optional(torchNeeded(*schedule))
                                                                           : std::nullopt};
}

Result<WrittenFile> writeCsv(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto made, textOf(request));
    STAGEWRIGHT_CHECK(writeFileAtomically(request.path, made.text));
    std::string sentence = std::to_string(made.ranks) + " ranks, " + std::to_string(made.ops) + " ops";
    if (made.torch) sentence += "; for PyTorch " + toText(*made.torch) + " and later";
    return WrittenFile{{{"ranks", made.ranks}, {"ops", made.ops}}, std::move(sentence)};
}

Result<void> can(const ExportRequest& request)
{
    const auto made = textOf(request);
    return made ? Result<void>() : tl::unexpected(made.error());
}

} // namespace

namespace formats {

extern const FormatInfo schedule_csv;
const FormatInfo schedule_csv{
    .name = "csv",
    .title = "Schedule CSV",
    .reads = "schedule CSV",
    .writes = "the schedule",
    .suffixes = {".csv"},
    .options = {{"lower", "RULE",
                 "Insert sends and receives: just-in-time, pytorch[:collectives], eager-post[:N ops ahead], "
                 "rank-parity, grouped, batched",
                 checkLowering},
                {"pytorch", "",
                 "refuse what PyTorch's pipelining can't run, and name the nearest schedule that it can; say which "
                 "PyTorch runs it (2.6 and later; 2.9 with overlapped pairs, 2.10 with REDUCE_GRAD)"}},
    .order = true,
    .bySuffix = true,
    .write = writeCsv,
    .can = can,
    .sniff = looksLikeSchedule,
    .read = read,
};

} // namespace formats

} // namespace stagewright
