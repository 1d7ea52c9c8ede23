// The schedule as text (schedules/text/csv.h) beside the canvas: where an op is in the text, and reading typed text
// into the shape that is being edited. Pure functions for any thread.
#pragma once

#include <QString>
#include <QStringList>

#include "schedules/base/result.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// One line per rank, after a first line of settings if the schedule has any.
Result<QStringList> textLinesOf(const Schedule& schedule);

struct TextSpan {
    int line = -1; // from 0
    int column = 0;
    int length = 0;
    bool valid() const { return line >= 0 && length > 0; }
};
int settingsLines(const QString& firstLine); // 1 if it holds settings, else 0
// The op at, or just before, the column of a rank's line: its position in the list; −1: none.
int opAtColumn(const QString& line, int column);
TextSpan spanOfOp(const QString& line, int position); // line is 0 in the answer; invalid: no such op
TextSpan spanOfCell(const QString& line, int cell);   // cells from 1, including blank ones; as above

// The content of a typed text, or where it is wrong.
struct TypedOrder {
    Result<Schedule> schedule;
    TextSpan fault; // place of the error, if it names one
};
// Reads the text in the shape and the placement of `frame`: ops may be missing, none may be outside. A text that is a
// valid schedule of another shape is read as that.
TypedOrder readTypedOrder(const QString& text, const Schedule& frame);

} // namespace stagewright
