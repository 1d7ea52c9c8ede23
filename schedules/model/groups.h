// Ops that are issued together. A position in Schedule::paired joins an op with the next one: two compute ops are an
// overlapped pair, messages that follow each other so are a group of any number, all posted at the same moment.
#pragma once

#include <cstddef>
#include <functional>

#include "schedules/model/schedule.h"

namespace stagewright {

// from `position` to the end of its group; 1: alone, or the last
std::size_t groupSize(const Schedule& schedule, int rank, std::size_t position);
// where its group starts: `position` itself where it is alone
std::size_t groupBegin(const Schedule& schedule, int rank, std::size_t position);

// The schedule without the ops that `dropped` names; it may ask several times for one. What is left of a group stays
// together.
Schedule without(const Schedule& schedule, const std::function<bool(const Op&)>& dropped);

} // namespace stagewright
