#include "app/cli/options/memory_limit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "traces/lessons/reports.h"

namespace stagewright {

namespace {

Result<double> plainNumber(const std::string& text)
{
    const auto number = numberOf(text);
    if (!number)
        return fail(ErrorCode::Usage, fmt::format("--memory-limit: '{}' is not a number", text), "write 4 or 64MB");
    return std::min(*number, 1e9);
}

// Every microbatch's activations at once, on the rank where that is most.
Bytes everythingHeld(const Schedule& schedule, const CostModel& costs)
{
    Bytes most = 0;
    for (const auto& row : schedule.order) {
        Bytes held = 0;
        for (const Op& op : row)
            if (isForward(op.kind) && static_cast<std::size_t>(op.stage) < costs.memory.size())
                for (int k = 0; k < op.count; ++k)
                    held += costs.memoryOf(schedule, op.stage, op.microbatch + k).activation;
        most = std::max(most, held);
    }
    return most;
}

// One microbatch-activation, its share of the model on a rank, where that is most.
Bytes oneHeld(const Schedule& schedule, const CostModel& costs)
{
    Bytes most = 0;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        const auto stages = schedule.placement.stagesOf(rank);
        double held = 0;
        for (const int stage : stages)
            held += static_cast<double>(costs.memory[static_cast<std::size_t>(stage)].activation);
        const double shares =
            static_cast<double>(schedule.ranks) * static_cast<double>(stages.size()) / schedule.stages;
        if (shares > 0) most = std::max(most, static_cast<Bytes>(std::llround(held / shares)));
    }
    return most;
}

} // namespace

Result<std::optional<Bytes>> readMemoryLimit(const std::string& text, const CostModel& costs)
{
    if (text.empty()) return std::optional<Bytes>();
    auto cap = parseActivations(text, costs);
    if (!cap) return tl::unexpected(std::move(cap.error()).with(fmt::format("--memory-limit {}", text)));
    return std::optional<Bytes>(*cap);
}

namespace {

// "60%", "4" or "64MB" of these costs.
Result<Bytes> oneLimit(const std::string& text, const Schedule& schedule, const CostModel& costs)
{
    if (!text.empty() && text.back() == '%') {
        const std::string share = text.substr(0, text.size() - 1);
        if (!isPlainNumber(share))
            return fail(ErrorCode::Usage, fmt::format("--memory-limit: '{}' is not a share", text),
                        "write 60%, 4 or 64MB");
        STAGEWRIGHT_TRY(auto number, plainNumber(share));
        return static_cast<Bytes>(std::floor(number / 100 * static_cast<double>(everythingHeld(schedule, costs))));
    }
    STAGEWRIGHT_TRY(auto read, readMemoryLimit(text, costs));
    if (!read) return fail(ErrorCode::Usage, "--memory-limit: a rank's limit is missing", "write 64MB,64MB,48MB,48MB");
    return *read;
}

} // namespace

Result<std::vector<Bytes>> checkMemoryLimit(const std::string& text, const Schedule& schedule, const CostModel& bytes)
{
    if (text.empty()) return std::vector<Bytes>();
    const auto items = split(text, ",");
    const auto pipeline = static_cast<std::size_t>(schedule.pipelineRanks());
    if (items.size() != 1 && items.size() != pipeline)
        return fail(ErrorCode::Usage, fmt::format("--memory-limit: {} limits for {} ranks", items.size(), pipeline),
                    "give one, or one for each rank of a pipeline");
    const bool counts = isPlainNumber(std::string(items.front()));
    const CostModel costs = counts ? CostModel::uniform(schedule) : bytes;
    std::vector<Bytes> limits;
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        STAGEWRIGHT_TRY(auto limit,
                        oneLimit(std::string(items[items.size() == 1 ? 0 : rank % pipeline]), schedule, costs));
        limits.push_back(limit);
    }
    const auto over = lessons::firstOverCap(schedule, costs, limits);
    if (!over) {
        for (Bytes& limit : limits)
            if (counts)
                limit = std::llround(static_cast<double>(limit) / static_cast<double>(costs.memoryUnit) *
                                     static_cast<double>(oneHeld(schedule, bytes)));
        return limits;
    }
    const Bytes limit = limits[static_cast<std::size_t>(over->rank)];
    const auto said = [&](double units) {
        return counts ? shortNumber(units) : formatBytes(static_cast<Bytes>(units));
    };
    return fail(ErrorCode::Invalid,
                fmt::format("{}: rank {}, op {} ({}): it would hold {} of activations, the limit is {}", schedule.name,
                            over->rank, opNumber(over->position), toText(over->op), said(over->held),
                            said(static_cast<double>(limit) / static_cast<double>(costs.memoryUnit))),
                "choose a schedule that holds less, --recompute, or a higher --memory-limit");
}

Result<std::vector<Bytes>> checkMemoryLimit(const std::string& text, const Schedule& schedule,
                                            const TrainingOptions& training)
{
    if (text.empty()) return std::vector<Bytes>();
    STAGEWRIGHT_TRY(auto slices, slicesOf(*training.workload, schedule.stages, training.stageLayers));
    CostModel bytes = CostModel::uniform(schedule);
    bytes.memoryUnit = 1;
    bytes.memory.clear();
    for (const StageSlice& slice : slices)
        bytes.memory.push_back(
            training.workload->memoryOf(slice, training.microbatchSize, training.optimizer,
                                        traitsOf(training.backend).layout(training.device.precision)));
    return checkMemoryLimit(text, schedule, bytes);
}

Result<std::vector<Bytes>> readRankMemory(const std::string& text, const Schedule& schedule, const char* option)
{
    std::vector<Bytes> given;
    if (text.empty()) return given;
    for (const std::string_view item : split(text, ",")) {
        auto bytes = parseBytes(std::string(item));
        if (!bytes) return tl::unexpected(std::move(bytes.error()).with(option));
        given.push_back(*bytes);
    }
    const auto ranks = static_cast<std::size_t>(schedule.ranks);
    const auto replicas = static_cast<std::size_t>(schedule.replicas);
    if (given.size() != 1 && given.size() != ranks && given.size() != replicas)
        return fail(ErrorCode::Usage, fmt::format("{}: {} sizes for {} ranks", option, given.size(), ranks),
                    "give one, or one for each rank or replica");
    std::vector<Bytes> out;
    for (std::size_t rank = 0; rank < ranks; ++rank)
        out.push_back(
            given[given.size() == ranks ? rank
                  : given.size() == 1   ? 0
                                        : static_cast<std::size_t>(schedule.replicaOf(static_cast<int>(rank)))]);
    return out;
}

} // namespace stagewright
