// What rules (label_rules.h) make of named ranges: the matches of each rule, the ranges without a counterpart, and the
// schedule it would be. The command line (import --suggest-rules) and the window's mapper show the same.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/import/rebuild_schedule.h"

namespace stagewright {

struct RuleMatches { // of one line
    int line = 0;    // from 1
    std::string kind;
    std::string pattern;
    std::string example; // the first name that matches; "" if none does
    std::int64_t ranges = 0;
    int ranks = 0;
};

struct RulePreview {
    std::vector<RuleMatches> rules; // in order of the lines
    std::int64_t matched = 0;       // ranges that are ops
    std::int64_t orphans = 0;       // of them without their counterpart: a backward without its forward …
    std::int64_t nested = 0;        // ranges within other ops, skipped
    std::vector<std::string> remarks;
    RebuiltSchedule rebuilt;
    int ranks = 0;
    int steps = 0;
    bool copies = false; // the ranks are copies of a model

    bool whole() const { return rebuilt.schedule != nullptr && orphans == 0; }
};

// Only names and ranges of `ranks` are needed; where they have device work with launches, it says whether ranks are
// stages or copies. `messages`: the ranks send to each other. An Error (Usage) names the line that is wrong.
Result<RulePreview> previewRules(const std::vector<ForeignRank>& ranks, std::string_view rules, bool messages,
                                 const std::stop_token& stop = {});

// "1F1B on 4 ranks: 4 stages, 8 microbatches, 2 steps" in the library's names, or "no schedule: …" with the reason.
std::string toText(const RulePreview& preview);

} // namespace stagewright
