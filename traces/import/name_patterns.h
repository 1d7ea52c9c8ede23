// Names of ranges with their numbers taken out, counted: the names for which rules (label_rules.h) can be written, and
// what they look like.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/base/units.h"
#include "traces/foreign/foreign_trace.h"

namespace stagewright {

enum class NumberMeaning : std::uint8_t {
    Any, // `*`
    Microbatch,
    Stage,
    Chunk,
    Slice,
    Step,
};

struct NamePiece {
    std::string text; // as it is; of a number "", if it varies
    bool number = false;
    NumberMeaning meaning = NumberMeaning::Any; // a guess by the word before it and by its values
    int least = 0;                              // of the names seen
    int most = 0;
};

struct NamePattern {
    std::vector<NamePiece> pieces;
    std::string example;
    std::string kind; // what it looks like, a rule's first word: "F", "B", "I", "W", "R", "OPT", "step"; "" for nothing
    std::int64_t ranges = 0;
    int ranks = 0;      // that have some
    Nanos total = 0;    // sum of durations
    Nanos shortest = 0; // of one range
    Nanos longest = 0;
};

// As in a rule: "fwd stage {stage} mb {microbatch-1}", special characters behind a backslash. A meaning that comes
// twice is `*` the second time.
std::string patternText(const std::vector<NamePiece>& pieces);

// By number of ranges, those that look like passes first; at most 2,000. A rank's host ranges count, its device's where
// it has none. Names are without a profiler's suffixes, and without its marks of steps. O(ranges + names).
std::vector<NamePattern> namePatterns(const std::vector<ForeignRank>& ranks);

} // namespace stagewright
