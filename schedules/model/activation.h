// ActivationRule: what one op adds to or frees from its rank's activation memory at its end.
//   F   + activation            (only `boundary` where the microbatch is recomputed later; nothing where its replica
//                               never goes back so far)
//   R   + activation − boundary
//   B   − activation            I  − freedAtInput            W  − (activation − freedAtInput)
// An op over several microbatches counts for each, at its own size; slices (by length) and halves take their part, so
// that the parts sum to the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// What an order that can't run is counted as: as it stands, or without the microbatches of a stage that are freed
// before they are held (their forward is behind their backward, or left out), so that memory never goes below zero.
enum class Unheld : std::uint8_t {
    Counted,
    LeftOut,
};

class ActivationRule {
public:
    // LeftOut: one pass over the ops more
    ActivationRule(const Schedule& schedule, const CostModel& costs, Unheld unheld = Unheld::Counted);

    // Change per microbatch that the op covers; k counts them from 0.
    Bytes deltaOf(const Op& op, int k = 0) const;

private:
    Bytes part(Bytes whole, const Op& op) const;
    std::size_t cellOf(const Op& op, int k) const
    {
        return static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(m_microbatches) +
               static_cast<std::size_t>(op.microbatch + k);
    }
    void setSizes(const Schedule& schedule);
    void leaveOutUnheld(const Schedule& schedule);
    void leaveOutCut(const Schedule& schedule);

    const CostModel& m_costs;
    int m_microbatches;
    std::vector<std::int64_t> m_sliceStarts; // in relative lengths, the total last; empty: no slices
    // by (stage, microbatch), where microbatches differ in size; empty: they do not
    std::vector<StageMemory> m_sized;
    std::vector<char> m_leftOut;    // by (stage, microbatch); empty: none
    std::vector<char> m_recomputed; // by (stage, microbatch); empty: nothing is
};

// Largest activations that a rank holds, by rank, in the order of its list.
std::vector<Bytes> peaksOf(const Schedule& schedule, const ActivationRule& rule);

} // namespace stagewright
