#include "traces/compare/device_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/kernel_class.h"

namespace stagewright {

namespace {

std::string changeText(Nanos time)
{
    return time == 0 ? std::string("=")
                     : withTrueMinus(fmt::format("{}{}", time > 0 ? "+" : "", Units{}.timeText(time)));
}

std::string sizeText(const KernelChange& one) { return one.bytes ? formatBytes(*one.bytes) : std::string("–"); }

std::string shapeCell(const KernelChange& one)
{
    const std::string text = one.shapeText();
    return text.empty() ? std::string("–") : text;
}

// Columns that say which kernel a row is.
class KernelColumns {
public:
    explicit KernelColumns(const std::vector<const KernelChange*>& kernels)
        : m_sizes(std::any_of(kernels.begin(), kernels.end(), [](const auto* one) { return one->bytes.has_value(); })),
          m_shapes(
              std::any_of(kernels.begin(), kernels.end(), [](const auto* one) { return !one->shapeText().empty(); }))
    {
    }
    void head(std::vector<DeviceTable::Column>& columns) const
    {
        columns.push_back(
            {"kernel or copy", "Its name without namespaces, arguments and the details of its tile", false});
        columns.push_back({"whole name", "As the trace has it", false});
        if (m_sizes) columns.push_back({"size", "Bytes that a call moves", true});
        if (m_shapes)
            columns.push_back(
                {"shape",
                 "Grid and block of the launch, and the sizes of the operator's inputs where the trace has them",
                 false});
    }
    void add(const KernelChange& one, std::vector<std::string>& cells) const
    {
        cells.push_back(briefKernelName(one.name));
        cells.push_back(one.name);
        if (m_sizes) cells.push_back(sizeText(one));
        if (m_shapes) cells.push_back(shapeCell(one));
    }

private:
    bool m_sizes;
    bool m_shapes;
};

DeviceTable figuresTable(const DeviceChanges& changes, const std::string& b)
{
    DeviceTable table{DeviceTable::Content::Figures,
                      "device time, summed over ranks",
                      {{"time", "What the devices do", false},
                       {"A", "In A", true},
                       {b, "In " + b, true},
                       {b + " − A", "The change", true},
                       {"beyond noise",
                        "Whether it exceeds the spread between steps; –: unknown, as neither run has several steps or "
                        "it is not measured",
                        false}},
                      {},
                      3};
    const auto known = [](std::optional<Nanos> time) {
        return time ? Units{}.timeText(*time) : std::string("unknown");
    };
    for (const DeviceFigure& one : changes.figures) {
        const auto change = one.change();
        table.rows.push_back({{one.title, known(one.a), known(one.b), change ? changeText(*change) : "–",
                               !one.noise || !change ? "–"
                               : one.beyondNoise()   ? "yes"
                                                     : "no"},
                              change.value_or(0),
                              nullptr});
    }
    return table;
}

DeviceTable changedTable(const std::vector<const KernelChange*>& kernels, std::size_t all, const std::string& b)
{
    DeviceTable table{DeviceTable::Content::Kernels,
                      fmt::format("kernels and copies that changed most ({} of {})", kernels.size(), all),
                      {},
                      {},
                      0};
    const KernelColumns name(kernels);
    name.head(table.columns);
    table.columns.insert(table.columns.end(), {{"calls A", "Calls in A, on all ranks", true},
                                               {"calls " + b, "Calls in " + b + ", on all ranks", true},
                                               {"A", "Sum of their durations in A", true},
                                               {b, "Sum of their durations in " + b, true}});
    table.changeColumn = table.columns.size();
    table.columns.insert(
        table.columns.end(),
        {{b + " − A", "The change", true},
         {"matched by", "Besides the name: shape, order of the calls on each rank, both, or name alone", false},
         {"call that changed most", "Where one call has at least twice its share of the change", false}});
    for (const KernelChange* one : kernels) {
        DeviceTable::Row row{{}, one->change(), one};
        name.add(*one, row.cells);
        row.cells.insert(row.cells.end(),
                         {std::to_string(one->callsA), std::to_string(one->callsB), Units{}.timeText(one->totalA),
                          Units{}.timeText(one->totalB), changeText(one->change()), one->matchedBy(),
                          one->placed() ? fmt::format("{} of {} on rank {}, {}", one->most->place, one->most->calls,
                                                      one->most->rank, changeText(one->most->change()))
                                        : "–"});
        table.rows.push_back(std::move(row));
    }
    return table;
}

DeviceTable onlyTable(const std::vector<const KernelChange*>& kernels, std::size_t all, std::int64_t calls,
                      const std::string& in)
{
    DeviceTable table{DeviceTable::Content::OnlyInOne,
                      fmt::format("only in {} ({} of {}, {})", in, kernels.size(), all, counted(calls, "call")),
                      {},
                      {},
                      0};
    const KernelColumns name(kernels);
    name.head(table.columns);
    table.columns.insert(table.columns.end(),
                         {{"calls", "On all ranks", true}, {"total", "Sum of their durations", true}});
    for (const KernelChange* one : kernels) {
        DeviceTable::Row row{{}, one->change(), one};
        name.add(*one, row.cells);
        row.cells.insert(row.cells.end(),
                         {std::to_string(one->callsA + one->callsB), Units{}.timeText(one->totalA + one->totalB)});
        table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace

std::vector<DeviceTable> deviceTables(const DeviceChanges& changes, char b, std::size_t most)
{
    const std::string other(1, b);
    std::vector<DeviceTable> out;
    if (!changes.figures.empty()) out.push_back(figuresTable(changes, other));
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
            out.push_back(in == 0 ? changedTable(kernels, all, other)
                                  : onlyTable(kernels, all, calls, in == 1 ? "A" : other));
    }
    return out;
}

} // namespace stagewright
