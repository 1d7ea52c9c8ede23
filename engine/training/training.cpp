#include "engine/training/training.h"

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/device/machine.h"
#include "engine/training/device_connection.h"
#include "engine/training/process_communicator.h"
#include "engine/training/rank_training.h"
#include "engine/training/resume.h"
#include "engine/training/sharing_rules.h"
#include "engine/training/thread_communicator.h"
#include "engine/training/training_state.h"
#include "engine/transport/bytes.h"
#include "engine/transport/threads_transport.h"
#include "profiler/cupti/gpu_tracer.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/messages/messages.h"
#include "schedules/model/mesh.h"

namespace stagewright {

std::string_view toText(ClockMode mode)
{
    switch (mode) {
    case ClockMode::Auto: return "auto";
    case ClockMode::Wall: return "wall";
    case ClockMode::Virtual: return "virtual";
    }
    return "auto";
}

namespace {

// Into how many pieces the gradients that a rank steps of a stage are cut, at most.
int steppedPieces(const Schedule& schedule, const TrainingOptions& options, const StageSlice& slice)
{
    const auto members = static_cast<int>(holdersOf(schedule.placement, slice.stage).size());
    const FlatState flat = flatStateOf(options.sharding, options.workload->layerElements(slice), members);
    const std::int64_t most = std::max<std::int64_t>(1, options.sharding.bucket / static_cast<Bytes>(sizeof(float)));
    const std::int64_t stepped = options.sharding.level == ShardLevel::None ? flat.padded : flat.largestOwned(members);
    return static_cast<int>(std::max<std::int64_t>(1, (stepped + most - 1) / most));
}

// What is not there for ranks in processes is refused by name.
Result<void> canSpread(const TrainingOptions& options, ClockMode clock, bool onDevice)
{
    const auto refused = [](const std::string& what) {
        return fail(ErrorCode::Usage, what + " is for ranks that are threads of one process",
                    "leave it out, or run the ranks as threads");
    };
    if (onDevice && clock == ClockMode::Virtual)
        return fail(ErrorCode::Usage, "ranks in several processes can't take turns on a GPU",
                    "give --sharing queues, which runs them side by side, use as many GPUs as ranks, or run the ranks "
                    "as threads");
    if (onDevice && options.device.sharing == DeviceSharing::Partitions) return refused("--sharing partitions");
    if (options.channels.oneStream) return refused("--channels one");
    return {};
}

// A sender whose messages are buffered queues them itself (rank_loop.cpp).
Channels transportLimits(Channels channels)
{
    if (channels.sends == SendMode::Buffered) channels.perDirection = 0;
    return channels;
}

// The transport and the communicator of a training whose ranks are in several processes.
Result<ProcessCommunicator*> joinProcesses(TrainingState& state, const RanksByProcess& where)
{
    STAGEWRIGHT_TRY(std::unique_ptr<ProcessCommunicator> made,
                    makeProcessCommunicator(state, state.options.job, where));
    ProcessCommunicator* communicator = made.get();
    state.communicator = std::move(made);
    std::vector<ExpectedMessage> expected;
    for (int rank = 0; rank < where.ranks && !state.lowered; ++rank)
        if (communicator->isHere(rank))
            for (const PlannedMessage& input : state.plan.ranks[static_cast<std::size_t>(rank)].inputs)
                expected.push_back({input.key, input.rank, rank});
    for (int rank = 0; rank < where.ranks && state.lowered; ++rank) // in the order of the sends
        for (const Op& op : state.lowered->order[static_cast<std::size_t>(rank)]) {
            if (!isSend(op.kind)) continue;
            const Op receive = receiveOf(op);
            const int to = state.schedule->placement.rankOf(receive.stage, receive.microbatch);
            MessageKey key = messageOf(receive);
            for (int k = 0; k < op.count && communicator->isHere(to); ++k, ++key.microbatch)
                expected.push_back({key, rank, to});
        }
    STAGEWRIGHT_TRY(auto transport,
                    makeProcessesTransport(state.options.job, where, state.schedule->placement, state.checked->cells(),
                                           expected, transportLimits(state.options.channels), state.options.links,
                                           std::move(state.transport), [communicator] { communicator->wake(); }));
    if (connectsDevices(state)) {
        STAGEWRIGHT_CHECK(connectDevices(state, where, std::move(transport)));
    } else {
        state.transport = std::move(transport);
    }
    return communicator;
}

Result<std::unique_ptr<Training>> makeTraining(const std::shared_ptr<const CheckedSchedule>& checked,
                                               const TrainingOptions& options, std::unique_ptr<Backend> backend)
{
    const bool rendezvous = options.channels.sends == SendMode::Rendezvous;
    const Schedule& schedule = checked->compute();
    const std::shared_ptr<const CheckedSchedule> alone[] = {checked};
    STAGEWRIGHT_TRY(CyclePlans cycle,
                    planCycle(options.cycle.empty() ? std::span(alone) : std::span(options.cycle), options));
    const ExecutionPlan& plan = cycle.plans.front();
    STAGEWRIGHT_TRY(std::vector<StageSlice> slices, slicesOf(*options.workload, schedule.stages, options.stageLayers));
    if (!options.replicaSamples.empty() && options.replicaSamples.size() != static_cast<std::size_t>(schedule.replicas))
        return fail(
            ErrorCode::Usage,
            fmt::format("{} sizes of microbatches for {} replicas", options.replicaSamples.size(), schedule.replicas),
            "give one for each replica");
    std::vector<int> sizes = options.replicaSamples;
    if (sizes.empty()) sizes = {options.microbatchSize};
    for (const int size : sizes) {
        if (size < 1) return fail(ErrorCode::Usage, fmt::format("microbatch size {} is less than 1", size));
        if (plan.halves && size % 2 != 0)
            return fail(ErrorCode::Usage,
                        fmt::format("microbatch size {} is odd, but the schedule halves microbatches", size),
                        "use an even one");
    }
    STAGEWRIGHT_TRY(std::vector<int> tokens, sliceTokens(schedule, options.workload->positions()));
    if (!(options.timeoutSeconds > 0)) {
        return fail(ErrorCode::Usage, fmt::format("a time-out of {} s is not positive", options.timeoutSeconds));
    }
    std::vector<StageUse> held; // every copy
    if (!options.rankMemory.empty() && options.rankMemory.size() != static_cast<std::size_t>(schedule.ranks))
        return fail(ErrorCode::Usage,
                    fmt::format("{} memory caps for {} ranks", options.rankMemory.size(), schedule.ranks),
                    "give one for each rank");
    if (!options.hostMemory.empty() && options.hostMemory.size() != static_cast<std::size_t>(schedule.ranks))
        return fail(ErrorCode::Usage,
                    fmt::format("{} caps of host memory for {} ranks", options.hostMemory.size(), schedule.ranks),
                    "give one for each rank");
    STAGEWRIGHT_CHECK(checkSharing(schedule, plan, options));
    STAGEWRIGHT_CHECK(checkCuts(schedule, plan, options, slices));
    STAGEWRIGHT_CHECK(checkFactors(schedule, plan, options, backend->capabilities()));
    STAGEWRIGHT_CHECK(checkResume(schedule, options));
    std::vector<char> known(slices.size(), 0); // sharded weights: of all copies together as much as of one
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        for (const int stage : plan.ranks[static_cast<std::size_t>(rank)].stages) {
            if (options.sharding.level == ShardLevel::Weights &&
                std::exchange(known[static_cast<std::size_t>(stage)], 1) != 0)
                continue;
            const StageSlice& slice = slices[static_cast<std::size_t>(stage)];
            held.push_back(useOf(*options.workload, *backend, {slice, 1, options.seed, options.optimizer}));
        }
    }
    STAGEWRIGHT_CHECK(backend->checkRoom(held));
    STAGEWRIGHT_CHECK(options.workload->check(backend->capabilities(), plan.shared));
    RanksByProcess where{schedule.ranks, schedule.ranks};
    if (options.job) {
        STAGEWRIGHT_TRY(RanksByProcess spread, ranksByProcess(schedule.ranks, *options.job));
        where = spread;
    }
    ClockMode clock = options.clock;
    const bool wallOnly = rendezvous || options.channels.limited();
    if (clock == ClockMode::Virtual && wallOnly) {
        return fail(ErrorCode::Usage,
                    rendezvous                   ? "the virtual clock does not know rendezvous sends"
                    : options.channels.oneStream ? "the virtual clock does not know communication streams"
                                                 : "the virtual clock does not know limited channels",
                    "train on the wall clock");
    }
    if (clock == ClockMode::Auto && wallOnly) clock = ClockMode::Wall;
    if (clock == ClockMode::Auto && backend->sideBySide(schedule.ranks) > 0)
        clock = schedule.ranks <= backend->sideBySide(schedule.ranks) ? ClockMode::Wall : ClockMode::Virtual;
    if (clock == ClockMode::Auto) { // watching the cores takes a while: only where they may suffice
        const bool enough = schedule.ranks <= usableCores() && schedule.ranks <= idleCores();
        clock = enough ? ClockMode::Wall : ClockMode::Virtual;
    }
    // null also where the rank is elsewhere
    std::vector<std::unique_ptr<Memory>> memories(static_cast<std::size_t>(schedule.ranks));
    // there an op has the device for itself
    bool onDevice = false;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        if (options.job && where.processOf(rank) != options.job->index()) continue;
        Result<std::unique_ptr<Memory>> memory = backend->openMemory(rank, schedule.ranks, where.perProcess);
        if (!memory) return tl::unexpected(std::move(memory.error()).with(fmt::format("rank {}", rank)));
        onDevice = onDevice || *memory != nullptr;
        memories[static_cast<std::size_t>(rank)] = std::move(*memory);
    }
    if (onDevice && plan.copies)
        return fail(ErrorCode::Usage, "OFFLOAD and RELOAD move activations of ranks on the processor, not of a GPU yet",
                    "leave out --offload, or train on --backend cpu");
    if (options.job) STAGEWRIGHT_CHECK(canSpread(options, clock, onDevice));
    STAGEWRIGHT_CHECK(checkTrainedOrder(schedule, plan, options, onDevice, clock == ClockMode::Virtual));
    const int permits = clock != ClockMode::Virtual ? 0
                        : onDevice                  ? 1
                        // the system shares the cores out; CPU time says what an op took
                        : options.job ? 0
                                      : std::min(usableCores(), schedule.ranks);
    const int width = messageWidth(*options.workload, *backend);
    std::vector<int> buckets; // by stage
    if (options.sharding.bucket > 0 && plan.shared)
        for (const StageSlice& slice : slices) buckets.push_back(steppedPieces(schedule, options, slice));

