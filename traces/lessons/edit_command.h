// Edit commands: the moves of hints, steps and solutions, as text.
//
//   load 1f1b               the library schedule of that name
//   move 3B0 after 3F0      (or before) within its rank
//   rank 3: 3F0 3B0 3F1     a new list for the rank
//   warmup 7,5,3,1          by rank, this many forwards before the first backward, then one of each in turn
//   flush 4                 GPipe in rounds of this many microbatches
//   split                   every B into I and W side by side; merge: the reverse
//   serial                  no ops issued together with the next
//   lag 0,1,2,3             by rank, each W this many backwards after its I
//   begin 3: 3F0 3B0        these ops first, in this order; the others after them, unchanged
//   swap 3F1 3B0
//   place 1F1 3             the tray's op at that position of its list (without a number: at the end)
//   group 1SEND_B0 1RECV_F1 posted together; the second follows the first
//   set comm=0.5            settings (traces/lessons/settings.h)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"
#include "traces/lessons/settings.h"

namespace stagewright::lessons {

// The learner's canvas. The schedule may lack ops (they wait in a tray) and may be invalid.
struct Canvas {
    Schedule schedule;
    Settings settings;
};

struct EditCommand {
    std::string verb;  // "move"
    std::string words; // "3B0 after 3F0"

    std::string text() const { return words.empty() ? verb : verb + " " + words; }
    std::string_view tool() const; // the tool of lessons::tools() that does the same by hand
};

// "move 3B0 after 3F0"; several are separated by ';'. Errors (Usage) name the word.
Result<std::vector<EditCommand>> parseEdits(std::string_view text);
Result<Canvas> applyEdit(const EditCommand& edit, Canvas canvas);
Result<Canvas> applyEdits(const std::vector<EditCommand>& edits, Canvas canvas);

// The canvas's order as it runs: passedThrough() its settings.
Result<Schedule> shownOn(const Canvas& canvas);

// A canvas with all ops in the tray; the placement is a loop of chunks × ranks stages.
Schedule emptySchedule(const Settings& settings);
// Ops of the schedule's shape that are not placed, by rank: F, then B (or I and W where it splits), by microbatch.
std::vector<std::vector<Op>> trayOf(const Schedule& schedule);
// Without the ops that can't run yet because an input is in the tray or never comes.
Schedule runnablePart(const Schedule& schedule);

} // namespace stagewright::lessons
