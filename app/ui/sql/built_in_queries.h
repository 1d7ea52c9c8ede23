// Built-in SQL queries (docs/guide/working.md). ":run" and ":step" mean the run and step shown.
#pragma once

#include <vector>

#include "traces/run/notes.h"

namespace stagewright {

std::vector<SavedQuery> builtInQueries();
// Replaces :run and :step outside of quotes and comments.
std::string withShown(const std::string& sql, std::int64_t run, int step);

} // namespace stagewright
