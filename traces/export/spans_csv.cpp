// Every span of a run as a table.
#include <fmt/format.h>

#include "schedules/base/csv_line.h"
#include "traces/export/span_row.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"

namespace stagewright::formats {

namespace {

template <typename Number>
std::string csvCell(const std::optional<Number>& number)
{
    return number ? std::to_string(*number) : std::string();
}

Result<WrittenFile> writeSpans(const ExportRequest& request)
{
    const Timeline& timeline = *request.run->timeline;
    std::string text = csvLine({std::begin(spanColumns), std::end(spanColumns)});
    std::int64_t count = 0;
    STAGEWRIGHT_CHECK(writeFileAtomically(request.path, [&](const Sink& out) -> Result<void> {
        constexpr std::size_t block = 1 << 20;
        const auto flush = [&] {
            const bool good = out(text);
            text.clear();
            return good;
        };
        for (const Track& track : timeline.tracks()) {
            for (SpanId id = track.begin; id < track.end; ++id, ++count) {
                const SpanRow row = spanRow(timeline, track, id);
                text += csvLine({csvCell(row.step), std::to_string(row.rank), std::string(toText(row.lane)),
                                 csvCell(row.stage), row.kind ? std::string(ruleOf(*row.kind).text) : std::string(),
                                 csvCell(row.microbatch), std::to_string(row.start), std::to_string(row.end),
                                 csvCell(row.cpu), row.name, csvCell(row.stepNumber), csvCell(row.graph.graph),
                                 csvCell(row.graph.node)});
                if (text.size() < block) continue;
                request.progress.tell("writing spans", count, static_cast<std::int64_t>(timeline.spans().size()));
                if (request.progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
                if (!flush()) return {}; // the file says why
            }
        }
        (void)flush();
        return {};
    }));
    return WrittenFile{{{"spans", count}}, fmt::format("{} spans", count)};
}

} // namespace

extern const FormatInfo spans_csv;
const FormatInfo spans_csv{.name = "spans",
                           .title = "Table of spans",
                           .writes = "a table of every span",
                           .suffixes = {".csv"},
                           .write = writeSpans};

} // namespace stagewright::formats