    auto state = std::make_shared<TrainingState>(checked, std::move(cycle), options, clock, where.perProcess, permits,
                                                 std::move(backend), std::move(memories), std::move(buckets));
    const auto giveUp = [&ranks = state->ranks] { // ranks that wait for another device
        for (const RankRun& rank : ranks)
            if (rank.memory) rank.memory->interrupt();
    };
    state->transport = makeThreadsTransport(schedule.ranks, schedule.placement, checked->cells(),
                                            transportLimits(options.channels), giveUp);
    if (rendezvous || options.channels.oneStream) { // else the order of messages changes nothing
        STAGEWRIGHT_TRY(std::shared_ptr<const Schedule> lowered, checked->lowered(options.lowering));
        state->lowered = std::move(lowered);
        // A run keeps its compute ops: lists that came with their messages are known again by the rule that makes them.
        const std::optional<Lowering> rule =
            checked->cameLowered() ? exactLoweringOf(checked->given()) : options.lowering;
        state->loweredBy = rule ? toText(*rule) : std::string("as given");
    }
    state->shapes =
        BatchShapes(schedule, {options.microbatchSize, options.workload->positions(), width, std::move(tokens)},
                    options.replicaSamples);
    if (options.order.by != ReadyOrder::By::List) {
        CostModel held = CostModel::uniform(schedule);
        held.memory.clear();
        for (const StageSlice& slice : slices)
            held.memory.push_back(options.workload->memoryOf(slice, options.microbatchSize, options.optimizer,
                                                             state->backend->capabilities().layout));
        state->ready = std::make_unique<ReadyTraining>(schedule, options.order, std::move(held));
    }
    ProcessCommunicator* processes = nullptr;
    if (options.job) {
        STAGEWRIGHT_TRY(ProcessCommunicator * joined, joinProcesses(*state, where));
        processes = joined;
    } else {
        state->communicator = makeThreadCommunicator(*state);
    }
    if (options.tracer) {
        STAGEWRIGHT_TRY(MessageNumbers numbers, MessageNumbers::of(*checked));
        state->messageNumbers = numbers;
    }
    state->addStages(slices);
    auto training = std::make_unique<RankTraining>(std::move(state));
    STAGEWRIGHT_CHECK(training->start(processes));
    return training;
}

} // namespace

