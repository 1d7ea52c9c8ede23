#include "app/cli/text/predictions.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

namespace stagewright {

namespace {

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

document::Section whatIfSection(const std::vector<WhatIfRow>& rows)
{
    using namespace document;
    document::Section section{"What if"};
    document::Table table{
        "what_if.#",
        {TableColumn{"change", "change"}, TableColumn{"makespan_after", "time", ColumnKind::Time},
         TableColumn{"makespan_before", "now", ColumnKind::Time}, Column({{}, {}, ColumnKind::Share}, Sign::Relative),
         TableColumn{"bubble_fraction_after", "bubble", ColumnKind::Share},
         TableColumn{"bubble_fraction_before", "now", ColumnKind::Share}, TableColumn{{}, "peak", ColumnKind::Size},
         TableColumn{{}, "now", ColumnKind::Size}, unshown("peak_activation_before"), unshown("peak_activation_after"),
         unshown("microbatches_before"), unshown("microbatches_after"), unshown("error")}};
    for (const WhatIfRow& row : rows) {
        const WhatIfAnswer& answer = row.answer;
        const bool known = row.fault.empty();
        const auto after = [known](auto value) { return known ? TableCell(value) : TableCell(); };
        table.rows.push_back(
            {{row.question, after(answer.makespanAfter), answer.makespanBefore,
              known && answer.makespanBefore > 0
                  ? TableCell(static_cast<double>(answer.makespanAfter) / static_cast<double>(answer.makespanBefore) -
                              1)
                  : TableCell(),
              after(answer.bubbleAfter), answer.bubbleBefore, known ? cellOf(largest(answer.peakAfter)) : TableCell(),
              cellOf(largest(answer.peakBefore)), TableCell(), TableCell(), std::int64_t(answer.microbatchesBefore),
              numberCell(answer.microbatchesAfter, known), textCell(row.fault)},
             known ? Tone::Plain : Tone::Bad});
    }
    section.add(std::move(table));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto peaks = [&](const char* key, const std::vector<Bytes>& of) {
            if (!of.empty())
                section.add(listOf(fmt::format("what_if.{}.{}", i, key), ColumnKind::Size, {of.begin(), of.end()}));
        };
        peaks("peak_activation_before", rows[i].answer.peakBefore);
        if (rows[i].fault.empty()) peaks("peak_activation_after", rows[i].answer.peakAfter);
        if (!rows[i].fault.empty()) section.say(fmt::format("{}: {}", rows[i].question, rows[i].fault));
    }
    return section;
}

} // namespace stagewright
