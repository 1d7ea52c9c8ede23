#include "app/cli/options/training_options.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/options/setup_sources.h"
#include "app/cli/session.h"
#include "engine/device/traits.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "schedules/text/link_text.h"

namespace stagewright {

DeviceOptions deviceOptionsOf(const Setup& setup)
{
    DeviceOptions device;
    device.devices = setup.devices;
    device.blas = setup.blas;
    device.precision = setup.precision == "fp32"   ? Precision::Fp32
                       : setup.precision == "tf32" ? Precision::Tf32
                       : setup.precision == "bf16" ? Precision::Bf16
                                                   : Precision::Default;
    device.sharing = setup.sharing == "partitions" ? DeviceSharing::Partitions : DeviceSharing::Queues;
    device.transport = setup.transport == "nccl" ? DeviceTransport::Nccl : DeviceTransport::Copies;
    return device;
}

Result<void> applyTo(const Setup& setup, TrainingOptions& training)
{
    training.device = deviceOptionsOf(setup);
    training.microbatchSize = setup.microbatchSize;
    training.seed = static_cast<std::uint64_t>(setup.seed);
    training.clock = setup.clock == "wall"      ? ClockMode::Wall
                     : setup.clock == "virtual" ? ClockMode::Virtual
                                                : ClockMode::Auto;
    if (!setup.link.empty()) {
        auto link = parseLink(setup.link);
        if (!link) return tl::unexpected(std::move(link.error()).with("--link"));
        training.links.all = *link;
    }
    STAGEWRIGHT_TRY(const auto copies, copiesOf(setup));
    if (copies) training.links.copies = *copies;
    const ClockMode wanted = setup.sharing == "serialised" ? ClockMode::Virtual : ClockMode::Wall;
    if (!setup.sharing.empty()) {
        if (training.clock != ClockMode::Auto && training.clock != wanted)
            return fail(
                ErrorCode::Usage,
                fmt::format("--sharing {} can't be used with the {} clock", setup.sharing, toText(training.clock)),
                "omit --clock");
        training.clock = wanted;
    }
    OptimizerConfig& optimizer = training.optimizer;
    auto choice = parseOptimizer(setup.optimizer);
    if (!choice) return tl::unexpected(std::move(choice.error()).with("--optimizer"));
    optimizer.kind = choice->name == "sgd"    ? OptimizerKind::Sgd
                     : choice->name == "kfac" ? OptimizerKind::Kfac
                                              : OptimizerKind::AdamW;
    optimizer.refresh = choice->refresh;
    optimizer.damping = choice->damping;
    optimizer.factorDecay = choice->decay;
    optimizer.klClip = choice->clip;
    if (setup.learningRate >= 0) optimizer.learningRate = setup.learningRate;
    if (setup.weightDecay >= 0) optimizer.weightDecay = setup.weightDecay;
    if (setup.clip >= 0) optimizer.clipNorm = setup.clip;
    if (setup.momentum >= 0) {
        if (optimizer.kind == OptimizerKind::AdamW)
            return fail(ErrorCode::Usage, fmt::format("--momentum {}: adamw has its own moments", setup.momentum),
                        "give --optimizer sgd or kfac with it");
        optimizer.momentum = setup.momentum;
    }
    if (setup.recomputeLayers.empty()) return {};
    const auto layers = rangeOf(setup.recomputeLayers);
    if (!layers || layers->first < 0 || layers->last < layers->first)
        return fail(ErrorCode::Usage,
                    fmt::format("--recompute-layers: '{}' is not a range of layers", setup.recomputeLayers),
                    "write 2 or 1-3; layers are counted from 0");
    training.recomputedLayers = std::pair(layers->first, layers->last);
    return {};
}

Result<void> applyCluster(const Setup& setup, const Schedule& schedule, TrainingOptions& training, Session& session)
{
    if (setup.cluster.empty() || schedule.ranks < 2) return {};
    STAGEWRIGHT_TRY(const auto own, clusterLinksOf(schedule, setup, sourcesOf(session)));
    Links& links = training.links;
    links.all = own.links.all;
    for (int from = 0; from < schedule.ranks; ++from)
        for (int to = 0; to < schedule.ranks; ++to)
            if (own.links.cards.between(from, to)) links.overrides[{from, to}] = own.links.of(from, to);
    session.note(
        fmt::format("{}; emulated{}", own.words,
                    links.overrides.empty() ? "" : ", and messages do not wait for each other's network cards"));
    return {};
}

Result<void> checkDeviceUses(const Setup& setup, const std::string& backend)
{
    if (traitsOf(backend).hasDevices) return {};
    if (!setup.sharing.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("--sharing {}: backend {} has no GPU to share", setup.sharing, backend),
                    "leave it out; --clock chooses the wall clock or the virtual one");
    if (!setup.transport.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("--transport {}: backend {} has no GPUs that messages travel between", setup.transport,
                                backend),
                    "leave it out, or choose --backend cuda");
    return {};
}

void noteUnusedLayers(const Setup& setup, const std::vector<const Schedule*>& schedules, Session& session)
{
    if (setup.recomputeLayers.empty()) return;
    for (const Schedule* schedule : schedules)
        for (const auto& list : schedule->order)
            if (std::any_of(list.begin(), list.end(), [](const Op& op) { return isRecompute(op.kind); })) return;
    session.note("--recompute-layers is not used: no stage recomputes; --recompute names them");
}

Result<void> disturbsRealRun(const Perturbation& perturbation, int steps)
{
    constexpr const char* remedy = "real ranks can only be slowed; 'stagewright simulate' takes any factor";
    for (const auto& [rank, factor] : perturbation.ranks)
        if (factor < 1)
            return fail(ErrorCode::Usage,
                        fmt::format("--perturb: rank {} can't be made faster, {} is below 1", rank, factor), remedy);
    for (const auto& transient : perturbation.transients) {
        if (transient.factor < 1)
            return fail(ErrorCode::Usage,
                        fmt::format("--perturb: {}: rank {} can't be made faster, {} is below 1", toText(transient),
                                    transient.rank, transient.factor),
                        remedy);
        if (transient.step > steps)
            return fail(ErrorCode::Usage,
                        fmt::format("--perturb: {}: step {} of {}", toText(transient), transient.step, steps),
                        "steps are counted from 1, warm-up steps included");
    }
    return {};
}

} // namespace stagewright