Result<void> agreeOnOptions(TrainingOptions& options, int ranks)
{
    if (!options.job) return {};
    ByteWriter own;
    std::optional<Error> failed;
    if (options.job->index() == 0) {
        Result<std::unique_ptr<Backend>> backend = makeBackend(options.backend, options.device);
        Result<DeviceOptions> resolved =
            backend ? (*backend)->resolve(options.device, options.workload->mathUse(options.microbatchSize))
                    : tl::unexpected(backend.error());
        if (!resolved) failed = resolved.error();
        // 0: on the processor
        const int sideBySide = backend ? (*backend)->sideBySide(ranks) : 0;
        // each process may see its own alone
        const bool ownDevices = sideBySide > 0 && options.device.transport == DeviceTransport::Nccl;
        if (options.clock == ClockMode::Auto && !ownDevices && options.job->oneHost() &&
            ranks > (sideBySide > 0 ? sideBySide : options.job->cores()))
            options.clock = ClockMode::Virtual;
        own.put(options.clock == ClockMode::Auto ? ClockMode::Wall : options.clock);
        own.text(resolved ? resolved->blas : std::string());
    }
    STAGEWRIGHT_TRY(std::vector<std::byte> agreed, options.job->fromFirst(own.take()));
    if (failed) return tl::unexpected(std::move(*failed)); // the others find the same fault, or none
    ByteReader bytes(agreed);
    options.clock = bytes.get<ClockMode>();
    options.device.blas = bytes.text();
    return {};
}

