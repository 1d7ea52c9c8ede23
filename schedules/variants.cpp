#include "schedules/variants.h"

namespace stagewright {

std::vector<std::string> variantsOf(const ScheduleInfo& info)
{
    const std::string name(info.name);
    std::vector<std::string> names{name};
    for (const ScheduleParameter& parameter : info.parameters) {
        const auto add = [&](std::string_view value) {
            if (value == "whole") value = "2";
            if (value == parameter.fallback || value == "real") return;
            names.push_back(name + ":" + std::string(parameter.name) + "=" + std::string(value));
        };
        for (std::string_view rest = parameter.values; !rest.empty();) {
            const std::size_t bar = rest.find('|');
            add(rest.substr(0, bar));
            rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
        }
    }
    return names;
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
