#include "app/cli/verbs/lesson_answers.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "schedules/base/text.h"

namespace stagewright {

using namespace lessons;

Result<void> readAnswer(const Lesson& lesson, const std::string& text, HandedIn& given)
{
    const auto [key, file] = keyValueOf(text);
    const std::string id(file ? key : "");
    const bool named = !id.empty() && lesson.check(id);
    if (file && !named && !fileExists(text))
        return fail(ErrorCode::Usage, fmt::format("--answer {}: the lesson has no check '{}'", text, id),
                    "checks are " + joined(idsOf<Check>(lesson)));
    const std::string path(named ? *file : text);
    STAGEWRIGHT_TRY(auto schedule, readCsvFile(path, {.everyRow = true}));
    given.orders[named ? id : std::string()] = std::move(schedule);
    return {};
}

Result<void> readSaid(const Lesson& lesson, const std::string& text, Learner& learner)
{
    const auto [id, value] = keyValueOf(text);
    std::vector<std::string> ids = idsOf<Quiz>(lesson);
    for (std::string& one : idsOf<Predict>(lesson)) ids.push_back(std::move(one));
    if (value && std::find(ids.begin(), ids.end(), id) != ids.end()) {
        learner.said[std::string(id)] = *value;
        return {};
    }
    return fail(ErrorCode::Usage, fmt::format("--say {}: the lesson has no such question", text),
                ids.empty() ? "it has none" : "write ID=VALUE; questions are " + joined(ids));
}

} // namespace stagewright
