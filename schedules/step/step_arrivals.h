// StepArrivals: when what the ops of a compute-only schedule need is there, where its ops end as given.
#pragma once

#include <span>
#include <vector>

#include "schedules/messages/messages.h"
#include "schedules/step/step_plan.h"

namespace stagewright {

class StepArrivals {
public:
    // What it is given must outlive it. ends: by op.
    StepArrivals(const Schedule& schedule, const OpIndex& index, const StepRules& rules, std::span<const Nanos> ends);

    struct Way { // what is made on another rank is on its way from `begin`, behind others on its link
        Nanos begin = 0;
        Nanos arrival = 0;
    };
    // The way of what `op`, number `to`, of a rank takes from op `from` of this stage.
    Way between(std::uint32_t from, std::uint32_t to, const Op& op, int rank, int stage) const;
    // Calls visit(producer, need, way) for each op that the rank's op at this position needs something of.
    template <typename Visit>
    void eachInput(int rank, std::size_t position, Visit&& visit) const
    {
        const Op& op = m_schedule.order[static_cast<std::size_t>(rank)][position];
        m_index.eachInput(op, [&](std::uint32_t from, const Need& need, int stage) {
            if (from != noOp) visit(from, need, between(from, m_index.idOf(rank, position), op, rank, stage));
        });
    }

private:
    struct Flight {
        std::uint32_t from = noOp;
        std::uint32_t to = noOp;
        Way way;
    };
    const Schedule& m_schedule;
    const OpIndex& m_index;
    const StepRules& m_rules;
    std::span<const Nanos> m_ends;
    std::vector<Flight> m_flights; // by producer; empty: messages don't wait for each other
};

} // namespace stagewright
