// Work that can wait, placed into a rank's idle time (PipeFisher, arXiv 2211.14133, and the packer that its authors
// released). Gaps are walked in time order, and in a gap the works in their order of priority until nothing more fits.
// What a step has no room for goes into the next one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

// What a rank does in each step: every interval in time order, with what of it fillers may wait for.
struct BusyOp {
    Nanos start = 0, end = 0;
    enum class Kind : std::uint8_t { Forward, Backward, Other } kind = Kind::Other;
    int of = 0; // the stage, of a rank that has several
};

// items pieces of one duration. Piece j may start once forwards (backwards) 0 … j of its stage in its first step have
// ended, or once every piece of the works in `needs` has.
struct FillerWork {
    std::string name;
    enum class After : std::uint8_t { Forwards, Backwards, Works } after = After::Forwards;
    int items = 1;
    Nanos duration = 0;
    std::vector<int> needs; // earlier works, by index
    int of = 0;
};

struct PlacedPiece {
    int step = 0, work = 0, item = 0;
    Nanos start = 0, end = 0; // in its step
};
// Why the rest of a gap stays idle.
struct IdleRest {
    int step = 0;
    Nanos start = 0, end = 0;
    enum class Why : std::uint8_t { NothingLeft, TooShort, InputMissing } why = Why::NothingLeft;
    int work = -1;     // the next piece's
    Nanos missing = 0; // TooShort: by so much
};
struct FilledGaps {
    int steps = 0; // that one round of all works takes
    std::vector<PlacedPiece> placed;
    std::vector<std::pair<int, int>> unplaced; // (work, item): longer than every gap, or behind one that is
    int leastSteps = 0;                        // no placement takes fewer: work ÷ idle time, rounded up
    std::vector<IdleRest> idle;
};

// cyclic: what is left after a step is first tried in all gaps so far, as if its inputs were those of the round before,
// and taken if all of it fits. A piece at s fits a gap until e where s + duration · 21/20 < e. Usage: ops that overlap
// or leave the step, works without items, needs of later works.
Result<FilledGaps> fillGaps(std::span<const BusyOp> busy, Nanos step, std::span<const FillerWork> works, bool cyclic);

} // namespace stagewright
