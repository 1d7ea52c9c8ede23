#include "traces/compare/device_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/kernel_class.h"

namespace stagewright {

namespace {

using document::Column;
using document::Section;
using document::Table;

Column column(std::string title, std::string meaning, ColumnKind kind = ColumnKind::Text)
{
    Column out(TableColumn{{}, std::move(title), kind, std::move(meaning)});
    out.brief = kind == ColumnKind::Text;
    return out;
}

Column changeColumn(const std::string& b)
{
    return {{{}, b + " − A", ColumnKind::Time, "The change"}, document::Sign::Change};
}

std::string orDash(std::string text) { return text.empty() ? "–" : text; }

Section figuresSection(const DeviceChanges& changes, const std::string& b)
{
    Table table{{},
                {column({}, "What the devices do"), column("A", "In A", ColumnKind::Time),
                 column(b, "In " + b, ColumnKind::Time), changeColumn(b),
                 column("beyond noise",
                        "Whether it exceeds the spread between steps; –: unknown, as neither run has several steps or "
                        "it is not measured")}};
    const auto known = [](std::optional<Nanos> time) {
        return time ? TableCell(*time) : TableCell(std::string("unknown"));
    };
    for (const DeviceFigure& one : changes.figures) {
        const auto change = one.change();
        const char* beyond = !one.noise || !change ? "–" : one.beyondNoise() ? "yes" : "no";
        table.add({one.title, known(one.a), known(one.b), change ? TableCell(*change) : TableCell(std::string("–")),
                   std::string(beyond)});
    }
    Section section{"device time, summed over ranks"};
    section.add(std::move(table));
    return section;
}

// Columns that say which kernel a row is, then `more`; cells: those of the latter.
template <typename Cells>
Section kernelsSection(std::string title, const std::vector<const KernelChange*>& kernels, std::vector<Column> more,
                       const Cells& cells)
{
    Table table{
        {},
        {column("kernel or copy", "Its name without namespaces, arguments and the details of its tile"),
         column("whole name", "As the trace has it"), column("size", "Bytes that a call moves", ColumnKind::Size),
         column("shape", "Grid and block of the launch, and the sizes of the operator's inputs where the trace has "
                         "them")}};
    table.columns[2].sparse = table.columns[3].sparse = true;
    table.columns.insert(table.columns.end(), more.begin(), more.end());
    const bool shapes =
        std::any_of(kernels.begin(), kernels.end(), [](const auto* one) { return !one->shapeText().empty(); });
    for (const KernelChange* one : kernels) {
        TableRow row{briefKernelName(one->name), one->name, cellOf(one->bytes),
                     shapes ? TableCell(orDash(one->shapeText())) : TableCell()};
        for (TableCell& cell : cells(*one)) row.push_back(std::move(cell));
        table.add(std::move(row)).op = one->most ? one->most->spanB : noSpan;
    }
    Section section{std::move(title)};
    section.add(std::move(table));
    return section;
}

Section changedSection(const std::vector<const KernelChange*>& kernels, std::size_t all, const std::string& b)
{
    const Column change = changeColumn(b);
    return kernelsSection(
        fmt::format("kernels and copies that changed most ({} of {})", kernels.size(), all), kernels,
        {column("calls A", "Calls in A, on all ranks", ColumnKind::Count),
         column("calls " + b, "Calls in " + b + ", on all ranks", ColumnKind::Count),
         column("A", "Sum of their durations in A", ColumnKind::Time),
         column(b, "Sum of their durations in " + b, ColumnKind::Time), change,
         column("matched by", "Besides the name: shape, order of the calls on each rank, both, or name alone"),
         column("call that changed most", "Where one call has at least twice its share of the change")},
        [&](const KernelChange& one) {
            const std::string most = one.placed()
                                         ? fmt::format("{} of {} on rank {}, {}", one.most->place, one.most->calls,
                                                       one.most->rank, textOf(change, {}, one.most->change(), Units{}))
                                         : "–";
            return TableRow{one.callsA, one.callsB, one.totalA, one.totalB, one.change(), one.matchedBy(), most};
        });
}

Section onlySection(const std::vector<const KernelChange*>& kernels, std::size_t all, std::int64_t calls,
                    const std::string& in)
{
    return kernelsSection(fmt::format("only in {} ({} of {}, {})", in, kernels.size(), all, counted(calls, "call")),
                          kernels,
                          {column("calls", "On all ranks", ColumnKind::Count),
                           column("total", "Sum of their durations", ColumnKind::Time)},
                          [](const KernelChange& one) {
                              return TableRow{one.callsA + one.callsB, one.totalA + one.totalB};
                          });
}

} // namespace

std::vector<Section> deviceSections(const DeviceChanges& changes, char b, std::size_t most)
{
    const std::string other(1, b);
    std::vector<Section> out;
    if (!changes.figures.empty()) out.push_back(figuresSection(changes, other));
    for (const int in : {0, 1, 2}) { // both, A, B
        std::vector<const KernelChange*> kernels;
        std::size_t all = 0;
        std::int64_t calls = 0;
        for (const KernelChange& one : changes.kernels) {
            if (in == 0 ? !one.inBoth() : one.inBoth() || (in == 1 ? one.callsA : one.callsB) == 0) continue;
            calls += one.callsA + one.callsB;
            if (++all <= most) kernels.push_back(&one);
        }
        if (all > 0)
            out.push_back(in == 0 ? changedSection(kernels, all, other)
                                  : onlySection(kernels, all, calls, in == 1 ? "A" : other));
    }
    return out;
}

} // namespace stagewright
