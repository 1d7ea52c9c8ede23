// The CSV reader on any bytes: it may refuse, never crash; what it accepts must come back from its own writing, and
// validation, simulation, drawing, lowering and the explanation of deadlocks must answer for it too, under some
// semantics of messages that the bytes choose.
#include <cstdint>
#include <string_view>

#include "require.h"
#include "schedules/check/validate.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/messages/lower.h"
#include "schedules/model/op.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

void explain(const Schedule& schedule, unsigned choice)
{
    Channels channels;
    channels.sends = choice % 2 == 0 ? SendMode::Rendezvous : SendMode::Buffered;
    channels.perDirection = static_cast<int>(choice / 2 % 3);
    channels.receives = choice / 6 % 2 == 0 ? ReceiveMode::Blocking : ReceiveMode::Posted;
    const Validation validation = validate(schedule, channels);
    for (const Fault& fault : validation.faults) require(!fault.message.empty() && !fault.remedy.empty());
    const auto result = simulate(schedule, CostModel::uniform(schedule), channels);
    if (validation.valid()) require(result.has_value());
    const auto deadlock = explainDeadlock(schedule, channels);
    require(deadlock.has_value() || !validation.valid());
    if (deadlock && deadlock->hung()) {
        require(!validation.valid());
        require(!describeDeadlock(*deadlock).empty() && !drawDeadlock(schedule, *deadlock, 80).empty());
        if (deadlock->fixed) require(validate(*deadlock->fixed, channels).valid());
    }
    require(diffSchedules(schedule, schedule).same());
    Lowering lowering;
    lowering.rule = static_cast<LoweringRule>(choice / 12 % 5);
    lowering.collectives = lowering.rule == LoweringRule::PyTorch && choice / 60 % 2 == 1;
    const auto lowered = lower(schedule, lowering);
    if (!lowered) {
        require(!validation.valid() && !lowered.error().message.empty());
        return;
    }
    if (!validation.valid()) return;
    require(lowering.collectives || withoutCommunication(*lowered) == withoutCommunication(schedule));
    require(validate(*lowered).valid());
    const auto text = writeScheduleCsv(*lowered);
    require(text && *readScheduleCsv(*text) == *lowered);
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
        if (dialect == CsvDialect::Auto && schedule->opCount() < 4096) {
            unsigned choice = static_cast<unsigned>(size);
            for (const char letter : text) choice = choice * 31 + static_cast<unsigned char>(letter);
            explain(*schedule, choice >> 8);
        }
        const auto timeline = simulatedTimeline(*schedule, CostModel::uniform(*schedule));
        if (validation.valid()) require(timeline.has_value());
        if (!timeline) continue;
        require(!drawTimeline(**timeline, 0, 80, false).empty());
    }
    return 0;
}
