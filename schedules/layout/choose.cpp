#include "schedules/layout/choose.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr int mostTensor = 8;
constexpr int mostSamples = 16; // of a microbatch

std::vector<int> divisorsOf(int number, int most)
{
    std::vector<int> out;
    for (int one = 1; one <= std::min(number, most); ++one)
        if (number % one == 0) out.push_back(one);
    return out;
}

bool allows(int pinned, int value) { return pinned == 0 || pinned == value; }

// What replicas share, and whether sequences are cut; least first, so that of ways as fast as each other it is the first.
void addShared(const LayoutQuestion& q, Parallelism way, std::vector<Parallelism>& out)
{
    const bool any = q.zero < 0, usual = way.kept == KeptActivations::Selective;
    const int most = any && way.replicas > 1 ? 3 : any ? 0 : q.zero;
    for (way.zero = any ? 0 : q.zero; way.zero <= most; ++way.zero)
        for (const bool sequence : {false, true}) {
            if (q.sequence ? sequence != *q.sequence : any ? sequence && way.tensor == 1 : sequence != usual) continue;
            way.sequence = sequence;
            out.push_back(way);
        }
}

void addWays(const LayoutQuestion& q, Parallelism way, std::vector<Parallelism>& out)
{
    const int perReplica = q.samples / way.replicas;
    for (const int chunks : divisorsOf(q.model.layers / way.pipeline, q.model.layers)) {
        if ((chunks > 1 && way.pipeline == 1) || !allows(q.chunks, chunks)) continue;
        for (const int samples : divisorsOf(perReplica, mostSamples)) {
            if (!allows(q.microbatch, samples)) continue;
            way.chunks = chunks;
            way.samples = samples;
            way.microbatches = perReplica / samples;
            if (chunks > 1 && way.microbatches % way.pipeline != 0) continue;
            for (const KeptActivations kept :
                 {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs}) {
                if (q.kept && *q.kept != kept) continue;
                way.kept = kept;
                addShared(q, way, out);
            }
        }
    }
}

std::vector<Parallelism> waysOf(const LayoutQuestion& q)
{
    std::vector<Parallelism> out;
    for (const int tensor : divisorsOf(q.model.heads, mostTensor)) {
        if (q.model.hidden % tensor != 0 || (q.model.keyHeads > 0 && q.model.keyHeads % tensor != 0) ||
            !allows(q.tensor, tensor))
            continue;
        for (const int pipeline : divisorsOf(q.model.layers, q.model.layers)) {
            if (!allows(q.pipeline, pipeline) || q.cluster.devices % (tensor * pipeline) != 0) continue;
            const int replicas = q.cluster.devices / (tensor * pipeline);
            if (q.samples % replicas != 0 || !allows(q.replicas, replicas)) continue;
            Parallelism way;
            way.tensor = tensor;
            way.pipeline = pipeline;
            way.replicas = replicas;
            addWays(q, way, out);
        }
    }
    return out;
}

bool inRow(const std::vector<int>& ascending)
{
    return ascending.empty() || ascending.back() - ascending.front() + 1 == static_cast<int>(ascending.size());
}

std::string rangeText(const std::vector<int>& row) // "2", "1-3"
{
    return row.size() == 1 ? std::to_string(row[0]) : fmt::format("{}-{}", row.front(), row.back());
}

} // namespace

Result<void> pin(std::string_view text, LayoutQuestion& question)
{
    for (const std::string_view item : itemsOf(text)) {
        const auto [key, given] = keyValueOf(item);
        const std::string_view value = given.value_or("");
        int* place = key == "t"   ? &question.tensor
                     : key == "p" ? &question.pipeline
                     : key == "v" ? &question.chunks
                     : key == "d" ? &question.replicas
                     : key == "b" ? &question.microbatch
                                  : nullptr;
        if (place != nullptr && readNumber(value, *place) && *place >= 1) continue;
        if (key == "sp" && (value == "yes" || value == "no")) {
            question.sequence = value == "yes";
            continue;
        }
        if (key == "recompute") question.kept = keptNamed(value);
        if (key != "recompute" || !question.kept)
            return fail(ErrorCode::Usage, fmt::format("'{}' can't be pinned", item),
                        "write t=8,p=4,v=2,d=2,b=1, recompute=none|selective|full or sp=yes|no");
    }
    return {};
}

