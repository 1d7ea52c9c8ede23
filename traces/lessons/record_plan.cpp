#include "traces/lessons/record_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

// The check whose answer is "mine" if the learner's canvas is not given: the last one of the run's step.
const Check* checkBefore(const Lesson& lesson, const RunBlock& run)
{
    const Check* found = nullptr;
    for (const Check* check : lesson.all<Check>())
        if (check->step <= run.step && lesson.solutionOf(check->id)) found = check;
    return found;
}

} // namespace

Result<RecordPlan> recordPlan(const Lesson& lesson, const RunBlock& run, const std::string& folder,
                              const std::map<std::string, Schedule>& answers, bool brief)
{
    const Step* step = lesson.step(run.step);
    Settings settings = step ? step->settings : lesson.settings;
    RecordPlan plan;
    Setup& setup = plan.setup;
    STAGEWRIGHT_TRY(setup, withOptions({}, run.arguments));
    const auto otherwise = [&setup](const char* key, const std::string& value) {
        if (!setup.names("--" + std::string(key))) static_cast<void>(setKey(setup, *findSetupKey(key), value));
    };
    otherwise("ranks", std::to_string(settings.ranks));
    otherwise("microbatches", std::to_string(settings.microbatches));
    otherwise("clock", "virtual");
    otherwise("model", "layers=8,hidden=256,heads=4,seq=64");
    otherwise("steps", "3");
    otherwise("seed", "7");
    if (brief) setup.steps = 2;
    settings.ranks = setup.ranks;
    settings.microbatches = setup.microbatches;
    if (setup.names("--chunks")) settings.chunks = setup.chunks;

    plan.schedules = setup.schedules;
    if (plan.schedules.empty())
        return fail(ErrorCode::Usage, fmt::format("run '{}' names no schedule", run.id),
                    "write record: --schedule NAME");
    setup.schedules.clear();
    for (const std::string& name : plan.schedules) {
        Canvas canvas{{}, settings};
        const Check* check = name == "mine" ? checkBefore(lesson, run) : lesson.check(name);
        const auto answer = answers.find(name == "mine" || !check ? name : check->id);
        if (answer != answers.end()) {
            canvas.schedule = answer->second;
        } else if (check) {
            STAGEWRIGHT_TRY(auto solved, canvasOf(lesson, *lesson.solutionOf(check->id)));
            canvas.schedule = std::move(solved.schedule);
        } else if (run.edits.empty()) {
            setup.schedules.push_back(name);
            continue;
        } else {
            STAGEWRIGHT_TRY(canvas.schedule, makeFor(name, settings));
        }
        STAGEWRIGHT_TRY(auto edited, applyEdits(run.edits, std::move(canvas)));
        STAGEWRIGHT_TRY(auto csv, writeScheduleCsv(edited.schedule));
        setup.schedules.push_back(fmt::format("{}/{}-{}.csv", folder, run.id, name));
        plan.files.emplace_back(setup.schedules.back(), std::move(csv));
    }
    return plan;
}

} // namespace stagewright::lessons
