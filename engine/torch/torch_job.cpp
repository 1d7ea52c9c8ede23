#include "engine/torch/torch_job.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/built_in_text.h"
#include "engine/torch/initial_weights.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Result<void> writeFile(const fs::path& path, std::string_view text)
{
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", path.string(), std::strerror(errno)),
                    "choose another folder with --job");
    return {};
}

std::string_view textOf(std::span<const std::uint8_t> bytes)
{
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Json optimizerJson(const OptimizerConfig& optimizer)
{
    return {{"kind", optimizer.kind == OptimizerKind::Sgd ? "sgd" : "adamw"},
            {"learning_rate", optimizer.learningRate},
            {"warmup_steps", optimizer.warmupSteps},
            {"beta1", optimizer.beta1},
            {"beta2", optimizer.beta2},
            {"epsilon", optimizer.epsilon},
            {"momentum", optimizer.momentum},
            {"weight_decay", optimizer.weightDecay},
            {"clip_norm", optimizer.clipNorm}};
}

// The own model: its shape, slices, weights and data.
Result<void> addOwnModel(const TorchJob& job, const fs::path& folder, Json& object)
{
    const TrainingOptions& training = job.training;
    const Workload& workload = *training.workload;
    if (!workload.runsInTorch())
        return fail(ErrorCode::Usage, fmt::format("{} has no form for PyTorch", workload.name()),
                    "give another --model, or leave --engine out");
    STAGEWRIGHT_TRY(auto slices, slicesOf(workload, job.schedule.stages, training.stageLayers));
    Json parts = Json::array();
    for (const StageSlice& slice : slices)
        parts.push_back({{"first_layer", slice.firstLayer}, {"layers", slice.layerCount}});
    if (workload.name() != allWorkloads().front().name) object["workload"] = workload.name();
    for (const auto& [name, number] : workload.shape()) object["model"][name] = number;
    object["slices"] = std::move(parts);
    object["weights"] = "weights.safetensors";
    object["data"] = "data.bin";
    if (auto written = writeInitialWeights(workload, slices, training.seed, (folder / "weights.safetensors").string());
        !written)
        return written;
    return writeFile(folder / "data.bin", textOf(workload.data()));
}

} // namespace

std::string torchDriverText() { return std::string(textOf(torchDriver())); }

Result<std::pair<std::string, std::string>> parseModelFile(const std::string& text)
{
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
        return fail(ErrorCode::Usage, fmt::format("--model-file {}: it is not FILE:FUNCTION", text),
                    "write for example --model-file decoder.py:build");
    std::string file = text.substr(0, colon);
    if (!fs::is_regular_file(file))
        return fail(ErrorCode::Usage, fmt::format("--model-file {}: there is no such file", file),
                    "give the path of a Python file");
    return std::pair(std::move(file), text.substr(colon + 1));
}

Result<void> writeTorchJob(const TorchJob& job, const TorchVersion& version, const std::string& folderName)
{
    const fs::path folder = folderName;
    STAGEWRIGHT_TRY(auto schedule, torchSchedule(job.schedule, job.lowering, version));
    Json object = {{"format", 1},
                   {"schedule_name", job.schedule.name},
                   {"schedule", "schedule.csv"},
                   {"form", schedule.form},
                   {"backend", traitsOf(job.training.backend).torchTransport},
                   {"steps", job.steps},
                   {"warmup", job.warmup},
                   {"traced_steps", job.tracedSteps},
                   {"steps_without_profiler", job.stepsWithoutProfiler},
                   {"microbatch_size", job.training.microbatchSize},
                   {"seed", job.training.seed},
                   {"timeout", job.training.timeoutSeconds},
                   {"optimizer", optimizerJson(job.training.optimizer)}};
    if (job.modelFile.empty()) {
        if (auto added = addOwnModel(job, folder, object); !added) return added;
    } else {
        std::error_code error;
        fs::copy_file(job.modelFile, folder / "model.py", fs::copy_options::overwrite_existing, error);
        if (error)
            return fail(ErrorCode::Failed, fmt::format("file {}: {}", (folder / "model.py").string(), error.message()));
        object["model_file"] = {{"path", "model.py"},
                                {"function", job.modelFunction},
                                {"origin", fs::absolute(job.modelFile).lexically_normal().string()}};
    }
    if (auto written = writeFile(folder / "driver.py", textOf(torchDriver())); !written) return written;
    if (auto written = writeFile(folder / "schedule.csv", schedule.csv); !written) return written;
    return writeFile(folder / "job.json", object.dump(2) + "\n");
}