std::string pinsOf(const Parallelism& way)
{
    const bool usual = way.sequence == (way.kept == KeptActivations::Selective);
    return fmt::format("t={},p={},v={},d={},b={},recompute={}{}", way.tensor, way.pipeline, way.chunks, way.replicas,
                       way.samples, toText(way.kept),
                       usual          ? ""
                       : way.sequence ? ",sp=yes"
                                      : ",sp=no");
}

std::string toText(const LayoutQuestion& question, const Parallelism& way)
{
    if (question.zero >= 0) return toText(way);
    return fmt::format("{} z{}{}", toText(way), way.zero, way.sequence ? " sp" : "");
}

std::string trainingCommand(const ModelPreset& model, const Layout& layout, std::string_view schedule,
                            std::string& whyNot)
{
    const LayoutStage& first = layout.stages.front();
    std::vector<int> recomputing, again; // stages, layers
    int layer = 0;
    whyNot = model.keyShare() != 1 || model.ffn > 0 ? "kv and ffn of one's own"
             : model.experts > 1                    ? "experts"
             : model.embeddings == Embeddings::Tied ? "a tied embedding"
                                                    : "";
    bool mixed = false; // stages of which some layers recompute
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const LayoutStage& stage = layout.stages[k];
        std::size_t full = 0;
        for (const KeptActivations kept : stage.layers) {
            if (kept == KeptActivations::Selective) whyNot = "selective recomputation";
            if (kept == KeptActivations::Inputs) {
                ++full;
                again.push_back(layer);
            }
            ++layer;
        }
        if (full > 0) recomputing.push_back(static_cast<int>(k));
        mixed = mixed || (full > 0 && full < stage.layers.size());
        if (stage.replicas() != first.replicas() || stage.zero != first.zero)
            whyNot = "another number of replicas, or state that they share, in each stage";
    }
    if (!inRow(recomputing) || (mixed && !inRow(again)))
        whyNot = "recomputation of stages, or of layers, that are not in a row";
    for (const LayoutStage& stage : layout.stages)
        if (stage.tensor > 1) whyNot = fmt::format("t = {}", stage.tensor);
    if (!whyNot.empty()) {
        whyNot += " can't be trained here";
        return {};
    }
    std::string out = fmt::format("stagewright record --schedule {} --ranks {} --microbatches {}", schedule,
                                  layout.ranks, layout.microbatches);
    if (layout.chunks() > 1) out += fmt::format(" --chunks {}", layout.chunks());
    if (first.replicas() > 1) {
        constexpr std::string_view shared[] = {"none", "optimizer", "gradients", "weights"};
        out += fmt::format(" --replicas {} --shard {}", first.replicas(), shared[std::clamp(first.zero, 0, 3)]);
    }
    const bool all = recomputing.size() == layout.stages.size();
    if (!recomputing.empty()) out += " --recompute " + (all ? "all" : rangeText(recomputing));
    if (mixed) out += " --recompute-layers " + rangeText(again);
    const auto layers = layout.layersByStage();
    if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end())
        out += fmt::format(" --stage-layers {}", fmt::join(layers, ","));
    return out + fmt::format(" --microbatch-size {} --model layers={},hidden={},heads={},seq={},vocab={}",
                             layout.samples / first.replicas(), model.layers, model.hidden, model.heads, model.sequence,
                             model.vocabulary);
}

std::vector<std::optional<LayoutStep>> simulateWays(const LayoutQuestion& question,
                                                    std::span<const LayoutCandidate> ways, const Progress& progress)
{
    std::vector<std::optional<LayoutStep>> out(ways.size());
    for (std::size_t i = 0; i < ways.size() && !progress.cancelled(); ++i) {
        progress.tell("ways", static_cast<std::int64_t>(i), static_cast<std::int64_t>(ways.size()));
        auto step = bestStep(layoutOf(question.model, ways[i].way), question.model, question.cluster,
                             question.constants, progress.stop);
        if (step && step->fits) out[i] = std::move(*step);
    }
    return out;
}

Result<LayoutAnswer> chooseLayout(const LayoutQuestion& question)
{
    LayoutAnswer out;
    for (const Parallelism& way : waysOf(question)) {
        LayoutCandidate one{way, stepOf(question.model, question.cluster, way, question.constants),
                            memoryOf(question.model, way, question.constants)};
        one.fits = one.memory.sum() <= question.cluster.memory;
        out.fitting += one.fits ? 1 : 0;
        out.candidates.push_back(one);
    }
    if (out.candidates.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("no t, p, d and b divide {} layers, {} heads and {} samples over {} devices",
                                question.model.layers, question.model.heads, question.samples,
                                question.cluster.devices),
                    "pin less, or choose samples and devices with common divisors");
    std::stable_sort(out.candidates.begin(), out.candidates.end(), [](const auto& a, const auto& b) {
        if (a.fits != b.fits) return a.fits;
        return a.fits ? a.step.sum() < b.step.sum() : a.memory.sum() < b.memory.sum();
    });
    return out;
}

