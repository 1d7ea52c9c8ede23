// RankCommunicator: what the ranks of one training share besides messages: they meet, know each other's norms, stop together;
// and what ranks elsewhere recorded comes to the one who steps the training. Threads share memory (thread_communicator.cpp);
// processes send bytes (process_communicator.h). One per training.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/parameter_view.h"
#include "schedules/base/result.h"
#include "schedules/execute/flight_record.h"

namespace stagewright {

struct SavedTraining;
struct TrainingState;

// A part of the global norm: of a stage, summed up on a rank.
struct SumPlace {
    int stage = 0;
    int rank = 0;
};
struct StageSum {
    int place = 0;  // in TrainingState::sums
    double sum = 0; // of the squares of its gradients
};

struct StepOrder {
    int step = 0;
    bool keepGradients = false;
    bool timesLayers = false;
};

// The weights of a copy of a stage, as they were at a moment.
struct StageWeights {
    struct Tensor {
        std::string name;
        std::vector<int> shape;
        std::vector<float> value;
        std::vector<float> gradient;
    };
    std::vector<Tensor> tensors;
    std::vector<ParameterView> views(); // into it
};

class RankCommunicator {
public:
    virtual ~RankCommunicator() = default;
    virtual bool isHere(int rank) const = 0;    // in this process
    virtual bool leads() const { return true; } // this process's caller steps the training; the others serve

    // On a rank's thread. All ranks meet; `last` runs once in each process before its ranks go on, in the leading one
    // before any rank does. sums: of this rank's places; all: afterwards those of all, by place. False: stopped.
    virtual bool meet(int rank, std::span<const StageSum> sums, std::vector<double>* all,
                      const std::function<void()>& last) = 0;

    // The ranks have made their stages, or an error stopped them here: the same answer in every process.
    virtual Result<void> agree(std::optional<Error> error) = 0;

    // On the thread that steps the training, which leads. order() lets ranks elsewhere run a step; rested() waits until
    // they have, or for atMost; takeOver() puts what they recorded into the state.
    virtual void order(const StepOrder& /*order*/) {}
    virtual bool rested(Nanos /*atMost*/) { return true; }
    virtual Result<void> takeOver() { return {}; }
    // how far times of ranks elsewhere may be wrong, in this step; 0: one clock
    virtual Nanos clockBand() const { return 0; }
    // of a rank elsewhere
    virtual Result<StageWeights> weightsOf(int /*stage*/, int /*rank*/) { return StageWeights(); }
    virtual Result<void> addSavedOf(int /*stage*/, int /*rank*/, SavedTraining& /*saved*/) { return {}; } // likewise

    // Any thread. Ranks elsewhere stop for this reason, too.
    virtual void stop(const Error& /*error*/) {}
    // "process 4711 on host a gives no sign of life"; empty: it does, or is here
    virtual std::string silence(int /*rank*/) { return {}; }
    virtual std::optional<Error> lost() { return std::nullopt; } // that a process of other ranks has ended
    // A rank's newest messages and ops; of one that does not answer nothing (RankRecord::present).
    virtual RankRecord flightOf(int rank) = 0;
    virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; } // for the run's environment
};

} // namespace stagewright
