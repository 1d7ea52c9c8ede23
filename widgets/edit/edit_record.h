// EditRecord: everything needed to continue an edit after the window ended: the order, the original, the costs, and
// their source. One file, written by the autosave (docs/formats.md, "Autosaved edits"). Pure functions for any thread.
#pragma once

#include <string>
#include <string_view>

#include <QString>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct EditRecord {
    QString when;   // ISO 8601, UTC
    QString source; // name of what was edited
    QString file;   // the run's file, "sim:…" for in-memory runs
    qint64 run = 0;
    int changes = 0; // undoable changes
    Schedule original;
    Schedule edited;
    CostModel costs;
};

Result<std::string> writeEditRecord(const EditRecord& record);
// read(write(x)) == x, including names. Damaged or truncated: an error (Unreadable) that says what is missing.
Result<EditRecord> readEditRecord(std::string_view text);

} // namespace stagewright