std::string whyItLoses(const LayoutCandidate& candidate, const LayoutCandidate& best)
{
    struct Part {
        const char* name;
        double StepParts::*place;
    };
    constexpr auto parts = std::to_array<Part>({{"products and memory traffic", &StepParts::compute},
                                                {"recomputation", &StepParts::recompute},
                                                {"bubble", &StepParts::bubble},
                                                {"all-reduces of layers", &StepParts::tensor},
                                                {"messages between stages", &StepParts::messages},
                                                {"gradients and weights among replicas", &StepParts::data},
                                                {"optimizer", &StepParts::optimizer}});
    if (candidate.way == best.way) return {};
    const auto more = [&](const Part& part) { return candidate.step.*part.place - best.step.*part.place; };
    const Part& worst =
        *std::max_element(parts.begin(), parts.end(), [&](const Part& a, const Part& b) { return more(a) < more(b); });
    if (more(worst) <= 0) return {};
    return fmt::format("{} +{}", worst.name, formatDuration(static_cast<Nanos>(more(worst) * 1e9)));
}

std::string wordsOf(const StepConstants& constants, const Cluster& cluster)
{
    StepConstants plain = constants;
    plain.measured = {};
    plain.others.clear();
    if (!constants.measured.layers.empty() && plain.layerFloor == 0) plain.layerFloor = StepConstants().layerFloor;
    if (!(plain == StepConstants())) return "your own constants";
    const bool same = cluster.title.empty() && cluster.device.name == "a100" && cluster.kinds.empty();
    return same ? "constants of Megatron-DeepSpeed, fitted to steps on A100s"
                : "constants of Megatron-DeepSpeed on A100s, not of these devices: --calibrate fits them to your own "
                  "steps";
}

std::string wordsOfEmbeddings(const ModelPreset& model)
{
    const double each = static_cast<double>(model.vocabulary) * model.hidden / 1e6;
    switch (model.embeddings) {
    case Embeddings::Apart:
        return "embedding and head are not in the memory, as in the published formulas: tied or tied=no behind the "
               "model counts them";
    case Embeddings::Own:
        return fmt::format("embedding and head count, {} million parameters each, on the first and the last stage",
                           shortNumber(each, 1));
    case Embeddings::Tied:
        return fmt::format("embedding and head are tied, {} million parameters: counted once where both are on one "
                           "rank, else a copy on each, and their gradients are summed",
                           shortNumber(each, 1));
    }
    return {};
}

std::string megatronArguments(const ModelPreset& model, const Parallelism& way)
{
    std::string out =
        fmt::format("--tensor-model-parallel-size {} --pipeline-model-parallel-size {}", way.tensor, way.pipeline);
    if (way.chunks > 1)
        out += fmt::format(" --num-layers-per-virtual-pipeline-stage {}", model.layers / (way.pipeline * way.chunks));
    out += fmt::format(" --micro-batch-size {} --global-batch-size {}", way.samples,
                       way.samples * way.replicas * way.microbatches);
    if (way.sequence && way.tensor > 1) out += " --sequence-parallel";
    if (way.kept == KeptActivations::Selective) out += " --recompute-granularity selective";
    if (way.kept == KeptActivations::Inputs)
        out += " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
    if (way.zero >= 1 && way.replicas > 1) out += " --use-distributed-optimizer";
    if (way.zero >= 3 && way.replicas > 1)
        out += " --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params";
    if (model.embeddings == Embeddings::Own) out += " --untie-embeddings-and-output-weights";
    return out;
}

std::optional<LayoutCandidate> fewerDevices(const LayoutQuestion& question, const LayoutCandidate& best)
{
    std::optional<LayoutCandidate> found;
    LayoutQuestion fewer = question;
    while (fewer.cluster.devices % 2 == 0) {
        fewer.cluster.devices /= 2;
        fewer.replicas = 0; // follows from the others
        const auto answer = chooseLayout(fewer);
        if (answer && answer->fitting > 0 && answer->candidates.front().step.sum() < best.step.sum())
            found = answer->candidates.front();
    }
    return found;
}

} // namespace stagewright
