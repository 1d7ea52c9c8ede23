#include "app/cli/text/schedule_pages.h"

#include <fmt/core.h>

#include "app/cli/text/figures.h"
#include "schedules/base/quantity.h"
#include "schedules/execute/buffering.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/variants.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

namespace {

constexpr int ranks = 4;
constexpr int microbatches = 8;

// What may be in a cell of a table.
std::string cell(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        if (c == '|') result += '\\';
        result += c;
    }
    return result;
}

struct Row {
    std::string name;
    Schedule schedule;
    std::string figures; // "| shape | time | bubble | peak |"
};

Result<Row> rowOf(const std::string& name)
{
    auto schedule = makeOnNearShape(name, Shape(ranks, microbatches));
    if (!schedule) return tl::unexpected(std::move(schedule.error()).with(name));
    const CostModel costs = CostModel::uniform(*schedule);
    auto result = simulate(*schedule, costs);
    if (!result) return tl::unexpected(std::move(result.error()).with(name));
    const Units units{costs.timeUnit, costs.memoryUnit};
    std::string peaks;
    for (const Bytes peak : result->peakActivation) peaks += (peaks.empty() ? "" : " ") + units.memoryText(peak);
    const SimFigures figures = figuresOf(*schedule, *result);
    std::string text =
        fmt::format("| {} × {} × {} | {} | {} | {} |", schedule->ranks, schedule->microbatches, schedule->stages,
                    units.timeText(result->makespan), formatPercent(figures.bubbleFraction), peaks);
    return Row{name, std::move(*schedule), std::move(text)};
}

std::string page(const ScheduleInfo& info, const std::vector<Row>& variants)
{
    const Schedule& drawn = variants.front().schedule;
    std::string text = fmt::format("\n## {}\n\n`{}`: {}.\n\n", info.title, info.name, info.summary);
    text += fmt::format("![{} on {} ranks with {} microbatches, order {:016x}](schedules/{}.svg)\n\n", info.title,
                        drawn.ranks, drawn.microbatches, hashOf(drawn), info.name);
    text += fmt::format("- Paper: {}\n- Needs: {}\n", info.paper, info.constraints);
    if (!info.aliases.empty()) text += fmt::format("- Also called: {}\n", info.aliases);
    if (const auto outcomes = outcomesWithoutBuffers(drawn))
        if (const std::string said = describeOutcomes(*outcomes); !said.empty())
            text += fmt::format("- Messages: {}\n", said);
    text += fmt::format("\n```\n{}\n```\n", info.formulas);
    if (!info.parameters.empty()) {
        text += "\n| parameter | default | values | meaning |\n|---|---|---|---|\n";
        for (const ScheduleParameter& parameter : info.parameters)
            text += fmt::format("| `{}` | `{}` | {} | {} |\n", parameter.name, parameter.fallback,
                                cell(parameter.values), cell(parameter.meaning));
    }
    if (variants.size() > 1) {
        text += "\n| variant | ranks × microbatches × stages | time | bubble | peak activation by rank "
                "|\n|---|---|---|---|---|\n";
        for (const Row& row : variants) text += fmt::format("| `{}` {}\n", row.name, row.figures);
    }
    return text;
}

} // namespace

Result<std::string> schedulePages()
{
    std::string table, pages;
    for (const ScheduleInfo& info : allSchedules()) {
        std::vector<Row> variants;
        for (const std::string& name : variantsOf(info)) {
            STAGEWRIGHT_TRY(auto row, rowOf(name));
            variants.push_back(std::move(row));
        }
        table += fmt::format("| [{}](schedules/{}.svg) {}\n", info.name, info.name, variants.front().figures);
        pages += page(info, variants);
    }
    return fmt::format("# Schedules\n\n"
                       "Written by `docs/make_schedule_pages.sh` from `schedules/library`, one file per schedule. What "
                       "an order is, and how to add\n"
                       "one: [Orders](orders.md); what the figures mean: [Numbers](numbers.md). `stagewright schedules "
                       "NAME` shows the same page for any\n"
                       "shape, `stagewright plan` searches for the best order for given costs and memory.\n\n"
                       "At unit costs (F = I = W = 1, B = 2 for a rank's whole share of the model) and without "
                       "latency, on {} ranks with {} microbatches\n"
                       "or the nearest shape that a schedule takes; peaks in microbatches of a rank's share:\n\n"
                       "| schedule | ranks × microbatches × stages | time | bubble | peak activation by rank "
                       "|\n|---|---|---|---|---|\n{}{}",
                       ranks, microbatches, table, pages);
}

} // namespace stagewright
