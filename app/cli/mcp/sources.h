// Where the figures of a report come from, as an assistant quotes them: unit, SQL, spans, and why one is unknown.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "schedules/base/result.h"

namespace stagewright {

// The rows of a SELECT over the file of the run; an empty list where it fails.
using AskRows = std::function<nlohmann::ordered_json(const std::string& query)>;

// A report as answered: `sources`, the SQL of its figures; the spans of its gaps and of the ops behind them; `unknown`
// by reason, in place of null.
void addSources(nlohmann::ordered_json& report, const AskRows& rows);
// The members without null, and reasons once each: what a simulation has, too.
void groupUnknown(nlohmann::ordered_json& report);

// These figures of it alone: key, value, unit, SQL, or why it is unknown. A key is written as --require takes it:
// "by_rank[2].idle_by_cause.order", "loss[-1]". Usage: there is no such key, with those that there are.
Result<nlohmann::ordered_json> askedFigures(const nlohmann::ordered_json& report, const nlohmann::ordered_json& keys,
                                            const AskRows& rows);

} // namespace stagewright
