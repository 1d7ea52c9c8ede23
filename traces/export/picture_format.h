// What the picture formats share: stagewright-ui draws them.
#pragma once

#include "traces/format/format_registry.h"

namespace stagewright {

inline std::vector<FormatOption> pictureOptions()
{
    return {{"style", "STYLE", "screen, or paper for print"},
            {"width", "MM", "Width of a picture for paper, in mm: 84 for one column, 178 for two"},
            {"text", "PT", "Text size of a picture for paper, in points"},
            {"theme", "THEME", "light or dark"},
            {"parts", "PARTS", "timeline, memory or both, separated by a comma"},
            {"hatched", "", "for paper: also hatch the kinds"},
            {"no-caption", "", "omit it"},
            {"no-legend", "", "omit it"}};
}

// name, suffix: literals, "png" and ".png".
inline FormatInfo pictureFormat(std::string_view name, std::string_view title, std::string_view suffix)
{
    return {.name = name,
            .title = title,
            .writes = "timeline and memory as a picture",
            .suffixes = {suffix},
            .options = pictureOptions(),
            .oneStep = true,
            .compares = true,
            .drawn = true};
}

} // namespace stagewright
