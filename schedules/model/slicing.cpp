#include "schedules/model/slicing.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Times of slices by (units, units before), units of the granularity.
struct Table {
    int n = 0;
    std::vector<double> values;

    double at(int units, int before) const
    {
        return values[static_cast<std::size_t>(units - 1) * static_cast<std::size_t>(n) +
                      static_cast<std::size_t>(before)];
    }
};

Result<void> checkTask(const SliceTask& task)
{
    if (task.tokens < 1 || task.stages < 1 || task.granularity < 1 || task.sequences < 1)
        return fail(
            ErrorCode::Usage,
            fmt::format("slicing: {} tokens, {} stages, granularity {}, {} sequences; at least one of each is needed",
                        task.tokens, task.stages, task.granularity, task.sequences));
    if (task.tokens % task.granularity != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("slicing: {} tokens do not divide into slices of {}", task.tokens, task.granularity),
                    fmt::format("the nearest that work are {} and {} tokens",
                                std::max(1, task.tokens / task.granularity) * task.granularity,
                                (task.tokens / task.granularity + 1) * task.granularity));
    return {};
}

template <typename Time>
Result<Table> tabulate(const SliceTask& task, Time&& time)
{
    Table table;
    table.n = task.tokens / task.granularity;
    const auto n = static_cast<std::size_t>(table.n);
    table.values.assign(n * n, never);
    for (int units = 1; units <= table.n; ++units)
        for (int before = 0; before + units <= table.n; ++before) {
            const double value = time(units * task.granularity, before * task.granularity);
            if (!(value >= 0))
                return fail(ErrorCode::Usage,
                            fmt::format("slicing: a slice of {} tokens behind {} takes {}; a time from 0 "
                                        "is needed",
                                        units * task.granularity, before * task.granularity, value));
            table.values[static_cast<std::size_t>(units - 1) * n + static_cast<std::size_t>(before)] = value;
        }
    return table;
}

// Distinct times in rising order, thinned to the step.
std::vector<double> candidatesOf(std::vector<double> values, double step)
{
    std::sort(values.begin(), values.end());
    std::vector<double> out;
    for (const double value : values)
        if (value != never && (out.empty() || (value > out.back() && value >= out.back() + step))) out.push_back(value);
    // Thinning must not drop the largest: with it everything fits.
    for (std::size_t i = values.size(); i-- > 0;)
        if (values[i] != never) {
            if (out.empty() || out.back() < values[i]) out.push_back(values[i]);
            break;
        }
    return out;
}

struct Filled {
    double sum = never;
    double largest = 0;
    std::vector<int> units;
};

// Least Σ t of a whole sequence with no slice above `most`; ties go to the longer slice in front.
Filled fill(const Table& table, double most)
{
    const auto n = static_cast<std::size_t>(table.n);
    std::vector<double> rest(n + 1, never); // from `before` units on to the end
    std::vector<int> choice(n + 1, 0);
    rest[n] = 0;
    for (int before = table.n - 1; before >= 0; --before)
        for (int units = table.n - before; units >= 1; --units) {
            const double value = table.at(units, before);
            if (value > most) continue;
            const double sum = value + rest[static_cast<std::size_t>(before + units)];
            if (sum < rest[static_cast<std::size_t>(before)]) {
                rest[static_cast<std::size_t>(before)] = sum;
                choice[static_cast<std::size_t>(before)] = units;
            }
        }
    Filled out;
    out.sum = rest[0];
    if (out.sum == never) return out;
    for (int before = 0; before < table.n;) {
        const int units = choice[static_cast<std::size_t>(before)];
        out.units.push_back(units);
        out.largest = std::max(out.largest, table.at(units, before));
        before += units;
    }
    return out;
}

std::vector<int> inTokens(std::vector<int> units, int granularity)
{
    for (int& value : units) value *= granularity;
    return units;
}

} // namespace

Result<Slicing> sliceSequence(const SliceTask& task, const std::function<double(int, int)>& time)
{
    STAGEWRIGHT_CHECK(checkTask(task));
    STAGEWRIGHT_TRY(auto table, tabulate(task, time));
    Slicing best;
    best.time = never;
    for (const double most : candidatesOf(table.values, task.step)) {
        if ((task.stages - 1) * most >= best.time) break;
        const Filled filled = fill(table, most);
        const double value = task.sequences * filled.sum + (task.stages - 1) * filled.largest;
        if (filled.sum == never || value >= best.time) continue;
        best.time = value;
        best.lengths = inTokens(filled.units, task.granularity);
    }
    return best;
}

} // namespace stagewright
