// EditRecord: what is needed to go on with an edit after the window ended: the order, the original, the costs, and where it came
// from. One file, written by the autosave (docs/formats.md, "Autosaved edits"). Pure functions for any thread.
#pragma once

#include <string>
#include <string_view>

#include <QString>

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "schedules/schedule.h"

namespace stagewright {

struct EditRecord {
    QString when;   // ISO 8601, UTC
    QString source; // what was edited, as the window names it
    QString file;   // of the run, "sim:…" where it was in memory
    qint64 run = 0;
    int changes = 0; // that could be undone
    Schedule original;
    Schedule edited;
    CostModel costs;
};

Result<std::string> writeEditRecord(const EditRecord& record);
// read(write(x)) == x, names included. Damaged or truncated: an error (Unreadable) that says what is missing.
Result<EditRecord> readEditRecord(std::string_view text);

} // namespace stagewright
