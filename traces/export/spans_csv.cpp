// Every span of a run as a table.
#include <fmt/format.h>

#include "schedules/base/csv_line.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"

namespace stagewright::formats {

namespace {

Result<WrittenFile> writeSpans(const ExportRequest& request)
{
    const Timeline& timeline = *request.run->timeline;
    std::string text = csvLine(
        {"step", "rank", "lane", "stage", "kind", "microbatch", "start_ns", "end_ns", "cpu_ns", "name", "step_number"});
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
                const Span& span = timeline.spans()[id];
                const bool foreign = span.label != 0;
                text += csvLine(
                    {span.step == outsideSteps ? std::string() : std::to_string(span.step), std::to_string(track.rank),
                     std::string(toText(track.lane)), foreign ? "" : std::to_string(span.op.stage),
                     foreign ? "" : std::string(ruleOf(span.op.kind).text),
                     foreign || span.op.microbatch < 0 ? "" : std::to_string(span.op.microbatch),
                     std::to_string(span.start), std::to_string(span.end),
                     timeline.hasCpuTime() && timeline.cpuTime(id) >= 0 ? std::to_string(timeline.cpuTime(id)) : "",
                     timeline.nameOf(span),
                     span.step == outsideSteps ? std::string() : std::to_string(stepNumber(span.step))});
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
