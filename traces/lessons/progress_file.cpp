#include "traces/lessons/progress_file.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/change_lock.h"
#include "schedules/base/nesting.h"
#include "schedules/base/small_file.h"
#include "traces/format/atomic_file.h"
#include "traces/lessons/check_lesson.h"
#include "traces/lessons/handed_in.h"
#include "traces/lessons/lesson_library.h"

namespace stagewright::lessons {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* formatName = "stagewright-lessons";

Mark markOfText(const std::string& text)
{
    for (const Mark mark : {Mark::Guessed, Mark::Shown, Mark::Done, Mark::Proved})
        if (text == toText(mark)) return mark;
    return Mark::None;
}

// Whether a kept answer passes the lesson as it is now.
bool passes(const Lesson& lesson, const KeptAnswer& answer)
{
    HandedIn given;
    if (!given.take(lesson, answer)) return false;
    const auto graded = gradeAll(lesson, given);
    return std::any_of(graded.begin(), graded.end(), [&answer](const GradedBlock& one) {
        return one.id == answer.check && one.grade.verdict == Verdict::Pass;
    });
}

} // namespace

std::string_view toText(Mark mark)
{
    switch (mark) {
    case Mark::None: return "none";
    case Mark::Guessed: return "guessed";
    case Mark::Shown: return "shown";
    case Mark::Done: return "done";
    case Mark::Proved: return "proved";
    }
    return "none";
}

std::string LearnerProgress::defaultPath() { return learnerFolder() + "/lessons.json"; }

Result<LearnerProgress> LearnerProgress::read(const std::string& path)
{
    LearnerProgress out;
    std::error_code code;
    if (!std::filesystem::exists(path, code)) return out;
    constexpr std::size_t mostBytes = std::size_t{16} << 20;
    const auto damaged = [&](const std::string& what) {
        return fail(ErrorCode::Unreadable, fmt::format("{}: {}", path, what),
                    "move it away; the lessons then start from scratch");
    };
    const auto text = readSmallFile(path, mostBytes);
    if (!text) return damaged("it can't be read, or is too large");
    if (nestedTooDeep(*text)) return damaged("it is nested too deep");
    const Json object = Json::parse(*text, nullptr, false);
    if (!object.is_object() || object.value("format", Json()) != Json(formatName) || !object.contains("answers") ||
        !object["answers"].is_array())
        return damaged("it is not a file of lesson progress");
    if (const Json version = object.value("version", Json(0)); version != Json(0) && version != Json(1))
        return damaged(fmt::format("it has version {}, this program reads version 1",
                                   version.dump(-1, ' ', true, Json::error_handler_t::replace)));
    try {
        for (const Json& one : object["answers"]) {
            KeptAnswer answer;
            answer.lesson = one.at("lesson").get<std::string>();
            answer.check = one.at("check").get<std::string>();
            answer.hash = std::stoull(one.at("hash").get<std::string>(), nullptr, 16);
            answer.mark = markOfText(one.at("mark").get<std::string>());
            answer.csv = one.value("csv", std::string());
            answer.settings = one.value("settings", std::string());
            answer.said = one.value("said", std::string());
            answer.figure = one.value("figure", std::string());
            answer.unixMs = one.value("unix_ms", std::int64_t{0});
            out.keep(std::move(answer));
        }
    } catch (const std::exception& fault) {
        return damaged(fmt::format("an answer in it is damaged: {}", fault.what()));
    }
    return out;
}

Result<void> LearnerProgress::write(const std::string& path) const
{
    Json answers = Json::array();
    for (const KeptAnswer& one : m_answers)
        answers.push_back({{"lesson", one.lesson},
                           {"check", one.check},
                           {"hash", fmt::format("{:016x}", one.hash)},
                           {"mark", std::string(toText(one.mark))},
                           {"csv", one.csv},
                           {"settings", one.settings},
                           {"said", one.said},
                           {"figure", one.figure},
                           {"unix_ms", one.unixMs}});
    const Json object = {{"format", formatName}, {"version", 1}, {"answers", std::move(answers)}};
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
    return writeFileAtomically(path, object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<LearnerProgress> LearnerProgress::change(const std::string& path,
                                                const std::function<void(LearnerProgress&)>& change)
{
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
    STAGEWRIGHT_TRY(const auto lock, ChangeLock::take(path));
    auto progress = read(path);
    if (!progress) return progress;
    change(*progress);
    STAGEWRIGHT_CHECK(progress->write(path));
    return progress;
}

const KeptAnswer* LearnerProgress::find(const std::string& lesson, const std::string& check) const
{
    for (const KeptAnswer& one : m_answers)
        if (one.lesson == lesson && one.check == check) return &one;
    return nullptr;
}

void LearnerProgress::keep(KeptAnswer answer)
{
    const auto found = std::find_if(m_answers.begin(), m_answers.end(), [&](const KeptAnswer& one) {
        return one.lesson == answer.lesson && one.check == answer.check;
    });
    if (found == m_answers.end()) {
        m_answers.push_back(std::move(answer));
        return;
    }
    const bool done = found->mark == Mark::Done || found->mark == Mark::Proved;
    if (done && answer.mark < found->mark && answer.hash == found->hash) return; // Done stays Done
    *found = std::move(answer);
}

void LearnerProgress::forget(const std::string& lesson)
{
    std::erase_if(m_answers, [&](const KeptAnswer& one) { return one.lesson == lesson; });
}

Mark LearnerProgress::markOf(const Lesson& lesson) const
{
    bool every = true, some = false, proved = false, checks = false;
    const auto look = [&](const std::string& id) {
        const KeptAnswer* one = find(lesson.id, id);
        checks = true;
        some = some || (one && one->mark != Mark::None);
        every = every && one && (one->mark == Mark::Done || one->mark == Mark::Proved);
    };
    for (const Check* check : lesson.all<Check>())
        if (check->graded && missingFor(lesson, *check).empty()) look(check->id);
    for (const Quiz* quiz : lesson.all<Quiz>())
        if (missingFor(lesson, *quiz).empty()) look(quiz->id);
    for (const KeptAnswer& one : m_answers) {
        if (one.lesson != lesson.id) continue;
        some = some || one.mark != Mark::None;
        proved = proved || one.mark == Mark::Proved;
    }
    if (every && checks) return proved ? Mark::Proved : Mark::Done;
    return some ? Mark::Guessed : Mark::None;
}

void LearnerProgress::regrade(const Lesson& lesson)
{
    for (KeptAnswer& one : m_answers) {
        if (one.lesson != lesson.id || one.hash == lesson.hash) continue;
        const bool graded = lesson.check(one.check) || lesson.quiz(one.check);
        if (graded && (one.mark == Mark::Done || one.mark == Mark::Shown || one.mark == Mark::Proved) &&
            !passes(lesson, one))
            one.mark = Mark::Guessed;
        one.hash = lesson.hash;
    }
}

} // namespace stagewright::lessons
