#include "traces/store/run_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagewright {

std::string_view unnumberedName(std::string_view name)
{
    const auto open = name.rfind(" (");
    if (open == std::string_view::npos || open == 0 || !name.ends_with(')')) return name;
    const std::string_view digits = name.substr(open + 2, name.size() - open - 3);
    const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    return number ? name.substr(0, open) : name;
}

std::string freeRunName(const std::vector<RunInfo>& runs, const std::string& wanted)
{
    const auto taken = [&](const std::string& name) {
        return std::any_of(runs.begin(), runs.end(), [&](const RunInfo& run) { return run.name == name; });
    };
    if (!taken(wanted)) return wanted;
    const std::string base(unnumberedName(wanted));
    for (int number = 2;; ++number)
        if (std::string name = fmt::format("{} ({})", base, number); !taken(name)) return name;
}

} // namespace stagewright
