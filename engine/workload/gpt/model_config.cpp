#include "engine/workload/gpt/model_config.h"

#include <string_view>

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

} // namespace stagewright
