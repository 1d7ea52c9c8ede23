// The arguments with which Megatron-LM runs a schedule, as a Bash array to be sourced by the job's script.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/text/megatron.h"
#include "traces/export/requested_order.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

// The layers of each stage, where the run was of a model; none: unknown.
std::vector<int> layersOf(const Run& run, const Schedule& schedule)
{
    auto layers = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    if (static_cast<int>(layers.size()) != schedule.stages) layers.clear();
    return layers;
}

struct Arguments {
    std::string text;
    int count = 0;
    void add(const std::string& name, const std::string& value)
    {
        text += fmt::format("    --{} {}\n", name, value);
        ++count;
    }
};

Arguments argumentsOf(const MegatronOrder& order, const Schedule& schedule, const ExportRequest& request)
{
    Arguments out;
    const std::vector<int> layers = layersOf(*request.run, schedule);
    const int ranks = schedule.pipelineRanks();
    out.add("pipeline-model-parallel-size", std::to_string(ranks));
    if (!layers.empty()) {
        out.add("num-layers", std::to_string(std::accumulate(layers.begin(), layers.end(), 0)));
        out.add("pipeline-model-parallel-layout", fmt::format("'{}'", megatronLayout(layers)));
    } else if (order.chunks > 1) {
        out.add("num-virtual-stages-per-pipeline-rank", std::to_string(order.chunks));
    }
    if (order.chunks > 1) out.add("microbatch-group-size-per-virtual-pipeline-stage", std::to_string(order.group));
    if (const auto samples = wholeOf<std::int64_t>(configured(*request.run, "microbatch_size"))) {
        out.add("micro-batch-size", std::to_string(*samples));
        out.add("global-batch-size", std::to_string(*samples * schedule.microbatches));
    }
    return out;
}

std::string scriptOf(const Schedule& schedule, const ExportRequest& request, const Arguments& arguments)
{
    const bool known = !layersOf(*request.run, schedule).empty();
    return fmt::format(
        "# {0} on {1} ranks with {2} microbatches for Megatron-LM; written by Stagewright from {3}.\n"
        "# In the job's script:\n"
        "#     source this file\n"
        "#     torchrun ... pretrain_gpt.py \"${{MEGATRON_PIPELINE[@]}}\" ...\n"
        "# The global batch is {2} microbatches times the data-parallel size; here it is of one replica.\n{4}"
        "MEGATRON_PIPELINE=(\n{5})\n",
        schedule.name.empty() ? "A schedule" : schedule.name, schedule.pipelineRanks(), schedule.microbatches,
        request.source,
        known ? ""
              : fmt::format("# The layers of the model are unknown here: a multiple of {}, or a layout "
                            "with as many stages.\n",
                            schedule.stages),
        arguments.text);
}

} // namespace

namespace formats {

namespace {

Result<WrittenFile> writeMegatron(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto schedule, requestedOrder(request));
    STAGEWRIGHT_TRY(const auto order, megatronOrder(schedule));
    const Arguments arguments = argumentsOf(order, schedule, request);
    STAGEWRIGHT_CHECK(writeFileAtomically(request.path, scriptOf(schedule, request, arguments)));
    return WrittenFile{{{"ranks", schedule.pipelineRanks()},
                        {"stages", schedule.stages},
                        {"microbatches", schedule.microbatches},
                        {"arguments", arguments.count}},
                       counted(arguments.count, "argument")};
}

Result<void> canBeMegatron(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto schedule, requestedOrder(request));
    STAGEWRIGHT_CHECK(megatronOrder(schedule));
    return {};
}

} // namespace

extern const FormatInfo megatron;
const FormatInfo megatron{.name = "megatron",
                          .title = "Megatron-LM",
                          .writes = "the arguments with which Megatron-LM runs the schedule",
                          .suffixes = {".sh"},
                          .order = true,
                          .write = writeMegatron,
                          .can = canBeMegatron};

} // namespace formats
} // namespace stagewright
