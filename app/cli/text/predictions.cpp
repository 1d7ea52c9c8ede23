#include "app/cli/text/predictions.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "app/cli/text/table.h"

namespace stagewright {

namespace {

using Align = Table::Align;

std::optional<Bytes> largest(const std::vector<Bytes>& peaks)
{
    return peaks.empty() ? std::nullopt : std::optional(*std::max_element(peaks.begin(), peaks.end()));
}

} // namespace

Result<std::vector<WhatIfRow>> answerWhatIfs(const Schedule& schedule, const CostModel& costs,
                                             const std::vector<std::string>& questions, const Channels& channels,
                                             const std::optional<Lowering>& lowering)
{
    STAGEWRIGHT_TRY(auto base, WhatIf::create(schedule, costs, channels, lowering));
    std::vector<WhatIfRow> rows;
    for (const std::string& question : questions) {
        STAGEWRIGHT_TRY(auto changes, parseWhatIf(question));
        auto answer = base.answer(changes);
        if (answer) {
            rows.push_back({question, std::move(*answer), {}});
            continue;
        }
        STAGEWRIGHT_TRY(auto before, base.answer({}));
        std::string why = answer.error().message;
        if (!answer.error().remedy.empty()) why += "; " + answer.error().remedy;
        rows.push_back({question, std::move(before), std::move(why)});
    }
    return rows;
}

std::string whatIfText(const std::vector<WhatIfRow>& rows, const Units& units, bool colour)
{
    Table table({{"change"},
                 {"time", Align::Right},
                 {"now", Align::Right},
                 {"", Align::Right},
                 {"bubble", Align::Right},
                 {"now", Align::Right},
                 {"peak", Align::Right},
                 {"now", Align::Right}});
    std::string faults;
    for (const WhatIfRow& row : rows) {
        const WhatIfAnswer& answer = row.answer;
        if (!row.fault.empty()) {
            table.add({row.question, "none", units.timeText(answer.makespanBefore), "", "",
                       formatPercent(answer.bubbleBefore), "", units.memoryText(largest(answer.peakBefore))},
                      Tint::Bad);
            faults += fmt::format("{}: {}\n", row.question, row.fault);
            continue;
        }
        const double change =
            answer.makespanBefore > 0
                ? static_cast<double>(answer.makespanAfter) / static_cast<double>(answer.makespanBefore) - 1
                : 0;
        table.add({row.question, units.timeText(answer.makespanAfter), units.timeText(answer.makespanBefore),
                   formatChange(change), formatPercent(answer.bubbleAfter), formatPercent(answer.bubbleBefore),
                   units.memoryText(largest(answer.peakAfter)), units.memoryText(largest(answer.peakBefore))});
    }
    return table.text(colour) + faults;
}

Json whatIfJson(const std::vector<WhatIfRow>& rows, const Units& units)
{
    const auto time = [&](Nanos nanos) { return units.shares() ? Json(units.timeValue(nanos)) : Json(nanos); };
    const auto memory = [&](const std::vector<Bytes>& peaks) {
        if (peaks.empty()) return Json(nullptr);
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
                       {"error", textOrNull(row.fault)}});
    }
    return out;
}

} // namespace stagewright
