#include "engine/model/model_config.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

struct Key {
    std::string_view name;
    int ModelConfig::*field;
    int most;
    int least = 1;
};
// Bounds keep every product of two of them, and the weights' bytes, within 64 bits.
constexpr Key keys[] = {
    {"layers", &ModelConfig::layers, 4096},        {"hidden", &ModelConfig::hidden, 65536},
    {"heads", &ModelConfig::heads, 4096},          {"seq", &ModelConfig::sequence, 65536},
    {"vocab", &ModelConfig::vocabulary, 65536, 2},
};
constexpr std::string_view example = "write for example layers=8,hidden=128,heads=4,seq=128";

// FLOPs of a forward pass per token: 2 per weight, and the causal half of the two attention products.
double blockCost(const ModelConfig& model)
{
    const double hidden = model.hidden;
    return 24.0 * hidden * hidden + 2.0 * hidden * (model.sequence + 1);
}
double embeddingCost(const ModelConfig& model)
{
    return model.hidden; // one addition an element
}
double headCost(const ModelConfig& model) { return 2.0 * model.hidden * model.vocabulary; }

std::vector<int> balancedLayers(const ModelConfig& model, int stages)
{
    const int layers = model.layers;
    const auto cost = [&](int stage, int count) {
        return blockCost(model) * count + (stage == 0 ? embeddingCost(model) : 0.0) +
               (stage == stages - 1 ? headCost(model) : 0.0);
    };
    // best[s][n]: stages 0 … s hold n layers, at least one each; least largest cost, then least sum of squares, which
    // is the most even of them; the earliest stages take more where that is equal too.
    struct Best {
        double largest = std::numeric_limits<double>::infinity();
        double squares = std::numeric_limits<double>::infinity();
        int count = 0;
        bool operator<(const Best& other) const
        {
            return std::pair(largest, squares) < std::pair(other.largest, other.squares);
        }
    };
    const auto rows = static_cast<std::size_t>(stages);
    const auto columns = static_cast<std::size_t>(layers) + 1;
    std::vector<std::vector<Best>> best(rows, std::vector<Best>(columns));
    for (int stage = 0; stage < stages; ++stage) {
        for (int total = stage + 1; total <= layers - (stages - 1 - stage); ++total) {
            Best& here = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(total)];
            const int fewest = stage == 0 ? total : 1;
            for (int count = fewest; count <= total - stage; ++count) {
                const double mine = cost(stage, count);
                Best candidate{mine, mine * mine, count};
                if (stage > 0) {
                    const Best& before =
                        best[static_cast<std::size_t>(stage) - 1][static_cast<std::size_t>(total - count)];
                    candidate.largest = std::max(candidate.largest, before.largest);
                    candidate.squares += before.squares;
                }
                if (candidate < here) here = candidate;
            }
        }
    }
    std::vector<int> counts(rows);
    int rest = layers;
    for (int stage = stages - 1; stage >= 0; --stage) {
        const int count = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rest)].count;
        counts[static_cast<std::size_t>(stage)] = count;
        rest -= count;
    }
    return counts;
}

} // namespace

Result<void> checkModelConfig(const ModelConfig& model)
{
    for (const Key& key : keys) {
        const int value = model.*key.field;
        if (value < key.least || value > key.most)
            return fail(ErrorCode::Usage,
                        "model: " + std::string(key.name) + "=" + std::to_string(value) + " is out of range",
                        "use a value from " + std::to_string(key.least) + " to " + std::to_string(key.most));
    }
    if (model.hidden % model.heads != 0)
        return fail(ErrorCode::Usage,
                    "model: hidden=" + std::to_string(model.hidden) +
                        " is not a multiple of heads=" + std::to_string(model.heads),
                    "choose heads that divide hidden");
    return {};
}

