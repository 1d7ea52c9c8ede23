// The CSV reader on any bytes: it may refuse, never crash; what it accepts must come back from its own writing, and
// validation, simulation and drawing must answer for it too.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedules/csv.h"
#include "schedules/draw_text.h"
#include "schedules/op.h"
#include "schedules/timeline/timeline_of.h"
#include "schedules/validate.h"

using namespace stagewright;

namespace {

void require(bool condition)
{
    if (!condition) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto op = parseOp(text)) require(*parseOp(toText(*op)) == *op);
    for (CsvDialect dialect : {CsvDialect::Auto, CsvDialect::New, CsvDialect::Old}) {
        CsvOptions options;
        options.dialect = dialect;
        const auto schedule = readScheduleCsv(text, options);
        if (!schedule) {
            require(!schedule.error().message.empty());
            continue;
        }
        CsvOptions writing;
        writing.dialect = dialect == CsvDialect::Old ? CsvDialect::Old : CsvDialect::New;
        const auto written = writeScheduleCsv(*schedule, writing);
        require(written.has_value());
        const auto back = readScheduleCsv(*written, writing);
        require(back.has_value() && *back == *schedule);

        const Validation validation = validate(*schedule);
        if (schedule->stages > 4096 || schedule->microbatches > 4096) continue; // large tables are slow, not wrong
        const auto timeline = simulatedTimeline(*schedule, CostModel::uniform(*schedule));
        if (validation.valid()) require(timeline.has_value());
        if (!timeline) continue;
        require(!drawTimeline(**timeline, 0, 80, false).empty());
    }
    return 0;
}
