// Planners' problems of any bytes: solved or refused in words; a number that is changed comes back. Layer tables likewise:
// what is read has a step and a memory that are numbers.
#include <cmath>
#include <cstdint>
#include <stop_token>
#include <string>

#include "require.h"
#include "schedules/layout/layer_table.h"
#include "schedules/layout/layout.h"
#include "schedules/planner/problem.h"
#include "schedules/survey/uneven.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::stop_source stop;
    Progress progress;
    progress.stop = stop.get_token();
    progress.report = [&](std::string_view, std::int64_t done, std::int64_t) {
        if (done > 200) stop.request_stop(); // what it says of a large problem is the same
    };
    if (const auto lines = unevenProblem(text); lines && lines->samples < 200 && lines->devices.size() < 50) {
        MixedQuestion question;
        question.lines = "any";
        question.problem = *lines;
        const MixedAnswer divided = mixedSurvey(question);
        require(!divided.error.empty() || !unevenTable(divided, question).rows.empty());
        require(!unevenPlot(divided, question).nothing.empty() && !question.setup().empty());
    }
    const auto answer = solveProblem(text, progress);
    require(answer ? !answer->json.empty() : !answer.error().message.empty());
    if (const auto problem = interOperatorProblem(text))
        if (const auto plan = planInterOperator(*problem, progress); plan && *plan) {
            const auto layout = layoutOfPlan(*problem, **plan);
            require(layout ? parseLayout(toJson(*layout)).has_value() : !layout.error().message.empty());
        }
    if (const auto table = parseLayerTable(text)) {
        ModelPreset model = *parseModelShape("layers=2,hidden=64,heads=4,seq=32,vocab=256,tied");
        model.layers = 0;
        for (const TableLayer& layer : table->layers) model.layers += layer.kind == ModelLayer::Kind::Block ? 1 : 0;
        const Cluster cluster = *parseCluster("8@a100");
        const auto made = constantsOf(*table, model, cluster, {});
        require(made ? !made->words.empty() : !made.error().message.empty());
        for (const KeptActivations kept : {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs})
            if (const Parallelism way{2, 1, 1, 4, 2, 8, kept, 3}; made) {
                require(std::isfinite(stepOf(model, cluster, way, made->constants).sum()));
                require(std::isfinite(memoryOf(model, way, made->constants).sum()));
            }
    } else {
        require(!table.error().message.empty() && !table.error().remedy.empty());
    }
    for (const ProblemNumber& number : numbersOf(text)) {
        const auto other = withNumber(text, number.key, 3);
        require(other.has_value());
        bool found = false;
        for (const ProblemNumber& now : numbersOf(*other)) found = found || (now.key == number.key && now.value == 3);
        require(found);
    }
    return 0;
}
