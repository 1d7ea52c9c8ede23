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
    const auto valueOf = [&](std::string_view option) -> std::string {
        for (std::size_t i = 0; i + 1 < run.arguments.size(); ++i)
            if (run.arguments[i] == option) return run.arguments[i + 1];
        return {};
    };
    if (const auto ranks = wholeOf(valueOf("--ranks"))) settings.ranks = *ranks;
    if (const auto microbatches = wholeOf(valueOf("--microbatches"))) settings.microbatches = *microbatches;
    if (const auto chunks = wholeOf(valueOf("--chunks"))) settings.chunks = *chunks;

    RecordPlan plan;
    plan.schedules = partsOf(valueOf("--schedule"), ",");
    if (plan.schedules.empty())
        return fail(ErrorCode::Usage, fmt::format("run '{}' names no schedule", run.id),
                    "write record: --schedule NAME");
    std::string names;
    for (const std::string& name : plan.schedules) {
        std::string word = name;
        Canvas canvas{{}, settings};
        const Check* check = name == "mine" ? checkBefore(lesson, run) : lesson.check(name);
        const auto answer = answers.find(name == "mine" || !check ? name : check->id);
        if (answer != answers.end()) {
            canvas.schedule = answer->second;
        } else if (check) {
            STAGEWRIGHT_TRY(auto solved, canvasOf(lesson, *lesson.solutionOf(check->id)));
            canvas.schedule = std::move(solved.schedule);
        } else if (run.edits.empty()) {
            names += (names.empty() ? "" : ",") + word;
            continue;
        } else {
            STAGEWRIGHT_TRY(canvas.schedule, makeFor(name, settings));
        }
        STAGEWRIGHT_TRY(auto edited, applyEdits(run.edits, std::move(canvas)));
        STAGEWRIGHT_TRY(auto csv, writeScheduleCsv(edited.schedule));
        word = fmt::format("{}/{}-{}.csv", folder, run.id, name);
        plan.files.emplace_back(word, std::move(csv));
        names += (names.empty() ? "" : ",") + word;
    }
    for (std::size_t i = 0; i < run.arguments.size(); ++i) {
        plan.arguments.push_back(run.arguments[i]);
        if (run.arguments[i] == "--schedule" && i + 1 < run.arguments.size()) {
            plan.arguments.push_back(names);
            ++i;
        }
    }
    const auto otherwise = [&](const char* option, const std::string& value) {
        if (!valueOf(option).empty()) return;
        plan.arguments.emplace_back(option);
        plan.arguments.push_back(value);
    };
    otherwise("--ranks", std::to_string(settings.ranks));
    otherwise("--microbatches", std::to_string(settings.microbatches));
    otherwise("--clock", "virtual");
    otherwise("--model", "layers=8,hidden=256,heads=4,seq=64");
    otherwise("--microbatch-size", "4");
    otherwise("--steps", brief ? "2" : "3");
    for (std::size_t i = 0; brief && i + 1 < plan.arguments.size(); ++i)
        if (plan.arguments[i] == "--steps") plan.arguments[i + 1] = "2";
    otherwise("--warmup", "1");
    otherwise("--seed", "7");
    return plan;
}

} // namespace stagewright::lessons
