// How lists group the library: by what distinguishes a schedule, read from the schedule itself.
#pragma once

#include <array>

#include <QString>

#include "schedules/library/registry.h"

namespace stagewright {

enum class ScheduleGroup {
    OneStage,
    SeveralStages,
    SplitBackward,
    TwoChains,
    Slices,
    Recompute,
    Stale,
};
inline constexpr std::size_t scheduleGroupCount = 7;

QString titleOf(ScheduleGroup group);            // "Zero bubble: backward in two parts"
ScheduleGroup groupOf(const ScheduleInfo& info); // computed once at a small shape, then cached. GUI thread only
// The title, the name and every alias contain each word of `text`, whatever its case.
bool matches(const ScheduleInfo& info, const QString& text);
// A schedule's name without its parameters.
QString words(std::string_view text);

} // namespace stagewright
