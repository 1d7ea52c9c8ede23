// A rank that finds the order of its ops while it runs (schedules/execute/ready_order.h), by the rule that simulations
// use.
//
// On the wall clock an input is there when its message can be taken. On the virtual clock threads take turns on fewer
// cores than there are ranks, so that what has come by now says nothing: ranks choose at their virtual times, each once
// no message can come any more that would be there by then. So they run one after the other where their times differ.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/training/execution_plan.h"
#include "schedules/execute/ready_chooser.h"

namespace stagewright {

struct TrainingOptions;
struct TrainingState;

// The virtual times of all ranks of a step. Any thread.
class ReadyClock {
public:
    explicit ReadyClock(int ranks);
    void restart();
    void interrupt(); // every wait ends, now and later
    // The message is there for the rank from then on; it can be taken already.
    void sent(int toRank, const MessageKey& key, Nanos at);
    // Sleeps until the rank can choose at `next()`, which takes what has come since it was last asked; none: it waits
    // for others. The rank is busy from the moment that is returned, which none after interrupt().
    std::optional<Nanos> awaitTurn(int rank, const std::function<void(const MessageKey&, Nanos)>& take,
                                   const std::function<std::optional<Nanos>()>& next);
    void leave(int rank); // its list is done

private:
    struct Rank {
        Nanos at = 0; // nothing that it sends is there by then
        std::vector<std::pair<MessageKey, Nanos>> came;
    };
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<Rank> m_ranks;
    bool m_interrupted = false;
};

// What all ranks of a training share.
struct ReadyTraining {
    ReadyTraining(const Schedule& schedule, const ReadyOrder& order, CostModel costs);
    ReadyOrder order;
    CostModel costs; // what microbatches hold, which limits count
    ReadyClock clock;
};

// On its rank's thread.
class ReadyRank {
public:
    ReadyRank(TrainingState& state, int rank);

    void restart(); // a step starts
    bool done() const { return m_chooser.done(); }
    // The place in the plan of the op (of a pair the first) that runs next, whose inputs are there; sleeps until there
    // is one. None: stopped.
    std::optional<std::size_t> next();
    // The op has run, and took this much CPU time; what it made is sent behind that.
    void ran(std::size_t position, Nanos cpu);
    // To another rank, once it can be taken there.
    void sent(const PlannedMessage& message, Bytes bytes);
    void leave();

private:
    std::size_t groupOf(std::size_t position) const; // the first of its pair
    void supplyOwn(std::size_t position);
    std::optional<std::size_t> nextByMessages();

    TrainingState& m_state;
    int m_rank;
    const RankPlan& m_plan;
    bool m_virtual;
    ReadyChooser m_chooser;
    std::vector<std::vector<std::size_t>> m_users; // by place: ops of this rank that need it
    std::vector<std::pair<MessageKey, std::size_t>> m_expected;
    std::vector<MessageKey> m_keys; // that have not come
    std::vector<std::size_t> m_for; // by key: its op
    Nanos m_now = 0;                // virtual
};

// What can't be run in such an order. Usage.
Result<void> checkTrainedOrder(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                               bool onDevice, bool virtualClock);

} // namespace stagewright
