// How a rank's work is distinguished: its stages in words, and the tint of its ops.
#pragma once

#include <set>
#include <vector>

#include <QString>

#include "schedules/model/schedule.h"

namespace stagewright {

QString stagesText(const std::set<int>& stages); // "stage 0", "stages 0, 4"; at most four numbers

// Distinguishes the chunks of a rank, and the chains of a schedule with copies of its stages.
class RankTints {
public:
    // schedule: may be null, must outlive this
    RankTints(const Schedule* schedule, int rank, const std::set<int>& stages);
    int operator()(const Op& op) const;

private:
    const Schedule* m_schedule;
    bool m_copies = false;
    int m_rank = 0;
    std::vector<int> m_byStage;
};

} // namespace stagewright
