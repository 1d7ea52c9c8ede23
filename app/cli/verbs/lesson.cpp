#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/cli/text/lesson_text.h"
#include "app/cli/text/table.h"
#include "app/cli/verbs/lesson_answers.h"
#include "app/cli/verbs/lesson_class.h"
#include "app/cli/verbs/lesson_runs.h"
#include "schedules/base/csv_line.h"
#include "schedules/base/text.h"
#include "schedules/text/csv.h"
#include "traces/format/atomic_file.h"
#include "traces/lessons/check_lesson.h"
#include "traces/lessons/course.h"
#include "traces/lessons/figure.h"
#include "traces/lessons/glossary.h"
#include "traces/lessons/lesson_file.h"
#include "traces/lessons/lesson_library.h"
#include "traces/lessons/progress_file.h"

namespace stagewright {

using namespace lessons;
namespace {

struct LessonChoice {
    std::vector<std::string> names;
    bool check = false;
    bool record = false;
    bool notes = false;
    std::vector<std::string> answers; // [ID=]FILE.csv
    std::vector<std::string> said;    // ID=VALUE
    std::vector<std::string> settings;
    std::string runs;
    std::string answerFolder;
    bool csv = false;
    std::string makeNew;
    std::string start; // file for the starting order
    std::string step;
    std::string figures;
    int hints = 0;
    bool show = false;
    bool startOver = false;
    bool glossary = false;
};

std::string markText(Mark mark)
{
    switch (mark) {
    case Mark::None: return "";
    case Mark::Guessed: return "begun";
    case Mark::Shown: return "shown";
    case Mark::Done: return "done";
    case Mark::Proved: return "done and verified";
    }
    return "";
}

// An unreadable progress file is reported, and the lessons work without it.
LearnerProgress progressOf(Session& session)
{
    auto read = LearnerProgress::read(LearnerProgress::defaultPath());
    if (read) return std::move(*read);
    session.warn(read.error().message + (read.error().remedy.empty() ? "" : "; " + read.error().remedy));
    return {};
}

Result<int> listAll(Session& session)
{
    const Library library = loadLibrary();
    LearnerProgress progress = progressOf(session);
    for (const Lesson& lesson : library.lessons) progress.regrade(lesson);
    if (session.json) {
        Json all = Json::array();
        for (const Lesson& lesson : library.lessons) {
            const auto missing = missingNeeds(lesson.needs);
            all.push_back({{"number", lesson.number > 0 ? Json(lesson.number) : Json(nullptr)},
                           {"lesson", lesson.id},
                           {"title", lesson.title},
                           {"shelf", textOrNull(lesson.shelf)},
                           {"minutes", lesson.minutes > 0 ? Json(lesson.minutes) : Json(nullptr)},
                           {"after", lesson.after},
                           {"needs", missing},
                           {"mark", std::string(lessons::toText(progress.markOf(lesson)))},
                           {"file", lesson.file}});
        }
        Json faults = Json::array();
        for (const Error& fault : library.faults) faults.push_back(fault.message);
        session.answer({{"lessons", std::move(all)}, {"faults", std::move(faults)}});
    }
    Table table({{"", Table::Align::Right}, {"lesson"}, {"question"}, {"min", Table::Align::Right}, {""}});
    int done = 0, proved = 0;
    for (const Lesson& lesson : library.lessons) {
        const auto missing = missingNeeds(lesson.needs);
        const Mark mark = progress.markOf(lesson);
        done += mark == Mark::Done || mark == Mark::Proved;
        proved += mark == Mark::Proved;
        table.add({lesson.number > 0 ? std::to_string(lesson.number) : "", lesson.id, lesson.title,
                   lesson.minutes > 0 ? std::to_string(lesson.minutes) : "",
                   missing.empty() ? markText(mark) : "needs " + missing.front()},
                  missing.empty() ? Tint::None : Tint::Dim);
    }
    session.out(table.text(session.colourOut()));
    session.out(fmt::format("\n{} of {} done, {} verified on this machine. 'stagewright lesson NAME' prints one.\n",
                            done, library.lessons.size(), proved));
    for (const Error& fault : library.faults) session.warn(fault.message);
    return ExitDone;
}

Result<int> listCourse(const Course& course, Session& session)
{
    Json all = Json::array();
    Table table({{"", Table::Align::Right}, {"lesson"}, {"question"}, {"min", Table::Align::Right}});
    int minutes = 0;
    for (const Lesson& lesson : course.lessons) {
        minutes += lesson.minutes;
        all.push_back({{"place", lesson.place},
                       {"lesson", lesson.id},
                       {"title", lesson.title},
                       {"minutes", lesson.minutes > 0 ? Json(lesson.minutes) : Json(nullptr)},
                       {"file", lesson.file}});
        table.add({std::to_string(lesson.place), lesson.id, lesson.title,
                   lesson.minutes > 0 ? std::to_string(lesson.minutes) : ""});
    }
    if (session.json) session.answer({{"course", course.title}, {"lessons", std::move(all)}});
    session.out(fmt::format("{}: {}, {} minutes\n\n", course.title,
                            plural(static_cast<long long>(course.lessons.size()), "lesson"), minutes));
    session.out(table.text(session.colourOut()));
    return ExitDone;
}

Result<int> printGlossary(const LessonChoice& options, Session& session)
{
    std::vector<const Term*> shown;
    for (const std::string& name : options.names) {
        const Term* term = findTerm(name);
        if (!term) {
            std::vector<std::string> names;
            for (const Term& one : glossary()) names.push_back(one.name);
            const std::string near = nearestName(name, names);
            return fail(ErrorCode::Usage, fmt::format("the glossary has no '{}'", name),
                        near.empty() ? "omit the name to print all terms" : "did you mean " + near + "?");
        }
        shown.push_back(term);
    }
    if (options.names.empty())
        for (const Term& term : glossary()) shown.push_back(&term);
    Json terms = Json::array();
    for (const Term* term : shown) {
        terms.push_back({{"id", term->id},
                         {"name", term->name},
                         {"aliases", term->aliases},
                         {"definition", term->definition},
                         {"related", term->related},
                         {"lesson", textOrNull(term->lesson)}});
        std::string also;
        for (const std::string& alias : term->aliases) also += (also.empty() ? "also " : "; ") + alias;
        session.out(tinted(term->name, Tint::Bold, session.colourOut()) + "\n");
        if (!also.empty()) session.out("  " + tinted(also, Tint::Dim, session.colourOut()) + "\n");
        session.out("  " + term->definition + "\n");
        if (!term->lesson.empty()) session.out("  lesson: " + term->lesson + "\n");
    }
    if (session.json) session.answer({{"terms", std::move(terms)}});
    return ExitDone;
}

Result<int> checkAll(const LessonChoice& options, Session& session)
{
    const Library library = loadLibrary();
    std::vector<Lesson> chosen;
    for (const std::string& name : options.names) {
        if (isCourse(name)) {
            STAGEWRIGHT_TRY(auto course, readCourse(name));
            for (Lesson& one : course.lessons) chosen.push_back(std::move(one));
            continue;
        }
        STAGEWRIGHT_TRY(auto lesson, findLesson(name));
        chosen.push_back(std::move(lesson));
    }
    if (options.names.empty()) {
        if (!library.faults.empty()) return tl::unexpected(library.faults.front());
        chosen = library.lessons;
    }
    CheckOptions checking;
    for (const Lesson& lesson : library.lessons) checking.lessons.push_back(lesson.id);
    for (const Lesson& lesson : chosen) checking.lessons.push_back(lesson.id);
    bool sound = true;
    int statements = 0;
    Json all = Json::array();
    for (const Lesson& lesson : chosen) {
        checking.recorded = {};
        checking.judgeRuns = false;
        if (options.record && missingNeeds(lesson.needs).empty()) {
            auto recorded = recordLesson(lesson, {}, true, session);
            if (!recorded) return tl::unexpected(std::move(recorded.error()).with(lesson.file));
            checking.recorded = std::move(*recorded);
            checking.judgeRuns = true;
        }
        const LessonReport report = checkLesson(lesson, checking);
        sound = sound && report.sound();
        statements += report.statements;
        if (session.json) all.push_back(reportJson(report));
        session.out(findingsText(report, session.colourOut(), options.notes));
        const int skipped = report.count(Severity::Skipped);
        session.out(fmt::format(
            "{}: {}; {}{}{}\n", lesson.id, report.sound() ? "sound" : "not sound",
            plural(report.statements, "statement"),
            report.count(Severity::Warning) > 0 ? ", " + plural(report.count(Severity::Warning), "warning") : "",
            skipped > 0 ? fmt::format(", {} skipped", skipped) : ""));
    }
    if (session.json) session.answer({{"sound", sound}, {"statements", statements}, {"lessons", std::move(all)}});
    return sound ? ExitDone : ExitDoesNotHold;
}

Result<int> gradeOne(const Lesson& lesson, const LessonChoice& options, Session& session)
{
    HandedIn given;
    given.set = joined(options.settings, " ");
    if (auto set = withSettings(lesson.settings, given.set); !set)
        return tl::unexpected(std::move(set.error()).with("--set"));
    for (const std::string& one : options.answers) STAGEWRIGHT_CHECK(readAnswer(lesson, one, given));
    for (const std::string& one : options.said) STAGEWRIGHT_CHECK(readSaid(lesson, one, given.learner));
    if (!options.runs.empty()) STAGEWRIGHT_CHECK(readLessonRuns(lesson, options.runs, given.learner));
    if (options.record) {
        std::map<std::string, Schedule> answers;
        for (const auto& [id, order] : given.orders) answers[id.empty() ? "mine" : id] = order;
        STAGEWRIGHT_TRY(auto recorded, recordLesson(lesson, answers, false, session));
        given.learner.runs = std::move(recorded.runs);
        given.learner.failures = std::move(recorded.failures);
    }
    const auto graded = gradeAll(lesson, given);
    if (graded.empty())
        return fail(ErrorCode::Usage, fmt::format("nothing in lesson {} takes this answer", lesson.id),
                    "'stagewright lesson " + lesson.id + "' prints its goals and questions");
    const bool right = passed(given, graded);
    if (session.json) {
        Json object = gradesJson(lesson, graded);
        object["passed"] = right;
        session.answer(object);
    }
    session.out(gradesText(graded, session.colourOut()));
    const auto kept = LearnerProgress::change(LearnerProgress::defaultPath(), [&](LearnerProgress& progress) {
        for (KeptAnswer& answer : keptOf(lesson, given, graded, unixMilliseconds())) progress.keep(std::move(answer));
    });
    if (!kept) session.warn("progress is not saved: " + kept.error().message);
    return right ? ExitDone : ExitDoesNotHold;
}

Result<int> makeTemplate(const std::string& name, Session& session)
{
    std::string path = name;
    if (!path.ends_with(".md")) path += ".md";
    std::string id = path.substr(path.rfind('/') + 1);
    id.resize(id.size() - 3);
    for (const char c : id)
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return fail(ErrorCode::Usage, fmt::format("--new {}: '{}' is not a lesson id", name, id),
                        "use lower-case letters, digits and '-'");
    if (fileExists(path))
        return fail(ErrorCode::Usage, fmt::format("{} already exists", path),
                    "choose another name, or remove that one first");
    STAGEWRIGHT_CHECK(writeFileAtomically(path, lessonTemplate(id)));
    session.out(
        fmt::format("{} written. 'stagewright lesson --check {}' checks it; a copy in {} is listed with the others.\n",
                    path, path, learnerFolder() + "/lessons"));
    if (session.json) session.answer({{"file", path}});
    return ExitDone;
}

Result<int> writeParts(const Lesson& lesson, const LessonChoice& options, Session& session)
{
    if (!options.start.empty()) {
        const Step* step = nullptr;
        for (const Step* one : lesson.all<Step>())
            if (options.step.empty() ? step == nullptr : one->id == options.step) step = one;
        if (!step)
            return fail(ErrorCode::Usage, fmt::format("lesson {} has no step '{}'", lesson.id, options.step),
                        "steps are " + joined(idsOf<Step>(lesson)));
        STAGEWRIGHT_TRY(auto canvas, startOf(lesson, *step));
        STAGEWRIGHT_TRY(auto csv, writeScheduleCsv(canvas.schedule));
        STAGEWRIGHT_CHECK(writeFileAtomically(options.start, csv));
        session.out(fmt::format("the order of step '{}' is in {}; edit it, then: stagewright lesson {} --answer {}\n",
                                step->id, options.start, lesson.id, options.start));
    }
    if (options.figures.empty()) return ExitDone;
    std::error_code code;
    std::filesystem::create_directories(options.figures, code);
    for (const Figure* figure : lesson.all<Figure>()) {
        const Step* step = lesson.step(std::max(figure->step, 0));
        if (!step || !missingNeeds(step->needs).empty()) continue;
        STAGEWRIGHT_TRY(auto canvas, startOf(lesson, *step));
        STAGEWRIGHT_TRY(auto data, figureOf(StepState(lesson, *step, std::move(canvas)), lesson, *figure));
        const std::string path = options.figures + "/" + figure->file;
        STAGEWRIGHT_CHECK(writeFileAtomically(path, figureSvg(data)));
        session.out(path + "\n");
    }
    return ExitDone;
}

Result<int> runLesson(const LessonChoice& options, Session& session)
{
    if (!options.makeNew.empty()) return makeTemplate(options.makeNew, session);
    if (options.glossary) return printGlossary(options, session);
    if (options.csv && session.json)
        return fail(ErrorCode::Usage, "--csv and --json can't be combined", "choose one of them");
    if (options.check) return checkAll(options, session);
    if (options.names.empty()) return listAll(session);
    if (options.names.size() > 1)
        return fail(ErrorCode::Usage, fmt::format("{} lessons are named", options.names.size()),
                    "name one, or check several with --check");
    if (isCourse(options.names.front())) {
        STAGEWRIGHT_TRY(auto course, readCourse(options.names.front()));
        if (!options.answerFolder.empty())
            return gradeClass(course.lessons, options.answerFolder, options.csv, session);
        return listCourse(course, session);
    }
    STAGEWRIGHT_TRY(auto lesson, findLesson(options.names.front()));
    if (options.startOver) {
        STAGEWRIGHT_CHECK(LearnerProgress::change(LearnerProgress::defaultPath(),
                                                  [&](LearnerProgress& kept) { kept.forget(lesson.id); }));
        session.out(fmt::format("lesson {} starts over\n", lesson.id));
        return ExitDone;
    }
    if (!options.answerFolder.empty()) return gradeClass({lesson}, options.answerFolder, options.csv, session);
    if (!options.start.empty() || !options.figures.empty()) return writeParts(lesson, options, session);
    if (!options.answers.empty() || !options.said.empty() || !options.runs.empty() || !options.settings.empty() ||
        options.record)
        return gradeOne(lesson, options, session);
    LessonTextOptions text;
    text.columns = session.columns();
    text.colour = session.colourOut();
    text.hints = options.hints;
    text.solutions = options.show;
    const std::string printed = lessonText(lesson, text);
    if (session.json)
        session.answer({{"lesson", lesson.id}, {"title", lesson.title}, {"file", lesson.file}, {"text", printed}});
    session.out(printed);
    session.out(fmt::format("\nAnswer: stagewright lesson {0} --start mine.csv writes the order to edit; --answer "
                            "mine.csv grades it; --say ID=VALUE answers a question; --hints 1 helps.\n",
                            options.names.front()));
    return ExitDone;
}

} // namespace

Command command_lesson()
{
    return {"lesson", "Learn: list, print and grade lessons; check your own", [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<LessonChoice>();
                verb.value(
                    "NAME", &options->names,
                    "A lesson by name, number or file (.md), or a course: a folder of lessons; none: all are listed");
                verb.flag("--check", options->check,
                          "Check lessons: simulate every number, goal, solution and wrong answer in them");
                verb.flag("--record", options->record,
                          "With --check: record a small version of each run and judge its goals; otherwise record the "
                          "lesson's runs and grade them");
                verb.flag("--notes", options->notes, "With --check: also report minor findings");
                verb.value("--answer", &options->answers,
                           "A schedule CSV as the answer; without an ID, to every check it fits")
                    .form("[ID=]FILE.csv")
                    .each();
                verb.value("--say", &options->said, "An answer to a question").form("ID=VALUE").each();
                verb.value("--set", &options->settings,
                           "A setting of the canvas that the answer changes, such as layers=4,4,3,1")
                    .form("KEY=VALUE")
                    .each();
                verb.value("--runs", &options->runs, "A run file with the lesson's recorded runs").form("FILE");
                verb.value("--answer-dir", &options->answerFolder,
                           "Grade a class: NAME.csv, NAME.CHECK.csv, NAME.txt (lines ID=VALUE) or NAME.json (their "
                           "lessons.json) in a folder")
                    .form("FOLDER");
                verb.flag("--csv", options->csv, "With --answer-dir: one line per verdict, as CSV");
                verb.value("--new", &options->makeNew, "Write a commented template of a lesson").form("NAME");
                verb.value("--start", &options->start, "Write the order that a step starts with")
                    .form("FILE.csv")
                    .replaces();
                verb.value("--step", &options->step, "Which step --start means [the first]").form("ID");
                verb.value("--figures", &options->figures, "Draw the lesson's figures into a folder").form("FOLDER");
                verb.value("--hints", &options->hints, "Number of hints to print for each goal [0]")
                    .form("N")
                    .check(wholeNumber(0, 3));
                verb.flag("--show", options->show, "Print the solutions as well");
                verb.flag("--start-over", options->startOver, "Forget the progress of a lesson");
                verb.flag("--glossary", options->glossary, "Print the glossary, or the terms named");
                verb.notes("Exit code 0: passed, or sound; 1: a goal is missed, or a statement is false; 3: a file "
                           "can't be read, with line and column.\n"
                           "Examples: stagewright lesson 6\n"
                           "          stagewright lesson latency --answer mine.csv\n"
                           "          stagewright lesson --check my-lesson.md --record");
                return [options](Session& session) { return runLesson(*options, session); };
            }};
}

} // namespace stagewright
