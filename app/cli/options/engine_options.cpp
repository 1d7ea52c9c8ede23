#include "app/cli/options/engine_options.h"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "app/cli/option_set.h"

namespace stagewright {

namespace {

struct NotHonoured {
    const char* option;
    std::string_view value; // only this one; "": any
    std::string_view why;
};
constexpr auto notUnderTorch = std::to_array<NotHonoured>({
    {"--clock", "virtual", "PyTorch's ranks run on the wall clock"},
    {"--perturb", "", "PyTorch's ranks can't be disturbed"},
    {"--link", "", "PyTorch's links can't be emulated"},
    {"--comm", "", "PyTorch's links can't be emulated"},
    {"--sends", "", "PyTorch's own transport sends the messages"},
    {"--channels", "", "PyTorch's own transport sends the messages"},
    {"--receives", "", "PyTorch's own transport receives the messages"},
    {"--recompute", "", "PyTorch recomputes through activation checkpointing, in a model of your own"},
    {"--recompute-layers", "", "PyTorch recomputes through activation checkpointing, in a model of your own"},
    {"--hoist", "", "PyTorch recomputes through activation checkpointing, in a model of your own"},
    {"--products", "", "PyTorch chooses its own matrix library"},
    {"--precision", "", "the model trains in fp32 under PyTorch"},
    {"--sharing", "", "every rank has its own process and GPU"},
    {"--transport", "", "PyTorch uses gloo or NCCL, as --backend says"},
    {"--device", "", "rank r uses GPU r; CUDA_VISIBLE_DEVICES chooses them"},
    {"--no-trace", "", "the run is made from PyTorch's traces"},
    {"--keep-trace", "", "the job folder keeps PyTorch's traces"},
    {"--processes", "", "every rank is a process anyway"},
    {"--ranks-per-process", "", "every rank is a process of its own"},
    {"--replicas", "", "its pipelining trains one pipeline"},
    {"--shard", "", "its pipelining trains one pipeline"},
    {"--gather", "", "its pipelining trains one pipeline"},
    {"--reduce", "", "its pipelining trains one pipeline"},
    {"--replica-batch", "", "its pipelining trains one pipeline"},
    {"--speed", "", "PyTorch's ranks can't be disturbed"},
    {"--rank-memory", "", "PyTorch's memory can't be limited so"},
    {"--keep-warmup", "", "PyTorch's warm-up steps are not traced"},
});
constexpr const char* inItsConfig = "set it in the job's configuration";
constexpr auto notUnderTitan = std::to_array<NotHonoured>({
    {"--model", "", inItsConfig},
    {"--model-file", "", inItsConfig},
    {"--data", "", inItsConfig},
    {"--microbatch-size", "", inItsConfig},
    {"--stage-layers", "", inItsConfig},
    {"--optimizer", "", inItsConfig},
    {"--lr", "", inItsConfig},
    {"--momentum", "", inItsConfig},
    {"--weight-decay", "", inItsConfig},
    {"--clip", "", inItsConfig},
    {"--seed", "", inItsConfig},
    {"--backend", "", inItsConfig},
    {"--memory-limit", "", "TorchTitan's memory depends on its own model"},
    {"--lower", "", "TorchTitan inserts the messages by PyTorch's rule"},
    {"--warmup", "", "its profiler traces the last step"},
});
constexpr auto onlyUnderTorch = std::to_array<const char*>({"--python", "--model-file"});
constexpr auto notWithModelFile = std::to_array<const char*>({"--model", "--data", "--stage-layers"});

} // namespace

void addEngineOptions(OptionSet& verb, EngineOptions& options)
{
    verb.value("--engine", &options.engine,
               "own; torch: PyTorch's pipelining, one process a rank; torchtitan: a TorchTitan job of yours [own]")
        .form("NAME")
        .check(oneOf({"own", "torch", "torchtitan"}));
    verb.value("--config", &options.config, "The job's TOML file, for --engine torchtitan").form("FILE");
    verb.value("--python", &options.python,
               "Interpreter with PyTorch, for --engine torch [$VIRTUAL_ENV/bin/python3, else python3 on PATH]")
        .form("FILE");
    verb.value("--job", &options.job,
               "A new folder for the steps as a stream, events (with --progress jsonl) and a file 'stop' that ends it; "
               "under PyTorch for its job, logs and traces [beside the run file]")
        .form("FOLDER");
    verb.value("--model-file", &options.modelFile,
               "Your own PyTorch model: a Python file and the function in it that gives modules, example and loss")
        .form("FILE:FUNCTION");
    verb.watch(options.given);
}

Result<void> engineHonours(const EngineOptions& options)
{
    const auto given = [&options](const char* name) { return options.given.contains(name); };
    if (given("--config") != options.titan())
        return options.titan()
                   ? fail(ErrorCode::Usage, "--engine torchtitan needs the job's configuration",
                          "name its TOML file with --config")
                   : fail(ErrorCode::Usage,
                          fmt::format("--config belongs to TorchTitan, and the engine is {}", options.engine),
                          "add --engine torchtitan");
    if (!options.torch() && !options.titan()) {
        for (const char* name : onlyUnderTorch)
            if (given(name))
                return fail(ErrorCode::Usage,
                            fmt::format("{} belongs to PyTorch, and the engine is {}", name, options.engine),
                            "add --engine torch");
        return {};
    }
    std::vector<NotHonoured> refused(notUnderTorch.begin(), notUnderTorch.end());
    if (options.titan()) refused.insert(refused.begin(), notUnderTitan.begin(), notUnderTitan.end());
    for (const NotHonoured& one : refused) {
        if (!given(one.option)) continue;
        if (!one.value.empty() && options.given.at(one.option) != one.value) continue;
        const std::string name = one.value.empty() ? one.option : fmt::format("{} {}", one.option, one.value);
        return fail(ErrorCode::Usage, fmt::format("--engine {} can't honour {}: {}", options.engine, name, one.why),
                    fmt::format("leave out {}, or use --engine own", one.option));
    }
    if (!options.modelFile.empty())
        for (const char* name : notWithModelFile)
            if (given(name))
                return fail(ErrorCode::Usage, fmt::format("{} and --model-file can't be combined", name),
                            "the file's function makes the model and its data");
    return {};
}

Result<std::optional<Lowering>> givenLowering(const std::string& text)
{
    if (text.empty()) return std::nullopt;
    auto rule = parseLowering(text);
    if (!rule) return tl::unexpected(std::move(rule.error()).with("--lower"));
    return *rule;
}

} // namespace stagewright
