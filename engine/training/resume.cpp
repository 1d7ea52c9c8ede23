#include "engine/training/resume.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/transport/bytes.h"
#include "schedules/base/hashing.h"

namespace stagewright {

namespace {

std::int64_t samplesOf(const Schedule& schedule, const TrainingOptions& options)
{
    if (options.replicaSamples.empty()) return std::int64_t{schedule.microbatches} * options.microbatchSize;
    std::int64_t samples = 0;
    for (int j = 0; j < schedule.microbatches; ++j)
        samples +=
            options.replicaSamples[static_cast<std::size_t>(schedule.replicaOf(schedule.placement.rankOf(0, j)))];
    return samples;
}

// What a user changes to have the same.
std::string_view optionOf(std::string_view fact)
{
    if (fact == "model") return "--model";
    if (fact == "data" || fact == "data_hash") return "--data";
    if (fact == "sampling") return "a version of the program that draws samples alike";
    if (fact == "seed") return "--seed";
    if (fact == "optimizer") return "--optimizer, --lr, --momentum and --weight-decay";
    if (fact == "weights") return "a schedule with the same rule for weights";
    if (fact == "clip_norm") return "--clip";
    if (fact == "cut") return "--cut";
    return "--microbatches, --microbatch-size and --replicas, which make the samples of a step";
}

const std::string* valueOf(const SavedFacts& facts, std::string_view key)
{
    const auto found = std::find_if(facts.begin(), facts.end(), [key](const auto& fact) { return fact.first == key; });
    return found == facts.end() ? nullptr : &found->second;
}

} // namespace

SavedFacts lastingFacts(const Schedule& schedule, const TrainingOptions& options)
{
    const OptimizerConfig& optimizer = options.optimizer;
    const bool synchronous = schedule.weights == WeightRule::Synchronous;
    SavedFacts facts;
    facts.emplace_back("model", toText(*options.workload));
    facts.emplace_back("data", options.workload->dataName());
    facts.emplace_back("sampling", "by sample"); // not by microbatch, as before
    facts.emplace_back("seed", fmt::format("{}", options.seed));
    facts.emplace_back("optimizer",
                       optimizer.kind == OptimizerKind::Kfac
                           ? fmt::format("kfac, learning rate {}, momentum {}, weight decay {}, damping {}, decay of "
                                         "factors {}, clip of a product {}, refreshed every {} steps",
                                         optimizer.learningRate, optimizer.momentum, optimizer.weightDecay,
                                         optimizer.damping, optimizer.factorDecay, optimizer.klClip, optimizer.refresh)
                       : optimizer.kind == OptimizerKind::AdamW
                           ? fmt::format("adamw, learning rate {}, beta {} {}, epsilon {}, weight decay {}",
                                         optimizer.learningRate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
                                         optimizer.weightDecay)
                           : fmt::format("sgd, learning rate {}, momentum {}, weight decay {}", optimizer.learningRate,
                                         optimizer.momentum, optimizer.weightDecay));
    facts.emplace_back("warmup_of_learning_rate", fmt::format("{}", optimizer.warmupSteps));
    if (!synchronous) facts.emplace_back("weights", std::string(toText(schedule.weights)));
    facts.emplace_back("clip_norm",
                       optimizer.clipNorm > 0 && synchronous ? fmt::format("{}", optimizer.clipNorm) : "none");
    if (!options.cuts.empty()) facts.emplace_back("cut", fmt::format("{}", fmt::join(options.cuts, ",")));
    facts.emplace_back("samples_per_step", fmt::format("{}", samplesOf(schedule, options)));
    return facts;
}

Result<void> checkResume(const Schedule& schedule, const TrainingOptions& options)
{
    if (!options.resume) return {};
    SavedFacts own = lastingFacts(schedule, options);
    own.emplace_back("data_hash", dataHash(*options.workload));
    std::vector<std::string> keys;
    for (const auto& [key, value] : own) keys.push_back(key);
    for (const char* key : {"weights", "cut"}) // which may be there on one side only
        if (valueOf(own, key) == nullptr) keys.emplace_back(key);
    for (const std::string& key : keys) {
        const std::string* there = options.resume->fact(key);
        const std::string* here = valueOf(own, key);
        const std::string none = key == "weights" ? std::string(toText(WeightRule::Synchronous)) : "none";
        const std::string& was = there != nullptr ? *there : none;
        const std::string& is = here != nullptr ? *here : none;
        if (was == is) continue;
        return fail(ErrorCode::Usage,
                    fmt::format("{} is of a training with {} '{}', and this one has '{}'", options.resume->path(), key,
                                was, is),
                    fmt::format("give the same {}, or start without --resume", optionOf(key)));
    }
    return {};
}

std::string dataHash(const Workload& workload)
{
    const std::span<const std::uint8_t> data = workload.data();
    return fmt::format("{:016x}", hashText({reinterpret_cast<const char*>(data.data()), data.size()}));
}

void saveStage(const StageRun& run, const StateSink& sink) { run.model->saveState(run.versions.delayed(), sink); }

void resumeStage(StageRun& run, const SavedFile& saved)
{
    run.versions.resume(saved.updates(), saved.has(StateKind::Delayed));
    run.model->loadState(run.versions.delayed(), [&saved](const StatePart& part, std::span<float> numbers) {
        return saved.read(part, numbers);
    });
}

std::vector<std::byte> savedBytes(const StageRun& run)
{
    ByteWriter bytes;
    saveStage(run, [&bytes](const StatePart& part, std::span<const float> numbers) {
        bytes.put<std::uint8_t>(1);
        bytes.text(part.parameter);
        bytes.list(std::span<const int>(part.shape));
        bytes.put(part.kind);
        bytes.put(part.first);
        bytes.list(numbers);
    });
    bytes.put<std::uint8_t>(0);
    return bytes.take();
}

bool takeSaved(std::span<const std::byte> received, SavedTraining& saved)
{
    ByteReader bytes(received);
    while (bytes.get<std::uint8_t>() != 0) {
        const std::string parameter = bytes.text();
        const std::vector<int> shape = bytes.list<int>();
        const auto kind = bytes.get<StateKind>();
        const auto first = bytes.get<std::int64_t>();
        const std::vector<float> numbers = bytes.list<float>();
        if (!bytes.good()) return false;
        saved.add({parameter, shape, kind, first}, numbers);
    }
    return bytes.good();
}

} // namespace stagewright
