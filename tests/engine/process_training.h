// A training whose ranks are in several processes, which are threads of the test that share memory only as messages.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/training.h"
#include "support/memory_processes.h"
#include "training_rig.h"

namespace stagewright::test {

struct ProcessFaults {
    std::string leader;              // why it has no training; empty: it has one
    std::vector<std::string> served; // of each process whose training could not be made or was stopped
};

// The first process leads: `lead` is its caller. The others serve it.
inline ProcessFaults trainInProcesses(int processes, const Schedule& schedule, const TrainingOptions& options,
                                      const FakeOptions& fake, const std::function<void(Training&)>& lead)
{
    ProcessFaults faults;
    std::mutex mutex;
    const auto served = [&](const Error& error) {
        const std::lock_guard lock(mutex);
        faults.served.push_back(error.message);
    };
    inMemoryProcesses(processes, [&](const std::shared_ptr<ProcessJob>& job) {
        TrainingOptions own = options;
        own.job = job;
        auto training = fakeTraining(schedule, own, fake);
        if (!training) {
            if (job->index() == 0) faults.leader = training.error().message;
            served(training.error());
            return;
        }
        if (job->index() == 0) {
            lead(**training);
            return;
        }
        std::vector<std::unique_ptr<Training>> trainings;
        trainings.push_back(std::move(*training));
        if (auto ended = serveTrainings(trainings, *job); !ended) served(ended.error());
    });
    return faults;
}

} // namespace stagewright::test
