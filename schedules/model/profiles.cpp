#include "schedules/model/profiles.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

// Milliseconds; factors: both of a microbatch; megabytes.
struct LayerProfile {
    std::string_view name;
    int batch;
    double forward, backward, factors, inversion;
    double activations, factorMemory;
};

constexpr LayerProfile layerProfiles[] = {
    {"bert-large@p100", 8, 4.500, 7.653, 11.926, 126.74, 88.0, 168},
    {"bert-large@p100", 32, 16.100, 26.953, 43.500, 126.70, 352.1, 168},
    {"bert-large@v100", 8, 2.901, 4.548, 7.757, 80.776, 88.0, 168},
    {"bert-large@v100", 32, 10.386, 16.285, 27.447, 80.846, 352.1, 168},
    {"bert-base@p100", 8, 2.734, 4.651, 6.804, 71.644, 66.5, 94.5},
    {"bert-base@p100", 32, 9.748, 16.450, 25.547, 71.667, 264.1, 94.5},
};

} // namespace

Result<CostModel> profiledCosts(const Schedule& schedule, std::string_view text, int pieces)
{
    const auto [name, setting] = keyValueOf(text, ':');
    int batch = 32;
    if (setting) {
        const auto [key, value] = keyValueOf(*setting);
        const auto number = value ? wholeOf<int>(*value) : std::nullopt;
        batch = key == "b" && number ? *number : 0;
    }
    const auto* found =
        std::find_if(std::begin(layerProfiles), std::end(layerProfiles),
                     [&, which = name](const LayerProfile& one) { return one.name == which && one.batch == batch; });
    if (found == std::end(layerProfiles))
        return fail(ErrorCode::Usage, fmt::format("there is no profile 'pipefisher:{}'", text),
                    "profiles are bert-large@p100, bert-large@v100 and bert-base@p100, each with :b=8 or :b=32");
    const auto nanos = [](double milliseconds) { return static_cast<Nanos>(std::llround(milliseconds * 1e6)); };
    CostModel out(schedule.stages, CostSource::Analytic);
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const Nanos backward = nanos(found->backward), input = backward / 2;
        out.setPasses(stage, nanos(found->forward), input, backward - input);
        out.setDuration(OpKind::FactorA, stage, nanos(found->factors / 2));
        out.setDuration(OpKind::FactorG, stage, nanos(found->factors / 2));
        out.setDuration(OpKind::Invert, stage, nanos(found->inversion / std::max(1, pieces)));
        StageMemory& memory = out.memory[static_cast<std::size_t>(stage)];
        memory.activation = std::llround(found->activations * 1e6);
        memory.freedAtInput = memory.activation / 2;
        memory.optimizer = std::llround(found->factorMemory * 1e6);
    }
    out.origin = fmt::format("PipeFisher's profile {}, {} samples per microbatch, one layer on a stage", name, batch);
    return out;
}

} // namespace stagewright
