// ActivationRule: what one op adds to or frees from its rank's activation memory at its end.
//   F   + activation            (only `boundary` where the microbatch is recomputed later)
//   R   + activation − boundary
//   B   − activation            I  − freedAtInput            W  − (activation − freedAtInput)
// An op over several microbatches counts for each; slices (by length) and halves take their part, so that the parts sum
// to the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/cost_model.h"
#include "schedules/schedule.h"

namespace stagewright {

class ActivationRule
{
public:
    ActivationRule(const Schedule& schedule, const CostModel& costs);

    // Change per microbatch that the op covers; k counts them from 0.
    Bytes deltaOf(const Op& op, int k = 0) const;

private:
    Bytes part(Bytes whole, const Op& op) const;

    const CostModel& m_costs;
    int m_microbatches;
    std::vector<std::int64_t> m_sliceStarts; // in relative lengths, the total last; empty: no slices
    std::vector<char> m_recomputed; // by (stage, microbatch); empty: nothing is
};

} // namespace stagewright
