#include "schedules/library/variants.h"

#include <algorithm>
#include <set>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

// "auto|whole" → auto and the whole numbers; the default is left out.
std::vector<std::string> alternatives(const ScheduleParameter& parameter, const std::set<int>& wholes, bool reals)
{
    std::vector<std::string> out;
    for (const std::string_view value : itemsOf(parameter.values, "|")) {
        if (value == "whole") {
            for (const int number : wholes) out.push_back(std::to_string(number));
        } else if (value == "real") {
            if (reals) out.insert(out.end(), {"0.5", "1", "1.5", "2"});
        } else {
            out.emplace_back(value);
        }
    }
    std::erase(out, parameter.fallback);
    return out;
}

std::string withParameter(const std::string& name, const ScheduleParameter& parameter, const std::string& value)
{
    return name + ":" + std::string(parameter.name) + "=" + value;
}

std::set<int> wholesOf(const Schedule& schedule)
{
    std::set<int> out{2, 3, 4};
    for (int n = (schedule.ranks + 1) / 2; n <= std::min(schedule.ranks, 64); ++n) out.insert(n); // groups
    if (!schedule.order.empty() && !schedule.order[0].empty()) {
        const auto& row = schedule.order[0];
        const auto another = std::find_if(row.begin(), row.end(), [&row](const Op& op) {
            return op.kind != row[0].kind || op.stage != row[0].stage;
        });
        out.insert(static_cast<int>(another - row.begin())); // the first group of a loop
    }
    out.insert(std::max(1, schedule.stages / schedule.ranks / 2)); // waves
    int slices = 1;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) slices = std::max(slices, op.slice + 1);
    out.insert(slices);
    std::set<int> ranks; // of the first stage's copies, two for each pair of pipelines
    if (schedule.placement.hasCopies())
        for (int j = 0; j < schedule.microbatches; ++j) ranks.insert(schedule.placement.rankOf(0, j));
    out.insert(std::max<int>(1, static_cast<int>(ranks.size()) / 2));
    return out;
}

} // namespace

std::vector<std::string> variantsOf(const ScheduleInfo& info)
{
    const std::string name(info.name);
    std::vector<std::string> names{name};
    for (const ScheduleParameter& parameter : info.parameters)
        for (const std::string& value : alternatives(parameter, {wholeOf<int>(parameter.shown).value_or(2)}, false))
            names.push_back(withParameter(name, parameter, value));
    return names;
}

std::vector<std::string> everyVariant()
{
    std::vector<std::string> out;
    for (const ScheduleInfo& info : allSchedules())
        for (std::string& name : variantsOf(info)) out.push_back(std::move(name));
    return out;
}

std::vector<std::string> namesThatMayFit(const Schedule& schedule, bool searching)
{
    const int chunks = schedule.stages / std::max(1, schedule.ranks);
    const std::set<int> wholes = wholesOf(schedule);
    std::vector<std::vector<std::string>> byCount; // of the parameters set
    const auto add = [&](std::size_t count, std::string name) {
        if (byCount.size() <= count) byCount.resize(count + 1);
        byCount[count].push_back(std::move(name));
    };
    for (const ScheduleInfo& info : allSchedules()) {
        // a parameter may set the chunks
        const bool waves = info.fixedChunks == 2 && chunks % 2 == 0 && !info.parameters.empty();
        if ((info.fixedChunks > 0 && info.fixedChunks != chunks && !waves) || (info.searches && !searching)) continue;
        std::vector<std::pair<std::string, std::size_t>> names{{std::string(info.name), 0}};
        for (const ScheduleParameter& parameter : info.parameters) {
            const std::size_t before = names.size();
            for (const std::string& value : alternatives(parameter, wholes, info.searches))
                for (std::size_t i = 0; i < before; ++i)
                    names.emplace_back(withParameter(names[i].first, parameter, value), names[i].second + 1);
        }
        for (auto& [name, count] : names) add(count, std::move(name));
    }
    std::vector<std::string> out;
    for (auto& names : byCount)
        out.insert(out.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
    return out;
}

Result<Schedule> makeOnNearShape(const std::string& name, const Shape& shape)
{
    Result<Schedule> asked = makeSchedule(name, shape);
    if (asked) return asked;
    for (int ranks = shape.ranks; ranks <= 2 * shape.ranks; ++ranks) {
        for (int microbatches = shape.microbatches; microbatches <= 4 * ranks; ++microbatches) {
            Shape near = shape;
            near.ranks = ranks;
            near.microbatches = microbatches;
            if (Result<Schedule> made = makeSchedule(name, near)) return made;
        }
    }
    return asked;
}

} // namespace stagewright
