// ProcessCommunicator: the ranks of a training in several processes. Every process makes the same training; the first one
// leads: its caller steps it, and ranks elsewhere report each step to it. A thread in every process keeps messages
// going, says twice a second that it lives and what its ranks do, and notices that another process has ended or fallen
// silent.
#pragma once

#include <memory>
#include <stop_token>

#include "engine/training/rank_communicator.h"
#include "engine/transport/process_job.h"
#include "engine/transport/processes_transport.h"

namespace stagewright {

class ProcessCommunicator : public RankCommunicator {
public:
    // What a process that serves is to do next.
    struct Request {
        enum class Kind {
            Step,
            Weights,
            State,
            Clock,
            Leave,
        };
        Kind kind = Kind::Step;
        StepOrder step;
        int stage = 0;
        int rank = 0;
    };
    // Takes the transport's needs and those of the ranks over, once the state is whole.
    virtual void begin() = 0;
    // Where this process serves: what the leader wants, if it has said so; after a step of its ranks, for weights or
    // all that outlives a step, or what its clock says.
    virtual std::optional<Request> request() = 0;
    virtual void report() = 0;
    virtual void sendWeights(const Request& request) = 0;
    virtual void sendState(const Request& request) = 0;
    virtual void sendClock() = 0;
    // Leader: the training is over. All: the thread ends.
    virtual void end() = 0;
    virtual ProcessJob& job() = 0;
    virtual void wake() = 0; // the thread, earlier than it would
};

// Usage where the ranks can't be spread evenly.
Result<RanksByProcess> ranksByProcess(int ranks, const ProcessJob& job);
Result<std::unique_ptr<ProcessCommunicator>>
makeProcessCommunicator(TrainingState& state, std::shared_ptr<ProcessJob> job, const RanksByProcess& where);

} // namespace stagewright
