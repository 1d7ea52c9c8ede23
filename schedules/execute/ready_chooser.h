// What one rank runs next where its list does not fix the order (ready_order.h): the one rule that simulations and ranks
// that train share. Its user says which inputs there are and from when on. Ops are named by their place in the rank's
// list, an overlapped pair by that of its first op.
#pragma once

#include <optional>
#include <vector>

#include "schedules/execute/ready_order.h"
#include "schedules/model/activation.h"

namespace stagewright {

class ReadyChooser {
public:
    // Keeps references to both. costs: what microbatches hold, which the order's limit counts.
    ReadyChooser(const Schedule& schedule, const CostModel& costs, const ReadyOrder& order, int rank);

    // Once for all steps, before restart(): one more input that the op waits for.
    void expect(std::size_t position) { ++m_inputs[position]; }
    void restart(); // a step starts
    bool done() const { return m_left.empty(); }
    // One of its inputs is there from then on. Whether it was the last.
    bool supply(std::size_t position, Nanos from);
    Nanos readyFrom(std::size_t position) const { return m_ready[position]; } // once all are there
    // What the rank, which is free, runs now; none: nothing yet.
    std::optional<std::size_t> choose(Nanos now) const;
    // When it can first choose, `now` at the earliest, as far as inputs are known; none: it waits for others.
    std::optional<Nanos> nextChoice(Nanos now) const;
    void started(std::size_t position); // what choose() said
    void ended(std::size_t position);

private:
    const Op& opAt(std::size_t position) const { return m_ops[position]; }
    std::size_t opsAt(std::size_t position) const { return m_schedule.isPaired(m_rank, position) ? 2 : 1; }
    Bytes changeAt(std::size_t position) const; // of activations
    Bytes changeOf(const Op& op) const;
    Nanos readyAt(std::size_t position) const;
    std::optional<std::size_t> byArrival(Nanos now) const;
    std::optional<std::size_t> byHint(Nanos now) const;

    const Schedule& m_schedule;
    const std::vector<Op>& m_ops;
    ReadyOrder m_order;
    ActivationRule m_activations;
    int m_rank;
    bool m_lastRank;
    Bytes m_most = 0;          // that the rank may hold
    std::vector<int> m_inputs; // by place: of all steps
    std::vector<int> m_missing;
    std::vector<Nanos> m_ready;      // when the last input that there is was there
    std::vector<std::size_t> m_left; // of its list
    Bytes m_held = 0;
    int m_started = 0;                  // forwards
    std::optional<bool> m_backwardNext; // by arrival: what follows whatever has come
};

// That the order can be found for these lists. Usage.
Result<void> checkReadyOrder(const Schedule& schedule, const ReadyOrder& order);

} // namespace stagewright
