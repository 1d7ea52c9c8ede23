// The schedule as text (schedules/csv.h) beside the canvas: where an op stands in it, and a typed text read into the shape that is
// being edited. Pure functions for any thread.
#pragma once

#include <QString>
#include <QStringList>

#include "schedules/base/result.h"
#include "schedules/edit_ops.h"
#include "schedules/schedule.h"

namespace stagewright {

// One line per rank, behind a first line of settings where the schedule has any.
Result<QStringList> textLinesOf(const Schedule& schedule);

struct TextSpan {
    int line = -1; // from 0
    int column = 0;
    int length = 0;
    bool valid() const { return line >= 0 && length > 0; }
};
int settingsLines(const QString& firstLine); // 1 where it holds settings, else 0
// The op that the column of a rank's line is in or directly behind: its position in the list; −1: none.
int opAtColumn(const QString& line, int column);
TextSpan spanOfOp(const QString& line, int position); // line is 0 in the answer; invalid: no such op
TextSpan spanOfCell(const QString& line, int cell);   // cells from 1, blank ones count; likewise

// What a typed text says, or where it is wrong.
struct TypedOrder {
    Result<Schedule> schedule;
    TextSpan fault; // of the error, where it names a place
};
// The text in the shape and the placement of `frame`: ops may be missing, none may lie outside. A text that is a valid schedule of
// another shape is taken as that.
TypedOrder readTypedOrder(const QString& text, const Schedule& frame);

} // namespace stagewright
