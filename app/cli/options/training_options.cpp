#include "app/cli/options/training_options.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/option_set.h"
#include "app/cli/session.h"
#include "engine/device/traits.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

void addArithmeticOptions(OptionSet& verb, TrainingChoice& choice)
{
    verb.value("--device", &choice.devices,
               "GPUs to train on, by their number in 'stagewright devices'; ranks take them in turn [all]")
        .form("N,…")
        .commas()
        .check(wholeNumber(0, 4096));
    verb.value("--precision", &choice.precision,
               "fp32, tf32 (GPUs only) or bf16 with fp32 master weights, on the processor by oneDNN [bf16 on GPUs, "
               "else fp32]")
        .form("NAME")
        .check(oneOf({"fp32", "tf32", "bf16"}));
    verb.value("--products", &choice.products,
               "Library of the processor's matrix products: openblas or onednn [the faster one, measured once]")
        .form("NAME")
        .check(oneOf({"openblas", "onednn"}));
}

DeviceOptions deviceOptionsOf(const TrainingChoice& choice)
{
    DeviceOptions device;
    device.devices = choice.devices;
    device.blas = choice.products;
    device.precision = choice.precision == "fp32"   ? Precision::Fp32
                       : choice.precision == "tf32" ? Precision::Tf32
                       : choice.precision == "bf16" ? Precision::Bf16
                                                    : Precision::Default;
    device.sharing = choice.sharing == "partitions" ? DeviceSharing::Partitions : DeviceSharing::Queues;
    device.transport = choice.transport == "nccl" ? DeviceTransport::Nccl : DeviceTransport::Copies;
    return device;
}

namespace {

void addSharingOptions(OptionSet& verb, TrainingChoice& choice)
{
    verb.value("--sharing", &choice.sharing,
               "How ranks share a GPU: queues side by side, partitions of its multiprocessors, or serialised, one op "
               "at a time, placed by "
               "the virtual clock [queues where each rank has its own GPU, else serialised]")
        .form("HOW")
        .check(oneOf({"queues", "partitions", "serialised"}));
    verb.value("--transport", &choice.transport,
               "How messages travel between GPUs: copies of the driver (between processes MPI), or nccl, where each "
               "rank has its own GPU [copies]")
        .form("HOW")
        .check(oneOf({"copies", "nccl"}));
}

} // namespace

void addTrainingOptions(OptionSet& verb, TrainingChoice& choice)
{
    verb.value("--recompute-layers", &choice.recomputeLayers,
               "Layers to recompute; the others keep their activations [all]")
        .form("A-B");
    verb.value("--optimizer", &choice.optimizer, "adamw or sgd [adamw]").form("NAME").check(oneOf({"adamw", "sgd"}));
    verb.value("--lr", &choice.learningRate, "Learning rate [0.003]").form("X").check(realNumber(0, 1000));
    verb.value("--momentum", &choice.momentum, "Momentum of sgd [0]").form("X").check(realNumber(0, 0.9999));
    verb.value("--weight-decay", &choice.weightDecay, "Weight decay of matrices [0.1]")
        .form("X")
        .check(realNumber(0, 1000));
    verb.value("--clip", &choice.clipNorm, "Largest global gradient norm; 0: none [1]")
        .form("X")
        .check(realNumber(0, 1e9));
    addArithmeticOptions(verb, choice);
    addSharingOptions(verb, choice);
}

Result<void> applyTo(const TrainingChoice& choice, TrainingOptions& training)
{
    training.device = deviceOptionsOf(choice);
    const ClockMode wanted = choice.sharing == "serialised" ? ClockMode::Virtual : ClockMode::Wall;
    if (!choice.sharing.empty()) {
        if (training.clock != ClockMode::Auto && training.clock != wanted)
            return fail(
                ErrorCode::Usage,
                fmt::format("--sharing {} can't be used with the {} clock", choice.sharing, toText(training.clock)),
                "omit --clock");
        training.clock = wanted;
    }
    OptimizerConfig& optimizer = training.optimizer;
    optimizer.kind = choice.optimizer == "sgd" ? OptimizerKind::Sgd : OptimizerKind::AdamW;
    if (choice.learningRate >= 0) optimizer.learningRate = choice.learningRate;
    if (choice.weightDecay >= 0) optimizer.weightDecay = choice.weightDecay;
    if (choice.clipNorm >= 0) optimizer.clipNorm = choice.clipNorm;
    if (choice.momentum >= 0) {
        if (optimizer.kind != OptimizerKind::Sgd)
            return fail(ErrorCode::Usage, fmt::format("--momentum {}: adamw has its own moments", choice.momentum),
                        "give --optimizer sgd with it");
        optimizer.momentum = choice.momentum;
    }
    if (choice.recomputeLayers.empty()) return {};
    const auto layers = rangeOf(choice.recomputeLayers);
    if (!layers || layers->first < 0 || layers->last < layers->first)
        return fail(ErrorCode::Usage,
                    fmt::format("--recompute-layers: '{}' is not a range of layers", choice.recomputeLayers),
                    "write 2 or 1-3; layers are counted from 0");
    training.recomputedLayers = std::pair(layers->first, layers->last);
    return {};
}

Result<void> checkDeviceUses(const TrainingChoice& choice, const std::string& backend)
{
    if (traitsOf(backend).hasDevices) return {};
    if (!choice.sharing.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("--sharing {}: backend {} has no GPU to share", choice.sharing, backend),
                    "leave it out; --clock chooses the wall clock or the virtual one");
    if (!choice.transport.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("--transport {}: backend {} has no GPUs that messages travel between", choice.transport,
                                backend),
                    "leave it out, or choose --backend cuda");
    return {};
}

void noteUnusedLayers(const TrainingChoice& choice, const std::vector<const Schedule*>& schedules, Session& session)
{
    if (choice.recomputeLayers.empty()) return;
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
