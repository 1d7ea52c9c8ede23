#include "app/cli/kernel_report.h"

#include <cmath>

#include <fmt/format.h>

#include "app/cli/table.h"
#include "schedules/kinds.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/links.h"
#include "traces/analysis/quantity.h"
#include "traces/analysis/roofline.h"

namespace stagewright {

namespace {

using Align = Table::Align;
constexpr std::size_t shownKernels = 25;

std::string shareOf(Nanos part, Nanos whole)
{
    return formatPercent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

std::string shortened(const std::string& name)
{
    constexpr std::size_t most = 56;
    if (displayWidth(name) <= most) return name;
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
        --end;
    return name.substr(0, end) + "…";
}

std::string opText(const KernelRow& row)
{
    return row.kind ? std::string(ruleOf(*row.kind).text) : "none";
}

std::string kernelTable(const KernelReport& report, bool colour)
{
    Table table({{"op"}, {"kernel or copy"}, {"calls", Align::Right}, {"total", Align::Right}, {"share", Align::Right}, {"mean", Align::Right},
                 {"shortest", Align::Right}, {"longest", Align::Right}});
    const auto count = std::min(shownKernels, report.rows.size());
    for (std::size_t i = 0; i < count; ++i) {
        const KernelRow& row = report.rows[i];
        table.add({opText(row), shortened(row.name), fmt::format("{}", row.calls), formatDuration(row.total), shareOf(row.total, report.total),
                   formatDuration(row.mean()), formatDuration(row.shortest), formatDuration(row.longest)});
    }
    std::string text = table.text(colour);
    if (report.rows.size() > count) text += fmt::format("{} more rows: --json\n", report.rows.size() - count);
    return text;
}

std::string linkTable(const std::vector<LinkOverlap>& links, bool colour)
{
    Table table({{"link"}, {"messages", Align::Right}, {"sender waits", Align::Right}, {"receiver waits", Align::Right}, {"transfer", Align::Right},
                 {"sender computes", Align::Right}, {"receiver computes", Align::Right}, {"exposed", Align::Right}});
    for (const LinkOverlap& link : links)
        table.add({fmt::format("{} → {}", link.from, link.to), fmt::format("{}", link.messages), formatDuration(link.sendWait),
                   formatDuration(link.receiveWait), formatDuration(link.transfer), shareOf(link.coveredBySender, link.transfer),
                   shareOf(link.coveredByReceiver, link.transfer), formatDuration(link.exposed())});
    return table.text(colour);
}

std::string rooflineTable(const std::vector<RooflineRow>& rows, const Ceilings& ceilings, bool colour)
{
    Table table({{"op"}, {"ops", Align::Right}, {"TFLOP", Align::Right}, {"FLOP/byte", Align::Right}, {"TFLOP/s", Align::Right},
                 {"attainable", Align::Right}, {"reached", Align::Right}, {"bound by"}});
    for (const RooflineRow& row : rows)
        table.add({std::string(ruleOf(row.kind).text), fmt::format("{}", row.ops), fmt::format("{:.3g}", row.flops * 1e-12),
                   fmt::format("{:.3g}", row.intensity()), fmt::format("{:.3g}", row.achieved() * 1e-12),
                   fmt::format("{:.3g}", row.attainable(ceilings) * 1e-12), formatPercent(row.share(ceilings)),
                   row.memoryBound(ceilings) ? "memory" : "matrix units"});
    return table.text(colour);
}

} // namespace

std::string kernelsText(const Run& run, const RunFigures& figures, bool colour)
{
    const Timeline& timeline = *run.timeline;
    if (!hasKernels(timeline)) return "this run has no kernels: only recordings on GPUs and traces of Kineto or Nsight Systems have them\n";
    const KernelReport report = analyseKernels(timeline, figures.step);
    std::string text = kernelTable(report, colour);
    if (const auto gaps = analyseLaunchGaps(timeline, figures.step)) {
        RankLaunchGaps all;
        for (const RankLaunchGaps& rank : gaps->ranks) {
            all.inside += rank.inside;
            all.before += rank.before;
        }
        text += fmt::format("\nlaunch gaps  {} of ranks × step: {} inside ops, {} before ops\n", formatPercent(gaps->exposedShare(), 2),
                            formatDuration(all.inside), formatDuration(all.before));
    }
    if (const auto links = analyseLinks(timeline, figures.step); !links.empty()) text += "\n" + linkTable(links, colour);
    const auto ceilings = ceilingsOf(run);
    const auto rows = rooflineOf(run, figures.step);
    if (ceilings && rows && !rows->empty()) text += "\n" + rooflineTable(*rows, *ceilings, colour);
    return text;
}

Json kernelsJson(const Run& run, int step)
{
    const Timeline& timeline = *run.timeline;
    Json kernels = Json::array();
    for (const KernelRow& row : analyseKernels(timeline, step).rows) {
        kernels.push_back({{"op", row.kind ? Json(std::string(ruleOf(*row.kind).text)) : Json(nullptr)},
                           {"name", row.name},
                           {"lane", std::string(toText(row.lane))},
                           {"calls", row.calls},
                           {"total_ns", row.total},
                           {"mean_ns", row.mean()},
                           {"shortest_ns", row.shortest},
                           {"longest_ns", row.longest}});
    }
    Json gaps = nullptr;
    if (const auto report = analyseLaunchGaps(timeline, step); report && hasKernels(timeline)) {
        Json ranks = Json::array();
        for (std::size_t r = 0; r < report->ranks.size(); ++r)
            ranks.push_back({{"rank", r},
                             {"inside_ns", report->ranks[r].inside},
                             {"before_ns", report->ranks[r].before},
                             {"ops_ns", report->ranks[r].ops}});
        gaps = {{"share", report->exposedShare()}, {"total_ns", report->total()}, {"by_rank", std::move(ranks)}};
    }
    Json links = Json::array();
    for (const LinkOverlap& link : analyseLinks(timeline, step)) {
        links.push_back({{"from", link.from},
                         {"to", link.to},
                         {"messages", link.messages},
                         {"send_wait_ns", link.sendWait},
                         {"receive_wait_ns", link.receiveWait},
                         {"transfer_ns", link.transfer},
                         {"covered_by_sender_ns", link.coveredBySender},
                         {"covered_by_receiver_ns", link.coveredByReceiver},
                         {"exposed_ns", link.exposed()}});
    }
    Json roofline = nullptr;
    const auto ceilings = ceilingsOf(run);
    const auto rows = rooflineOf(run, step);
    if (ceilings && rows) {
        roofline = Json::array();
        for (const RooflineRow& row : *rows) {
            roofline.push_back({{"op", std::string(ruleOf(row.kind).text)},
                                {"ops", row.ops},
                                {"time_ns", row.time},
                                {"flops", row.flops},
                                {"bytes", row.bytes},
                                {"flops_per_byte", row.intensity()},
                                {"flops_per_second", row.achieved()},
                                {"attainable_flops_per_second", row.attainable(*ceilings)},
                                {"share", row.share(*ceilings)}});
        }
    }
    return {{"kernels", std::move(kernels)}, {"launch_gaps", std::move(gaps)}, {"links", std::move(links)}, {"roofline", std::move(roofline)}};
}

} // namespace stagewright