Result<ModelConfig> parseModelConfig(const std::string& text, ModelConfig defaults)
{
    ModelConfig model = defaults;
    unsigned seen = 0;
    if (text.ends_with(','))
        return fail(ErrorCode::Usage, "model '" + text + "': nothing after the last comma", std::string(example));
    for (const std::string_view item : itemsOf(text)) {
        const auto [name, value] = keyValueOf(item);
        if (!value)
            return fail(ErrorCode::Usage, "model: '" + std::string(item) + "' is not key=value", std::string(example));
        const Key* key = nullptr;
        for (const Key& candidate : keys)
            if (candidate.name == name) key = &candidate;
        if (!key)
            return fail(ErrorCode::Usage, "model: unknown key '" + std::string(name) + "'",
                        "the keys are layers, hidden, heads, seq and vocab");
        const auto bit = 1U << static_cast<unsigned>(key - keys);
        if (seen & bit)
            return fail(ErrorCode::Usage, "model: '" + std::string(name) + "' is given twice", std::string(example));
        seen |= bit;
        int number = 0;
        if (!readNumber(*value, number))
            return fail(ErrorCode::Usage,
                        "model: " + std::string(name) + "='" + std::string(*value) + "' is not a whole number",
                        "use a value from 1 to " + std::to_string(key->most));
        if (key->field == &ModelConfig::vocabulary && number < ModelConfig().vocabulary)
            return fail(ErrorCode::Usage, "model: vocab=" + std::to_string(number) + ", but tokens are bytes",
                        "use a value from 256 on");
        model.*key->field = number;
    }
    STAGEWRIGHT_CHECK(checkModelConfig(model));
    return model;
}

std::string toText(const ModelConfig& model)
{
    std::string text;
    for (const Key& key : keys)
        if (key.field != &ModelConfig::vocabulary || model.vocabulary != ModelConfig().vocabulary)
            text.append(text.empty() ? "" : ",").append(key.name).append("=").append(std::to_string(model.*key.field));
    return text;
}

Result<std::vector<StageSlice>> sliceModel(const ModelConfig& model, int stages, const std::vector<int>& stageLayers)
{
    if (stages < 1) return fail(ErrorCode::Usage, std::to_string(stages) + " stages; at least 1 is needed");
    std::vector<int> counts = stageLayers;
    if (counts.empty()) {
        if (model.layers < stages)
            return fail(ErrorCode::Usage,
                        "the model has " + std::to_string(model.layers) + " layers for " + std::to_string(stages) +
                            " stages",
                        "use layers=" + std::to_string(stages) + " or more, or fewer ranks or chunks");
        counts = balancedLayers(model, stages);
    }
    if (counts.size() != static_cast<std::size_t>(stages))
        return fail(ErrorCode::Usage,
                    "layers are given for " + std::to_string(counts.size()) + " stages; the schedule has " +
                        std::to_string(stages),
                    "give one number for each stage");
    std::vector<StageSlice> slices;
    std::int64_t total = 0;
    for (int stage = 0; stage < stages; ++stage) {
        const int count = counts[static_cast<std::size_t>(stage)];
        StageSlice slice{stage, static_cast<int>(total), count, stage == 0, stage == stages - 1};
        if (count < 0 || (count == 0 && !slice.first && !slice.last))
            return fail(ErrorCode::Usage, "stage " + std::to_string(stage) + ": " + std::to_string(count) + " layers",
                        "give every stage a layer; the first and the last may have none");
        total += count;
        if (total > model.layers) break;
        slices.push_back(slice);
    }
    if (total != model.layers) {
        total = 0;
        for (const int count : counts) total += count;
        return fail(ErrorCode::Usage,
                    "the stages' layers sum to " + std::to_string(total) + "; the model has " +
                        std::to_string(model.layers),
                    "change the numbers or layers=");
    }
    return slices;
}

Result<std::vector<int>> layersOfStages(const ModelConfig& model, int stages, const std::vector<int>& stageLayers)
{
    STAGEWRIGHT_TRY(const auto slices, sliceModel(model, stages, stageLayers));
    std::vector<int> out;
    for (const StageSlice& slice : slices) out.push_back(slice.layerCount);
    return out;
}

} // namespace stagewright
