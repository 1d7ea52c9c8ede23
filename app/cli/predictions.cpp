#include "app/cli/predictions.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/table.h"
#include "schedules/base/step_number.h"
#include "schedules/kinds.h"
#include "traces/analysis/slack.h"

namespace stagewright {

namespace {

using Align = Table::Align;

std::string signedTime(Nanos nanos, const Units& units)
{
    return (nanos > 0 ? "+" : "") + units.timeText(nanos);
}

Bytes largest(const std::vector<Bytes>& peaks)
{
    return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

} // namespace

std::string residualsText(const Run& run, const Residuals& residuals, const Units& units, bool colour)
{
    const Timeline& timeline = *run.timeline;
    Table table({{"op"}, {"stage", Align::Right}, {"rank", Align::Right}, {"count", Align::Right}, {"predicted", Align::Right},
                 {"median", Align::Right}, {"95 % within", Align::Right}, {"worst", Align::Right}, {""}});
    for (const OpResiduals& of : residuals.ops) {
        const Span* worst = of.worst == noSpan ? nullptr : &timeline.spans()[of.worst];
        table.add({std::string(ruleOf(of.kind).text), std::to_string(of.stage), std::to_string(of.rank), std::to_string(of.count),
                   units.timeText(of.predicted), units.timeText(of.measured), "±" + units.timeText(of.percentile95),
                   signedTime(of.worstResidual, units), worst ? fmt::format("{} of step {}", timeline.nameOf(*worst), stepNumber(worst->step)) : ""});
    }
    return table.text(colour) + fmt::format("the step: predicted {}, measured {} (median of {}), {}\n", units.timeText(residuals.predictedStep),
                                            units.timeText(residuals.measuredStep), plural(residuals.steps, "step"),
                                            signedPercentText(residuals.error));
}

Json residualsJson(const Run& run, const Residuals& residuals)
{
    const Timeline& timeline = *run.timeline;
    Json ops = Json::array();
    for (const OpResiduals& of : residuals.ops) {
        const Span* worst = of.worst == noSpan ? nullptr : &timeline.spans()[of.worst];
        ops.push_back({{"kind", std::string(ruleOf(of.kind).text)},
                       {"stage", of.stage},
                       {"rank", of.rank},
                       {"count", of.count},
                       {"predicted_ns", of.predicted},
                       {"measured_ns", of.measured},
                       {"residual_ns", of.residual},
                       {"residual_p95_ns", of.percentile95},
                       {"worst_op", worst ? Json(timeline.nameOf(*worst)) : Json(nullptr)},
                       {"worst_step", worst ? Json(worst->step) : Json(nullptr)},
                       {"worst_residual_ns", of.worstResidual}});
    }
    return {{"ops", std::move(ops)},
            {"predicted_step_ns", residuals.predictedStep},
            {"measured_step_ns", residuals.measuredStep},
            {"steps", residuals.steps},
            {"step_error", residuals.error}};
}

std::string slackText(const Run& run, const RunFigures& figures, bool colour)
{
    struct Of {
        std::size_t ops = 0;
        std::size_t critical = 0;
        Nanos least = 0;
        Nanos most = 0;
        SpanId loosest = noSpan;
    };
    const Timeline& timeline = *run.timeline;
    std::map<std::pair<int, OpKind>, Of> groups;
    for (const OpSlack& op : slackOf(timeline, figures.step)) {
        Of& of = groups[{timeline.trackOf(op.span).rank, timeline.spans()[op.span].op.kind}];
        of.least = of.ops == 0 ? op.slack : std::min(of.least, op.slack);
        if (of.ops == 0 || op.slack > of.most) {
            of.most = op.slack;
            of.loosest = op.span;
        }
        ++of.ops;
        of.critical += op.slack == 0;
    }
    Table table({{"rank", Align::Right}, {"op"}, {"ops", Align::Right}, {"without slack", Align::Right}, {"least", Align::Right},
                 {"most", Align::Right}, {""}});
    for (const auto& [key, of] : groups)
        table.add({std::to_string(key.first), std::string(ruleOf(key.second).text), std::to_string(of.ops), std::to_string(of.critical),
                   figures.units.timeText(of.least), figures.units.timeText(of.most), timeline.nameOf(timeline.spans()[of.loosest])});
    return table.text(colour);
}

Json slackJson(const Run& run, int step)
{
    const Timeline& timeline = *run.timeline;
    Json out = Json::array();
    for (const OpSlack& op : slackOf(timeline, step))
        out.push_back({{"op", timeline.nameOf(timeline.spans()[op.span])}, {"rank", timeline.trackOf(op.span).rank}, {"slack_ns", op.slack}});
    return out;
}

void addWhatIfOption(CLI::App& app, std::vector<std::string>& questions)
{
    app.add_option("--what-if", questions,
                   "Simulate it with a change: F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, jitter*0, lower=pytorch, sends=rendezvous, channels=1, m=16, m+8; repeat the option for several")
        ->type_name("CHANGE,…")->allow_extra_args(false);
}

Result<std::vector<WhatIfRow>> answerWhatIfs(const Schedule& schedule, const CostModel& costs, const std::vector<std::string>& questions,
                                             const Channels& channels)
{
    auto base = WhatIf::create(schedule, costs, channels);
    if (!base) return tl::unexpected(std::move(base.error()));
    std::vector<WhatIfRow> rows;
    for (const std::string& question : questions) {
        auto changes = parseWhatIf(question);
        if (!changes) return tl::unexpected(std::move(changes.error()));
        auto answer = base->answer(*changes);
        if (answer) {
            rows.push_back({question, std::move(*answer), {}});
            continue;
        }
        auto before = base->answer({});
        if (!before) return tl::unexpected(std::move(before.error()));
        std::string why = answer.error().message;
        if (!answer.error().remedy.empty()) why += "; " + answer.error().remedy;
        rows.push_back({question, std::move(*before), std::move(why)});
    }
    return rows;
}

std::string whatIfText(const std::vector<WhatIfRow>& rows, const Units& units, bool colour)
{
    Table table({{"change"}, {"time", Align::Right}, {"now", Align::Right}, {"", Align::Right}, {"bubble", Align::Right},
                 {"now", Align::Right}, {"peak", Align::Right}, {"now", Align::Right}});
    std::string faults;
    for (const WhatIfRow& row : rows) {
        const WhatIfAnswer& answer = row.answer;
        if (!row.fault.empty()) {
            table.add({row.question, "none", units.timeText(answer.makespanBefore), "", "", formatPercent(answer.bubbleBefore), "",
                       units.memoryText(largest(answer.peakBefore))}, Tint::Bad);
            faults += fmt::format("{}: {}\n", row.question, row.fault);
            continue;
        }
        const double change =
            answer.makespanBefore > 0 ? static_cast<double>(answer.makespanAfter) / static_cast<double>(answer.makespanBefore) - 1 : 0;
        table.add({row.question, units.timeText(answer.makespanAfter), units.timeText(answer.makespanBefore), signedPercentText(change),
                   formatPercent(answer.bubbleAfter), formatPercent(answer.bubbleBefore), units.memoryText(largest(answer.peakAfter)),
                   units.memoryText(largest(answer.peakBefore))});
    }
    return table.text(colour) + faults;
}

Json whatIfJson(const std::vector<WhatIfRow>& rows, const Units& units)
{
    const auto time = [&](Nanos nanos) { return units.shares() ? Json(units.timeValue(nanos)) : Json(nanos); };
    const auto memory = [&](const std::vector<Bytes>& peaks) {
        Json out = Json::array();
        for (const Bytes peak : peaks) out.push_back(units.memory != 1 ? Json(units.memoryValue(peak)) : Json(peak));
        return out;
    };
    Json out = Json::array();
    for (const WhatIfRow& row : rows) {
        const auto known = [&](Json value) { return row.fault.empty() ? std::move(value) : Json(nullptr); };
        out.push_back({{"change", row.question},
                       {"makespan_before", time(row.answer.makespanBefore)},
                       {"makespan_after", known(time(row.answer.makespanAfter))},
                       {"bubble_fraction_before", row.answer.bubbleBefore},
                       {"bubble_fraction_after", known(row.answer.bubbleAfter)},
                       {"peak_activation_before", memory(row.answer.peakBefore)},
                       {"peak_activation_after", known(memory(row.answer.peakAfter))},
                       {"microbatches_before", row.answer.microbatchesBefore},
                       {"microbatches_after", known(row.answer.microbatchesAfter)},
                       {"error", row.fault.empty() ? Json(nullptr) : Json(row.fault)}});
    }
    return out;
}

} // namespace stagewright
