#include "traces/export/torchtitan.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/text/pytorch.h"
#include "traces/export/requested_order.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"

namespace stagewright {

namespace {

std::string settings(const Schedule& schedule, const std::string& builder)
{
    return fmt::format(R"(# Into the job's configuration file, or as --parallelism.NAME VALUE on its command line.
[parallelism]
pipeline_parallel_degree = {0}
pipeline_parallel_schedule = "{1}"           # where stages are built; the order comes from the CSV
pipeline_parallel_schedule_csv = "schedule.csv"  # a path that every rank can read
pipeline_parallel_microbatch_size = 1
# pipeline_parallel_layers_per_stage = N       # so that (layers + first less + last less) / N, rounded up, is {2}

[training]
local_batch_size = {3}                         # {3} × pipeline_parallel_microbatch_size

[profiling]
enable_profiling = true                        # the traces come back: stagewright import
)",
                       schedule.ranks, builder, schedule.stages, schedule.microbatches);
}

// TorchTitan takes configurations as Python functions since 2026: this is one over the user's.
std::string configuration(const Schedule& schedule, const std::string& builder)
{
    return fmt::format(
        R"py("""A configuration of TorchTitan that runs this schedule: another one with what it needs set.

    BASE=llama3:llama3_debugmodel torchrun ... -m torchtitan.train --module stagewright_job --config run

BASE is MODULE:FUNCTION, as --module and --config take them; STEPS the number of steps, of which the last is traced [20].
"""
import importlib
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def base():
    module, colon, function = os.environ.get("BASE", "").partition(":")
    if not colon:
        raise SystemExit("stagewright_job: name the job's configuration in BASE, as MODULE:FUNCTION")
    places = [f"torchtitan.{{kind}}.{{module}}.config_registry" for kind in ("models", "experiments")]
    for place in (*places, f"{{module}}.config_registry", module):
        try:
            found = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(error.name + ".")):
                continue  # the next place; what a module itself lacks is said
            raise
        if not hasattr(found, function):
            raise SystemExit(f"stagewright_job: {{place}} has no function {{function}}")
        return getattr(found, function)()
    raise SystemExit(f"stagewright_job: there is no module {{module}}")


def run():
    config = base()
    parallelism = config.parallelism
    parallelism.pipeline_parallel_degree = {0}
    parallelism.num_pp_microbatches = {2}
    parallelism.pipeline_parallel_schedule = "{1}"  # where stages are built; the order comes from the CSV
    parallelism.pipeline_parallel_schedule_csv = os.path.join(HERE, "schedule.csv")
    # (layers + first less + last less) / layers_per_stage, rounded up, must be {3} stages
    config.training.disable_cuda_graphs = True  # pipelines refuse them
    config.training.steps = int(os.environ.get("STEPS", "20"))
    config.profiler.enable_profiling = True
    config.profiler.profile_freq = config.training.steps
    config.profiler.save_traces_folder = "profile_traces"
    config.dump_folder = os.path.join(HERE, "outputs")
    return config
)py",
        schedule.ranks, builder, schedule.microbatches, schedule.stages);
}

// The command that the README describes; `record --engine torchtitan` runs it, too.
std::string script(const Schedule& schedule, const std::string& builder)
{
    return fmt::format(R"sh(#!/bin/sh
# Starts TorchTitan with this schedule and leaves its traces in outputs/, here:
#
#     ./run.sh MODULE:FUNCTION [more options of TorchTitan]     a configuration function, TorchTitan since 2026
#     ./run.sh JOB.toml [more options of TorchTitan]            a TOML file, TorchTitan before
#
# PYTHON is the interpreter that has TorchTitan [python3], RANKS the number of processes [{0}; times the job's other degrees],
# STEPS the number of steps, of which the last is traced [20].
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || {{ echo "run.sh: name the job's configuration, MODULE:FUNCTION or a TOML file" >&2; exit 2; }}
config=$1
shift
steps=${{STEPS:-20}}
case $config in
*.toml) ;;
*:*)
    export BASE="$config" STEPS="$steps" PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}"
    exec "${{PYTHON:-python3}}" -m torch.distributed.run --standalone --nproc-per-node "${{RANKS:-{0}}}" -m torchtitan.train \
        --module stagewright_job --config run "$@"
    ;;
*) echo "run.sh: $config: neither MODULE:FUNCTION nor a file *.toml" >&2; exit 2 ;;
esac
exec "${{PYTHON:-python3}}" -m torch.distributed.run --standalone --nproc-per-node "${{RANKS:-{0}}}" -m torchtitan.train \
    --job.config_file "$config" --job.dump_folder "$here/outputs" --training.steps "$steps" \
    --parallelism.pipeline_parallel_degree {0} --parallelism.pipeline_parallel_schedule {1} \
    --parallelism.pipeline_parallel_schedule_csv "$here/schedule.csv" \
    --parallelism.pipeline_parallel_microbatch_size 1 --training.local_batch_size {2} \
    --profiling.enable_profiling --profiling.save_traces_folder profile_traces --profiling.profile_freq "$steps" "$@"
)sh",
                       schedule.ranks, builder, schedule.microbatches);
}

std::string stageTable(const Schedule& schedule)
{
    std::string table = "| rank | stages |\n|---|---|\n";
    for (int r = 0; r < schedule.ranks; ++r) {
        std::string stages;
        for (const int s : schedule.placement.stagesOf(r)) stages += fmt::format("{}{}", stages.empty() ? "" : ", ", s);
        table += fmt::format("| {} | {} |\n", r, stages);
    }
    return table;
}

std::string readme(const Schedule& schedule, const std::string& builder, const std::string& source)
{
    const std::string known = recognise(schedule);
    std::string text =
        fmt::format("# {}\n\n{} ranks, {} stages, {} microbatches{}; written by Stagewright from {}.\n\n",
                    schedule.name.empty() ? "Schedule" : schedule.name, schedule.ranks, schedule.stages,
                    schedule.microbatches, known.empty() ? "" : fmt::format("; the library's {}", known), source);
    text += fmt::format("**For PyTorch {} and later**{}. ", toText(torchNeeded(schedule)),
                        overlapsOps(schedule) ? " (2.9 brought overlapped pairs)" : "");
    text += "TorchTitan takes configurations as Python functions since 2026 (`stagewright_job.py`), and TOML files "
            "before (`settings.toml`). None of this was verified on the job itself.\n\n";
    text += R"(| file | what it is |
|---|---|
| `schedule.csv` | the order, a line per rank: what `pipeline_parallel_schedule_csv` and `_load_csv` take ("compute_only") |
| `schedule_comms.csv` | the same with PyTorch's sends and receives, for `_load_csv(…, format="compute_comms")`; TorchTitan does not read it |
| `stagewright_job.py` | a configuration function over yours with these settings: `--module stagewright_job --config run` |
| `settings.toml` | the same to paste into a TOML file |
| `run.sh` | starts the job: `./run.sh MODULE:FUNCTION` or `./run.sh JOB.toml`; `stagewright record --engine torchtitan --config …` does the same and imports the traces |

## What the job must meet

)";
    text += fmt::format("- **{} pipeline ranks**: `pipeline_parallel_degree = {}`; the job needs this many devices "
                        "times the other degrees (data, tensor, context parallel).\n",
                        schedule.ranks, schedule.ranks);
    text += fmt::format("- **{} stages**, {} on each rank: the model's layers, with "
                        "`pipeline_parallel_first_stage_less_layers` and `…_last_stage_less_layers`\n"
                        "  added, divided by `pipeline_parallel_layers_per_stage` and rounded up, must give {}. Or "
                        "name the modules: `module_fqns_per_model_part`.\n",
                        schedule.stages, schedule.stages / schedule.ranks, schedule.stages);
    text += fmt::format("- **{0} microbatches**: `num_pp_microbatches = {0}`; before 2026 "
                        "`local_batch_size / pipeline_parallel_microbatch_size` must be {0}.\n",
                        schedule.microbatches);
    text += fmt::format("- **Stages on the CSV's ranks**: `pipeline_parallel_schedule = \"{}\"` places them so. The "
                        "table below must agree with the job's log\n"
                        "  (\"PP rank … is building stage_idx …\").\n",
                        builder);
    if (schedule.splitsBackward())
        text += "- **The backward is split** into input and weight gradient. PyTorch does this through autograd: leave "
                "activation checkpointing off, as both\n"
                "  halves would recompute, and try without `compile` first.\n";
    else
        text += "- The backward is whole, so activation checkpointing can be used.\n";
    if (overlapsOps(schedule))
        text += "- **Overlapped pairs** (`OVERLAP_F_B`) need PyTorch 2.9 or later (the first with DualPipeV); without "
                "a function registered for\n"
                "  them they run one after the other.\n";
    text += "- Gradients are summed over microbatches; the optimizer steps once, after the last op. Every microbatch "
            "has the same shape.\n";
    text += "- TorchTitan uses the CSV unchanged: it checks the order of compute ops, not the job's memory. "
            "`stagewright simulate` and `plan` check memory.\n";
    text += "\n## Placement of stages\n\n" + stageTable(schedule);
    text += "\n## Import the job's trace\n\n```\nstagewright import outputs/profile_traces/iteration_20 -o "
            "job.stagewright\nstagewright report job.stagewright\n```\n";
    return text;
}

} // namespace

Result<std::vector<std::pair<std::string, std::string>>> torchTitanFolder(const Schedule& schedule,
                                                                          const std::string& source)
{
    STAGEWRIGHT_TRY(auto forms, pytorchForms(schedule));
    STAGEWRIGHT_TRY(const auto builder, torchTitanSchedule(schedule));
    return std::vector<std::pair<std::string, std::string>>{{"schedule.csv", std::move(forms.computeOnly)},
                                                            {"schedule_comms.csv", std::move(forms.withMessages)},
                                                            {"stagewright_job.py", configuration(schedule, builder)},
                                                            {"settings.toml", settings(schedule, builder)},
                                                            {"run.sh", script(schedule, builder)},
                                                            {"README.md", readme(schedule, builder, source)}};
}

Result<void> writeTorchTitanFolder(const std::vector<std::pair<std::string, std::string>>& files,
                                   const std::string& folder)
{
    return writeFolderAtomically(folder, [&](const std::string& part) -> Result<void> {
        for (const auto& [name, text] : files) {
            const std::string path = fmt::format("{}/{}", part, name);
            if (auto done = writeFileAtomically(path, text); !done) return done;
            std::error_code ignored; // where it can't be made one, sh runs it
            if (name.ends_with(".sh"))
                std::filesystem::permissions(path,
                                             std::filesystem::perms::owner_exec | std::filesystem::perms::group_exec,
                                             std::filesystem::perm_options::add, ignored);
        }
        return {};
    });
}

namespace formats {

namespace {

Result<WrittenFile> writeTorchTitan(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto schedule, requestedOrder(request));
    STAGEWRIGHT_TRY(const auto files, torchTitanFolder(schedule, request.source));
    STAGEWRIGHT_CHECK(writeTorchTitanFolder(files, request.path));
    return WrittenFile{{{"ranks", schedule.ranks},
                        {"stages", schedule.stages},
                        {"microbatches", schedule.microbatches},
                        {"files", static_cast<std::int64_t>(files.size())}},
                       counted(static_cast<long long>(files.size()), "file") + "; for PyTorch " +
                           toText(torchNeeded(schedule)) + " and later"};
}

Result<void> can(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto schedule, requestedOrder(request));
    const auto files = torchTitanFolder(schedule, request.source);
    return files ? Result<void>() : tl::unexpected(files.error());
}

} // namespace

extern const FormatInfo torchtitan;
const FormatInfo torchtitan{.name = "torchtitan",
                            .title = "TorchTitan",
                            .writes = "a folder with the schedule, settings and constraints of a job",
                            .folder = true,
                            .order = true,
                            .write = writeTorchTitan,
                            .can = can};

} // namespace formats

} // namespace stagewright
