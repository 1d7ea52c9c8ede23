// OpRunner: how ops of a resource are executed that the engine does not know.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "schedules/model/kinds.h"

namespace stagewright {

class OpRunner {
public:
    virtual ~OpRunner() = default;
    // On the thread of the op's rank, between the recorded start and end of the op; ranks call at the same time. work:
    // what the kind's columns say that the op does on its stage, which may be nothing; to be called once at most, on
    // this thread. An exception ends the training, with the op's name.
    virtual void run(const Op& op, int rank, const std::function<void()>& work) = 0;
};

// An op of a resource that has no runner here and that the engine does not know is refused before a step.
using OpRunners = std::map<Resource, std::shared_ptr<OpRunner>>;

} // namespace stagewright