std::vector<std::pair<std::string, std::string>> configurationOf(const TorchJob& job)
{
    const TrainingOptions& training = job.training;
    const OptimizerConfig& optimizer = training.optimizer;
    std::vector<std::pair<std::string, std::string>> pairs;
    const auto add = [&pairs](const char* key, std::string value) { pairs.emplace_back(key, std::move(value)); };
    add("schedule", job.schedule.name);
    add("ranks", std::to_string(job.schedule.ranks));
    add("stages", std::to_string(job.schedule.stages));
    add("microbatches", std::to_string(job.schedule.microbatches));
    if (job.modelFile.empty()) {
        add("model", toText(*training.workload));
        std::string layers;
        if (const auto slices = slicesOf(*training.workload, job.schedule.stages, training.stageLayers))
            for (const StageSlice& slice : *slices)
                layers += fmt::format("{}{}", layers.empty() ? "" : ",", slice.layerCount);
        add("stage_layers", layers);
        add("data", training.workload->dataName());
        add("sampling", "by sample"); // as the engine's
    } else {
        add("model_file", fmt::format("{}:{}", fs::path(job.modelFile).filename().string(), job.modelFunction));
    }
    add("microbatch_size", std::to_string(training.microbatchSize));
    add("seed", std::to_string(training.seed));
    add("optimizer",
        optimizer.kind == OptimizerKind::AdamW
            ? fmt::format("adamw, learning rate {}, beta {} {}, epsilon {}, weight decay {}", optimizer.learningRate,
                          optimizer.beta1, optimizer.beta2, optimizer.epsilon, optimizer.weightDecay)
            : fmt::format("sgd, learning rate {}, momentum {}, weight decay {}", optimizer.learningRate,
                          optimizer.momentum, optimizer.weightDecay));
    add("warmup_of_learning_rate", std::to_string(optimizer.warmupSteps));
    add("clip_norm", optimizer.clipNorm > 0 ? fmt::format("{}", optimizer.clipNorm) : "none");
    add("backend", training.backend);
    add("engine", "torch");
    add("unprofiled_steps", std::to_string(job.warmup + job.steps - job.tracedSteps));
    return pairs;
}

TorchRankCommand torchRankCommand(const std::string& python, const TorchRankPlace& place)
{
    const bool together = place.master.empty();
    TorchRankCommand command;
    command.arguments = {python, "-u", "driver.py", "."};
    command.variables = {{"RANK", std::to_string(place.rank)},
                         {"LOCAL_RANK", std::to_string(place.localRank)},
                         {"WORLD_SIZE", std::to_string(place.ranks)},
                         {"LOCAL_WORLD_SIZE", std::to_string(place.localRanks)},
                         {"MASTER_ADDR", together ? "127.0.0.1" : place.master},
                         {"MASTER_PORT", std::to_string(place.port)},
                         {"USE_LIBUV", "0"},       // some builds lack it
                         {"OMP_NUM_THREADS", "1"}, // a rank computes on one thread, as the own engine's
                         {"PYTHONUNBUFFERED", "1"},
                         {"STAGEWRIGHT_CONTROL", "stdin"}};
    // else gloo takes the one that the computer's name leads to
    if (together && std::getenv("GLOO_SOCKET_IFNAME") == nullptr)
        command.variables.emplace_back("GLOO_SOCKET_IFNAME", "lo");
    return command;
}

} // namespace stagewright
