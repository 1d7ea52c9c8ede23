#include "app/cli/verbs/lesson_class.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/cli/text/lesson_text.h"
#include "app/cli/text/table.h"
#include "app/cli/verbs/lesson_answers.h"
#include "schedules/base/csv_line.h"
#include "schedules/base/folder.h"
#include "schedules/base/text.h"
#include "schedules/text/csv.h"
#include "traces/lessons/check_lesson.h"
#include "traces/lessons/progress_file.h"

namespace stagewright {

using namespace lessons;

namespace {

struct Pupil {
    std::map<std::string, HandedIn> lessons;                           // by id
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> when; // first and last answer, ms; by lesson
    std::string fault;                                                 // a file that can't be read
};

// lessons.json of the learner's program.
Result<void> readProgress(const std::vector<Lesson>& course, const std::string& file, Pupil& pupil)
{
    STAGEWRIGHT_TRY(auto progress, LearnerProgress::read(file));
    for (const KeptAnswer& answer : progress.answers()) {
        const auto lesson =
            std::find_if(course.begin(), course.end(), [&](const Lesson& one) { return one.id == answer.lesson; });
        if (lesson == course.end()) continue;
        HandedIn& given = pupil.lessons[answer.lesson];
        if (auto taken = given.take(*lesson, answer); !taken)
            return tl::unexpected(std::move(taken.error()).with(file));
        if (answer.unixMs <= 0) continue;
        auto& when = pupil.when.try_emplace(answer.lesson, answer.unixMs, answer.unixMs).first->second;
        when = {std::min(when.first, answer.unixMs), std::max(when.second, answer.unixMs)};
    }
    return {};
}

Result<void> readFileOf(const std::vector<Lesson>& course, const std::string& file, const std::string& name,
                        Pupil& pupil)
{
    if (name.ends_with(".json")) return readProgress(course, file, pupil);
    // An order or a line belongs to every lesson that has its question; without a name to the first one.
    if (name.ends_with(".csv")) {
        const auto dot = name.find('.');
        const std::string check = name.size() > dot + 5 ? name.substr(dot + 1, name.size() - dot - 5) : std::string();
        for (const Lesson& lesson : course)
            if (check.empty() || lesson.check(check) != nullptr || course.size() == 1)
                return readAnswer(lesson, check.empty() ? file : fmt::format("{}={}", check, file),
                                  pupil.lessons[lesson.id]);
        return fail(ErrorCode::Usage, fmt::format("{}: the course has no check '{}'", file, check),
                    "name the file after one of its checks");
    }
    STAGEWRIGHT_TRY(auto text, readFile(file));
    for (const std::string_view line : split(text, "\n")) {
        if (!keyValueOf(line).value) continue;
        Result<void> read;
        for (const Lesson& lesson : course)
            if (read = readSaid(lesson, std::string(line), pupil.lessons[lesson.id].learner); read) break;
        if (!read) return read;
    }
    return {};
}

// What was asked, in the order of the lesson: verdicts, guesses beside their answers, and what has no answer.
std::vector<GradedBlock> everyRow(const Lesson& lesson, const HandedIn& given, const std::vector<GradedBlock>& graded)
{
    std::vector<GradedBlock> rows;
    const auto open = [](const std::string& id, const char* kind) {
        GradedBlock row{id, kind, {}};
        row.grade.message = "not answered";
        return row;
    };
    for (const Predict* predict : lesson.all<Predict>()) {
        GradedBlock row = open(predict->id, "guess");
        const auto said = given.learner.said.find(predict->id);
        const Step* step = lesson.step(0);
        if (said != given.learner.said.end() && step != nullptr) {
            row.grade.message = "guessed " + said->second;
            if (auto start = startOf(lesson, *step))
                if (const auto truth =
                        StepState(lesson, *step, std::move(*start), given.learner).evaluate(predict->truth))
                    row.grade.message += ", it is " + toText(*truth);
        }
        rows.push_back(std::move(row));
    }
    std::set<std::string> seen;
    for (const GradedBlock& one : graded) {
        seen.insert(one.id);
        rows.push_back(one);
    }
    for (const Check* check : lesson.all<Check>())
        if (check->graded && missingFor(lesson, *check).empty() && !seen.contains(check->id))
            rows.push_back(open(check->id, "check"));
    for (const Quiz* quiz : lesson.all<Quiz>())
        if (missingFor(lesson, *quiz).empty() && !seen.contains(quiz->id)) rows.push_back(open(quiz->id, "quiz"));
    return rows;
}

bool counts(const GradedBlock& row) { return row.kind == "check" || row.kind == "quiz"; }

} // namespace

Result<int> gradeClass(const std::vector<Lesson>& course, const std::string& folder, bool csv, Session& session)
{
    if (!isFolder(folder))
        return fail(ErrorCode::Unreadable, fmt::format("{} is not a folder", folder),
                    "name the folder with the answers");
    std::map<std::string, Pupil> pupils;
    for (const std::string& name : namesIn(folder)) {
        const std::string file = std::filesystem::path(folder) / name;
        if (!name.ends_with(".csv") && !name.ends_with(".txt") && !name.ends_with(".json")) continue;
        Pupil& pupil = pupils[name.substr(0, name.find('.'))];
        std::error_code unknown;
        if (!std::filesystem::is_regular_file(file, unknown)) // a pipe would be waited for
            pupil.fault = fmt::format("{} is not a file", file);
        else if (auto read = readFileOf(course, file, name, pupil); !read)
            pupil.fault = read.error().message;
    }
    if (pupils.empty())
        return fail(ErrorCode::Usage, fmt::format("{} contains no answers", folder),
                    "name them NAME.csv, NAME.CHECK.csv, NAME.txt or NAME.json");
    if (csv) session.out(csvLine({"name", "lesson", "kind", "id", "verdict", "grade", "value", "minutes", "message"}));
    Json all = Json::array();
    bool every = true;
    Table table({{"name"}, {"lesson"}, {"asked"}, {"verdict"}, {"min", Table::Align::Right}, {"message"}});
    for (auto& [name, pupil] : pupils) {
        int right = 0, asked = 0, answered = 0;
        std::optional<double> minutes;
        bool passes = pupil.fault.empty();
        const auto tell = [&, &who = name](const std::string& lesson, const GradedBlock& row,
                                           const std::string& verdict, const std::string& time) {
            std::string value;
            for (const Meter& meter : row.grade.meters)
                if (!meter.sign.empty())
                    value += (value.empty() ? "" : "; ") + meter.subject + "=" + lessons::toText(meter.yours);
            if (csv)
                session.out(
                    csvLine({who, lesson, row.kind, row.id, verdict, row.grade.medal, value, time, row.grade.message}));
            table.add({who, lesson,
                       row.kind == "guess" ? row.id + " (guess)"
                       : row.id.empty()    ? row.kind
                                           : row.id,
                       verdict, time, row.grade.message},
                      row.kind == "total"                  ? Tint::Bold
                      : row.grade.verdict == Verdict::Pass ? Tint::Good
                                                           : Tint::None);
        };
        Json lessonsJson = Json::array();
        for (const Lesson& lesson : course) {
            const HandedIn& given = pupil.lessons[lesson.id];
            const auto graded = gradeAll(lesson, given);
            if (!graded.empty()) passes = passes && passed(given, graded);
            const auto when = pupil.when.find(lesson.id);
            const std::optional<double> took =
                when == pupil.when.end()
                    ? std::nullopt
                    : std::optional(static_cast<double>(when->second.second - when->second.first) / 60000);
            if (took) minutes = minutes.value_or(0) + *took;
            const auto rows = everyRow(lesson, given, graded);
            for (const GradedBlock& row : rows) {
                asked += counts(row) ? 1 : 0;
                answered += counts(row) && row.grade.verdict != Verdict::Open ? 1 : 0;
                right += counts(row) && row.grade.verdict == Verdict::Pass ? 1 : 0;
                tell(lesson.id, row, std::string(lessons::toText(row.grade.verdict)), {});
            }
            Json one = gradesJson(lesson, rows);
            one["minutes"] = took ? Json(*took) : Json(nullptr);
            lessonsJson.push_back(std::move(one));
        }
        if (!pupil.fault.empty()) {
            GradedBlock row{"", "file", {}};
            row.grade.verdict = Verdict::Fail;
            row.grade.message = pupil.fault;
            tell({}, row, "fail", {});
        }
        GradedBlock total{"", "total", {}};
        total.grade.verdict = passes ? Verdict::Pass : Verdict::Fail;
        total.grade.message = fmt::format("{} right, {} not answered", right, asked - answered);
        tell({}, total, fmt::format("{}/{}", right, asked), minutes ? fmt::format("{:.0f}", *minutes) : std::string());
        every = every && passes && right > 0;
        Json object = {{"name", name},   {"passed", passes && right > 0},
                       {"right", right}, {"answered", answered},
                       {"asked", asked}, {"minutes", minutes ? Json(*minutes) : Json(nullptr)}};
        object["fault"] = textOrNull(pupil.fault);
        object["lessons"] = std::move(lessonsJson);
        all.push_back(std::move(object));
    }
    if (session.json)
        session.answer(
            {{"lesson", course.size() == 1 ? Json(course.front().id) : Json(nullptr)}, {"answers", std::move(all)}});
    if (!csv) session.out(table.text(session.colourOut()));
    return every ? ExitDone : ExitDoesNotHold;
}

} // namespace stagewright
