// A draft of rules (label_rules.h) for a job whose ranges are named like no known framework's.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "traces/import/name_patterns.h"
#include "traces/import/rule_preview.h"

namespace stagewright {

struct RuleDraft {
    std::string text;    // a file of rules with comments: what each matches, and the patterns that were not chosen
    RulePreview preview; // of it
};

// The patterns that look like passes, one for each kind of op, such that they make the most complete schedule;
// `patterns` as namePatterns() gives them. Empty if none looks like a forward. Compares at most 48 combinations.
std::optional<RuleDraft> suggestRules(const std::vector<ForeignRank>& ranks, const std::vector<NamePattern>& patterns,
                                      bool messages, const std::stop_token& stop = {});

struct RangeNames { // of a job
    std::vector<NamePattern> patterns;
    std::optional<RuleDraft> draft; // if asked for
};

// "## forward ## (24), ## backward ## (24), …": the patterns that look like passes, else the most frequent ones; "" for
// none.
std::string namesText(const std::vector<NamePattern>& patterns, std::size_t most = 6);

// The rule for a pattern as a line of a file: "F        fwd stage {stage} mb {microbatch}".
std::string ruleLine(std::string_view kind, std::string_view pattern);

} // namespace stagewright
