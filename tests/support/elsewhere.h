// A seventeenth kind on a resource of its own, which exists in tests only: a full backward that another device of the
// rank runs, so that the rank goes on with its list.
#pragma once

#include "schedules/model/kinds.h"
#include "schedules/model/schedule.h"

namespace stagewright::test {

inline ExtraKind backwardElsewhere()
{
    KindTraits row = ruleOf(makeBackward(0, 0).kind);
    row.text = "AWAY";
    row.letter = "A";
    row.title = "backward elsewhere";
    row.plural = "backwards elsewhere";
    row.busy = false; // not of the rank's time
    row.notInPyTorch = "a backward elsewhere";
    return ExtraKind(row, {Lane::Compute, "away", LaneUse::Beside, "elsewhere", 5});
}

// The schedule with that kind in place of the backwards of its last stage.
inline Schedule withBackwardsOf(Schedule schedule, const ExtraKind& elsewhere)
{
    for (auto& row : schedule.order)
        for (Op& op : row)
            if (isFullBackward(op.kind) && op.stage + 1 == schedule.stages) op.kind = elsewhere.kind();
    return schedule;
}

} // namespace stagewright::test
