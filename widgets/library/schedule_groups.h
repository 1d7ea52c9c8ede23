// How the library is divided in lists: by what sets a schedule apart, read off the schedule itself.
#pragma once

#include <array>

#include <QString>

#include "schedules/registry.h"

namespace stagewright {

enum class ScheduleGroup { OneStage, SeveralStages, SplitBackward, TwoChains, Slices, Recompute, Stale };
inline constexpr std::size_t scheduleGroupCount = 7;

QString titleOf(ScheduleGroup group); // "Zero bubble: backward in two parts"
ScheduleGroup groupOf(const ScheduleInfo& info); // made once at a small shape, then remembered. GUI thread only
// The title, the name and every alias contain each word of `text`, whatever its case.
bool matches(const ScheduleInfo& info, const QString& text);
// The part of a text that stands for a schedule's name: without parameters.
QString words(std::string_view text);

} // namespace stagewright
