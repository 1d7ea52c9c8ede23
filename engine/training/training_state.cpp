#include "engine/training/training_state.h"

#include <algorithm>

#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

namespace {

// Pieces that begin at multiples of `unit` elements, which all layers are.
FlatState flatInUnits(const StateSharding& sharding, std::vector<std::int64_t> layers, int members, int unit)
{
    for (std::int64_t& layer : layers) layer /= unit;
    FlatState flat = flatStateOf(sharding, layers, members);
    flat.elements *= unit;
    flat.padded *= unit;
    for (ShardPiece& piece : flat.pieces) {
        piece.begin *= unit;
        piece.end *= unit;
    }
    return flat;
}

} // namespace

TrainingState::TrainingState(std::shared_ptr<const CheckedSchedule> aSchedule, CyclePlans aCycle,
                             const TrainingOptions& someOptions, ClockMode aClock, int ranksHere, int permits,
                             std::unique_ptr<Backend> aBackend, std::vector<std::unique_ptr<Memory>> memories,
                             std::vector<int> buckets)
    : checked(std::move(aSchedule)), schedule(&checked->compute()), plan(aCycle.plans.front()),
      cycle(std::move(aCycle)), options(someOptions), clock(aClock),
      recorder(checked, {.virtualClock = aClock == ClockMode::Virtual,
                         .links = someOptions.links,
                         .perturbation = someOptions.perturbation,
                         .threadCpu = true,
                         .channels = someOptions.channels,
                         .gradientBuckets = std::move(buckets),
                         .cycle = cycle.schedules,
                         .ordersItself = someOptions.order.by != ReadyOrder::By::List}),
      control(ranksHere, permits), backend(std::move(aBackend)), ranks(static_cast<std::size_t>(schedule->ranks))
{
    shared = sharesState(*schedule);
    for (int stage = 0; stage < schedule->stages; ++stage) {
        std::vector<int> holders{schedule->placement.rankOf(stage, -1)};
        if (shared) holders = holdersOf(schedule->placement, stage);
        for (const int rank : holders) sums.push_back({stage, rank});
    }
    for (int rank = 0; rank < schedule->ranks; ++rank) {
        RankRun& run = ranks[static_cast<std::size_t>(rank)];
        run.sink = std::make_unique<RecordingSink>(recorder.rank(rank));
        run.memory = std::move(memories[static_cast<std::size_t>(rank)]);
        run.allocator = std::make_unique<Allocator>(run.memory ? *run.memory : hostMemory());
        if (!run.memory) continue;
        run.hostAllocator = std::make_unique<Allocator>();
        recorder.rank(rank).useClock(run.memory->clock());
    }
}

void TrainingState::addStages(std::span<const StageSlice> slices)
{
    // memory is counted and moved in floats
    const int unit = static_cast<int>(sizeof(float)) / backend->capabilities().layout.elementBytes;
    for (const StageSlice& slice : slices) {
        std::vector<int> ranksOf;
        for (const Placement::Copy& copy : schedule->placement.copiesOf(slice.stage)) ranksOf.push_back(copy.rank);
        std::sort(ranksOf.begin(), ranksOf.end());
        ranksOf.erase(std::unique(ranksOf.begin(), ranksOf.end()), ranksOf.end());
        for (std::size_t member = 0; member < ranksOf.size(); ++member) {
            stages.emplace_back(slice, ranksOf[member], options, schedule->weights);
            if (shared)
                stages.back().share = StageShare{options.sharding.level,
                                                 flatInUnits(options.sharding, options.workload->layerElements(slice),
                                                             static_cast<int>(ranksOf.size()), unit),
                                                 static_cast<int>(member)};
            if (slice.last) stages.back().losses.resize(static_cast<std::size_t>(schedule->microbatches));
        }
    }
}

StageRun& TrainingState::stageOn(int stage, int rank)
{
    const auto found = std::lower_bound(stages.begin(), stages.end(), std::pair(stage, rank),
                                        [](const StageRun& run, const std::pair<int, int>& wanted) {
                                            return std::pair(run.slice.stage, run.rank) < wanted;
                                        });
    return *found;
}

std::vector<StageRun*> TrainingState::copiesOf(int stage)
{
    std::vector<StageRun*> copies;
    const auto first = std::lower_bound(stages.begin(), stages.end(), stage,
                                        [](const StageRun& run, int wanted) { return run.slice.stage < wanted; });
    for (auto run = first; run != stages.end() && run->slice.stage == stage; ++run) copies.push_back(&*run);
    return copies;
}

std::vector<float> TrainingState::gradientsOf(int stage)
{
    const StageRun& first = firstCopy(stage);
    if (!first.share) return first.gradients;
    const FlatState& flat = first.share->flat;
    std::vector<float> whole(static_cast<std::size_t>(flat.padded));
    std::size_t kept = 0;
    for (const StageRun* copy : copiesOf(stage)) {
        std::size_t at = 0;
        for (const ShardPiece& piece : flat.pieces) {
            const auto count = static_cast<std::size_t>(piece.size());
            if (piece.owner != copy->share->member || at + count > copy->gradients.size()) continue;
            std::copy_n(copy->gradients.begin() + static_cast<std::ptrdiff_t>(at), count, whole.begin() + piece.begin);
            at += count;
        }
        kept += at;
    }
    whole.resize(kept == whole.size() ? static_cast<std::size_t>(flat.elements) : 0); // none were kept
    return whole;
}

RankPeaks TrainingState::peaksOf(int rank)
{
    const RankRun& run = ranks[static_cast<std::size_t>(rank)];
    if (run.peaksElsewhere) return *run.peaksElsewhere;
    RankPeaks peaks;
    for (std::size_t i = 0; i < peaks.of.size(); ++i) peaks.of[i] = run.allocator->peak(static_cast<MemoryCategory>(i));
    peaks.of[static_cast<std::size_t>(MemoryCategory::Activations)] = recorder.rank(rank).activationPeak();
    return peaks;
}

void TrainingState::stop(const Error& error)
{
    control.stop(error);
    if (ready) ready->clock.interrupt();
    if (transport) transport->interrupt();
    if (communicator) communicator->stop(control.error().value_or(error));
}

} // namespace stagewright