Result<void> serveTrainings(std::span<const std::unique_ptr<Training>> trainings, const ProcessJob& job)
{
    std::vector<Training*> left;
    for (const auto& training : trainings) left.push_back(training.get());
    std::optional<Error> stopped;
    while (!left.empty() && !stopped) {
        const auto asked = [&] {
            bool any = false;
            std::erase_if(left, [&](Training* training) {
                Result<Training::Served> served = training->serve();
                if (!served) stopped = std::move(served.error());
                any = any || !served || *served != Training::Served::Nothing;
                return served && *served == Training::Served::Leave;
            });
            return any;
        };
        job.await(asked, [] { return false; });
    }
    if (stopped) return tl::unexpected(std::move(*stopped));
    return {};
}

TraceFacts Training::traceFacts() const { return {}; }

Result<std::unique_ptr<Training>> Training::create(const std::shared_ptr<const CheckedSchedule>& schedule,
                                                   const TrainingOptions& options)
{
    STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend(options.backend, options.device));
    return createTraining(schedule, options, std::move(backend));
}

Result<std::unique_ptr<Training>> createTraining(const std::shared_ptr<const CheckedSchedule>& schedule,
                                                 const TrainingOptions& options, std::unique_ptr<Backend> backend)
{
    try {
        return makeTraining(schedule, options, std::move(backend));
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::Failed, fmt::format("setting up {} ranks: out of memory", schedule->compute().ranks));
    }
}

} // namespace stagewright
