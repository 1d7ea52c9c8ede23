// A document as JSON: every value at its place (traces/report/document/document.h). Whole nanoseconds and bytes stay
// integers; rank shares are numbers. What is unknown is null, never absent.
#pragma once

#include "app/cli/text/json.h"
#include "traces/report/document/document.h"

namespace stagewright {

Json timeJson(Nanos nanos, const Units& units);
Json memoryJson(Bytes bytes, const Units& units);

// Given away, the values of large tables are not copied.
Json documentJson(document::Document document);
void addJson(Json& object, document::Section section, const Units& units);

} // namespace stagewright
