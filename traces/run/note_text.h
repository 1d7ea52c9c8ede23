// The place of a note, in the unit of its run's times.
#pragma once

#include "traces/run/notes.h"

namespace stagewright {

// As placeText(note); ranges in units of cost ("4 to 7 units") if `unit`, which is Timeline::timeUnit(), is not 1.
std::string placeText(const Note& note, Nanos unit);

} // namespace stagewright
