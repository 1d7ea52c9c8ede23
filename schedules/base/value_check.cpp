#include "schedules/base/value_check.h"

#include <algorithm>

#include <fmt/core.h>

#include "schedules/base/text.h"

namespace stagewright {

ValueCheck wholeNumber(std::int64_t least, std::int64_t most)
{
    return [least, most](const std::string& text) {
        const auto value = wholeOf<std::int64_t>(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format("takes a whole number from {} to {}, not '{}'", least, most, text);
    };
}

ValueCheck realNumber(double least, double most)
{
    return [least, most](const std::string& text) {
        const auto value = numberOf(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format("takes a number from {} to {}, not '{}'", least, most, text);
    };
}

ValueCheck oneOf(std::vector<std::string> names)
{
    return [names = std::move(names)](const std::string& text) {
        if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
        const std::string near = nearestName(text, names);
        return fmt::format("takes one of {}, not '{}'{}", listed(names), text,
                           near.empty() ? "" : "; did you mean " + near + "?");
    };
}

} // namespace stagewright
