// A schedule that a test spells out as CSV.
#pragma once

#include <QtGlobal>

#include "schedules/text/csv.h"

namespace stagewright::test {

inline Schedule fromCsv(const char* text)
{
    auto schedule = readScheduleCsv(text);
    if (!schedule) qFatal("%s", schedule.error().message.c_str());
    return *schedule;
}

} // namespace stagewright::test
