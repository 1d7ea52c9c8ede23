// What the picture formats share: stagewright-ui draws them.
#pragma once

#include "traces/formats/format_registry.h"

namespace stagewright {

inline std::vector<FormatOption> pictureOptions()
{
    return {{"style", "STYLE", "screen, or paper for print"},
            {"width", "MM", "For paper, in mm: 84 one column, 178 two"},
            {"text", "PT", "For paper: size of its text in points"},
            {"theme", "THEME", "light or dark"},
            {"parts", "PARTS", "timeline, memory or both, with a comma"},
            {"hatched", "", "For paper: kinds differ by hatch, too"},
            {"no-caption", "", "Leave it out"},
            {"no-legend", "", "Leave it out"}};
}

// name, suffix: literals, "png" and ".png".
inline FormatInfo pictureFormat(std::string_view name, std::string_view title, std::string_view suffix)
{
    return {.name = name, .title = title, .writes = "timeline and memory as a picture", .suffixes = {suffix}, .options = pictureOptions(), .oneStep = true, .compares = true, .drawn = true};
}

} // namespace stagewright
