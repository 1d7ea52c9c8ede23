// Checking lessons: each point is broken once and caught, every lesson of the program is sound, goals are tight,
// grading.
#include <cmath>
#include <deque>

#include <QtTest>

#include "schedules/plan/plan.h"
#include "traces/lessons/check_lesson.h"
#include "traces/lessons/grading.h"
#include "traces/lessons/lesson_file.h"
#include "traces/lessons/lesson_library.h"

using namespace stagewright;
using namespace stagewright::lessons;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to)
{
    const std::size_t at = text.find(from);
    return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

QString textOf(const LessonReport& report)
{
    QString text;
    for (const Finding& one : report.findings)
        text += QString("%1 %2 line %3: %4\n")
                    .arg(QString::fromUtf8(toText(one.severity).data()), QString::fromUtf8(toText(one.point).data()))
                    .arg(one.at.line)
                    .arg(QString::fromStdString(one.message));
    return text;
}

bool finds(const LessonReport& report, Severity severity, Point point, const QString& words)
{
    for (const Finding& one : report.findings)
        if (one.severity == severity && one.point == point && QString::fromStdString(one.message).contains(words))
            return true;
    return false;
}

Learner fakeRuns()
{
    Learner learner;
    learner.failures["both"] = {"no device", false, false, {}, {}};
    return learner;
}

} // namespace

class TestLessonCheck : public QObject {
    Q_OBJECT
private slots:
    void templateIsSound()
    {
        const auto lesson = readLesson(lessonTemplate("base"), "base.md");
        QVERIFY(lesson);
        const LessonReport report = checkLesson(*lesson);
        QVERIFY2(report.findings.empty(), qPrintable(textOf(report)));
        QVERIFY(report.statements > 20);
    }

    void broken_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<int>("severity");
        QTest::addColumn<int>("point");
        QTest::addColumn<QString>("words");
        const auto row = [](const char* name, const char* from, const char* to, Point point, const char* words,
                            Severity severity = Severity::Fault) {
            QTest::newRow(name) << QString(from) << QString(to) << int(severity) << int(point) << QString(words);
        };
        row("predecessor", "minutes: 10", "minutes: 10\nafter: nobody", Point::Names, "there is no lesson 'nobody'");
        row("schedule", "uses: gpipe, 1f1b", "uses: gpipe, 2f2b", Point::Names, "there is no schedule '2f2b'");
        row("tool", "allow: move, text, library", "allow: move, text, library, wand", Point::Names,
            "there is no tool 'wand'");
        row("hints", "2: Warm-ups of 4, 3, 2, 1; then always one forward, one backward.\n", "", Point::Names,
            "has 2 hints");
        row("option", "--schedule gpipe,1f1b", "--schedule gpipe,1f1b --speed 9", Point::Names, "no option '--speed'");
        row("run", "goal: run(\"1f1b\")", "goal: run(\"zb-h1\")", Point::Names, "nothing named 'zb-h1' is recorded");
        row("needs", "minutes: 10", "minutes: 10\nneeds: teleport", Point::Names, "needs teleport", Severity::Skipped);
        row("step", "show: gpipe ", "show: interleaved-1f1b\nset: microbatches=9\n#", Point::Simulates,
            "step 'step-1'");
        row("expected fault", "show: gpipe ", "show: gpipe\nexpect: invalid \"0F4\"\n#", Point::Simulates,
            "expects the fault 0F4");
        row("nothing to do", "show: gpipe ", "show: 1f1b\n#", Point::StartFails, "passes without any change");
        row("no tool for it", "allow: move, text, library", "allow: settings", Point::StartFails, "needs the tool");
        row("solution", "```solution\nschedule: 1f1b", "```solution\nschedule: zb-h2", Point::SolutionPasses,
            "does not pass");
        row("hint", "3: do warmup 4,3,2,1", "3: do warmup 4,3,2", Point::SolutionPasses, "hint 3");
        row("hint breaks it", "3: do warmup 4,3,2,1", "3: do rank 0: 0F0 0F0", Point::SolutionPasses,
            "can't be completed");
        row("wrong passes", "do: warmup 5,3,2,1\nsays: still holds 5", "do: warmup 4,3,2,1\nsays: still holds 5",
            Point::WrongFails, "a wrong answer to 'thrifty' passes");
        row("another message", "says: still holds 5", "says: well done", Point::WrongFails, "should get 'well done'");
        row("unreached fail", "fail: -> Rank 0", "fail: p == 99 -> Never said.\nfail: -> Rank 0", Point::WrongFails,
            "no wrong answer to 'thrifty' gets this message");
        row("below the bound", "makespan <= T*(m+p-1)", "makespan <= T*(m+p-1) - 1", Point::AboveBound,
            "below the bound 33");
        row("expression", "GPipe needs {{sim(\"gpipe\").makespan}}", "GPipe needs {{sim(\"gpipe\").makespam}}",
            Point::Evaluates, "can't be evaluated");
        row("unknown function", "GPipe needs {{sim(\"gpipe\").makespan}}", "GPipe needs {{magic(3)}}", Point::Evaluates,
            "there is no function 'magic'");
        row("fact", "## Prove", "```fact\nthat: makespan == 34\n```\n\n## Prove", Point::Evaluates,
            "'makespan == 34' does not hold");
        row("figure typed", "Numbers are computed", "The makespan 33 is typed. Numbers are computed", Point::Words,
            "a hard-coded figure", Severity::Warning);
        row("law", "say: Keep the step", "generalise: p=2..6\nsay: Keep the step", Point::Generalises, "",
            Severity::Note);
        row("coincidence", "goal: valid and makespan <= T*(m+p-1)",
            "generalise: p=2..6\ngoal: valid and makespan <= 33", Point::Generalises, "does not hold at p=5");
        row("figure", "of: memory gpipe, 1f1b", "of: memory nobody", Point::Figures, "nobody");
        row("figure's grammar", "of: memory gpipe, 1f1b", "of: dance gpipe", Point::Figures,
            "'dance' is not a kind of figure");
        row("long sentence", "Bring them forward, rank by rank.",
            "Bring them forward, rank by rank, and then look at it again, and once more, since a sentence that is as "
            "long as this one is never read to its end by anybody.",
            Point::Words, "a sentence of", Severity::Warning);
        row("abbreviation", "Say what to do.", "Say what the QZX does.", Point::Words, "'QZX' is not in the glossary",
            Severity::Note);
        row("run fails", "## Keep", "## Keep", Point::Runs, "run 'both' failed: no device");
        // a question's reply, its hint and the figures beside the tools withhold its answer
        const auto asked = [&row](const char* name, const std::string& fail, const std::string& hint,
                                  const char* words) {
            static std::deque<std::string> texts; // outlive the rows
            texts.push_back("## Prove\n\n```quiz\nid: held\nask: How many does rank 0 hold?\ntruth: "
                            "peak_activation[0]\npass: Yes.\nfail: -> " +
                            fail + "\n```\n\n```hint\n1: " + hint +
                            "\n```\n\n```solution\ncheck: held\nanswer: 8\n```\n\n```wrong\ncheck: held\nanswer: "
                            "4\nsays: .\n```");
            row(name, "## Prove", texts.back().c_str(), Point::Withholds, words);
        };
        asked("withheld", "Count the forwards before 0B0.", "Look at rank 0.", "");
        asked("reply", "It is 8.", "Look at rank 0.", "the reply to a wrong answer of 'held' gives");
        asked("computed reply", "It is {{m}}.", "Look at rank 0.", "the reply to a wrong answer of 'held' gives");
        asked("hint says it", "Count them.", "There are 8.", "a hint of 'held' gives its answer away");
        row("title says it", "title: Which question does this lesson answer?", "title: Why does rank 0 hold 4?",
            Point::Withholds, "the title gives the answer of 'guess' away");
        row("figure beside the tools", "show: gpipe ", "show: gpipe\nwatch: max(peak_activation)\n#", Point::Withholds,
            "");
        row("tool of a question", "allow: move, text, library", "allow: move, text, library\nwatch: 3 +", Point::Names,
            "'3 +' is not a figure");
        row("loose goal", "```wrong\ndo: warmup 4,3,2,1; set comm=0.0625\nsays: slower\n```", "", Point::Tight,
            "one unit looser", Severity::Warning);
    }
    void broken()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(int, severity);
        QFETCH(int, point);
        QFETCH(QString, words);
        const std::string text = replaced(lessonTemplate("base"), from.toStdString(), to.toStdString());
        QVERIFY2(!text.empty(), "the template has no such text");
        const auto lesson = readLesson(text, "base.md");
        QVERIFY2(lesson, lesson ? "" : lesson.error().message.c_str());
        CheckOptions options;
        options.lessons = {"base"};
        if (Point(point) == Point::Runs) {
            options.recorded = fakeRuns();
            options.judgeRuns = true;
        }
        const LessonReport report = checkLesson(*lesson, options);
        if (words.isEmpty()) // a statement that holds
            QVERIFY2(report.sound(), qPrintable(textOf(report)));
        else
            QVERIFY2(finds(report, Severity(severity), Point(point), words), qPrintable(textOf(report)));
    }

    void allLessonsAreSound()
    {
        QVERIFY(builtInLessons().size() >= 16);
        CheckOptions options;
        std::vector<Lesson> all;
        for (const BuiltInText& one : builtInLessons()) {
            auto lesson = readLesson(one.text, std::string(one.name));
            QVERIFY2(lesson, lesson ? "" : lesson.error().message.c_str());
            options.lessons.push_back(lesson->id);
            all.push_back(std::move(*lesson));
        }
        int statements = 0;
        for (const Lesson& lesson : all) {
            const LessonReport report = checkLesson(lesson, options);
            statements += report.statements;
            QVERIFY2(report.sound() && report.count(Severity::Warning) == 0,
                     qPrintable(QString::fromStdString(lesson.id) + "\n" + textOf(report)));
        }
        QVERIFY2(statements > 1200, qPrintable(QString::number(statements)));
    }

    // Each comparison of each goal is made one unit looser in the file itself: then a wrong answer passes, and is found
    // to.
    void looserGoalsLetWrongAnswersPass()
    {
        int mutated = 0;
        for (const BuiltInText& one : builtInLessons()) {
            const auto lesson = readLesson(one.text, std::string(one.name));
            for (const Check* check : lesson->all<Check>()) {
                if (!check->graded) continue;
                const auto parts = check->goal.conjuncts();
                for (std::size_t i = 0; i < parts.size(); ++i) {
                    const auto comparison = parts[i].comparison();
                    if (comparison.sign.empty() || comparison.sign == "~") continue;
                    std::string goal;
                    for (std::size_t k = 0; k < parts.size(); ++k) {
                        std::string part = parts[k].text();
                        const std::string left = "(" + comparison.left.text() + ")",
                                          right = "(" + comparison.right.text() + ")";
                        if (k == i)
                            part = comparison.sign == "=="     ? "abs(" + left + " - " + right + ") <= 1"
                                   : comparison.sign[0] == '<' ? left + " <= " + right + " + 1"
                                                               : left + " >= " + right + " - 1";
                        goal += (goal.empty() ? "" : " and ") + part;
                    }
                    const auto looser =
                        readLesson(replaced(std::string(one.text), "goal: " + check->goal.text(), "goal: " + goal),
                                   std::string(one.name));
                    QVERIFY2(looser, looser ? "" : looser.error().message.c_str());
                    const LessonReport report = checkLesson(*looser);
                    QVERIFY2(!report.sound(), (check->id + " is as good with the goal " + goal).c_str());
                    ++mutated;
                }
            }
        }
        QVERIFY(mutated >= 20);
    }

    // Where a lesson says that no order is shorter, the planner proves it, under the goal's caps.
    void noOrderIsShorterIsProven()
    {
        QStringList proven;
        for (const BuiltInText& one : builtInLessons()) {
            const auto lesson = readLesson(one.text, std::string(one.name));
            for (const Check* check : lesson->all<Check>()) {
                if (check->pass.source.find("o order of these ops is shorter") == std::string::npos &&
                    check->pass.source.find("no order is shorter") == std::string::npos)
                    continue;
                const Step& step = *lesson->step(check->step);
                const StepState solved(*lesson, step, *canvasOf(*lesson, *lesson->solutionOf(check->id)));
                const auto report = solved.report();
                QVERIFY2(report && report->makespan(), check->id.c_str());
                // Where backwards are whole, a W that takes no time makes them so for the planner.
                const bool whole = !report->schedule().splitsBackward();
                const auto settings = whole ? withSettings(step.settings, "costs=I=2,W=0") : step.settings;
                QVERIFY(settings);
                PlanRequest request;
                request.ranks = step.settings.ranks;
                request.microbatches = step.settings.microbatches;
                request.costs = *costsFor(*makeFor("1f1b", *settings), *settings);
                for (const Expression& part : check->goal.conjuncts())
                    if (const auto comparison = part.comparison(); comparison.left.text() == "peak_activation") {
                        const auto caps = solved.evaluate(comparison.right, check);
                        QVERIFY(caps);
                        for (int rank = 0; rank < request.ranks; ++rank)
                            request.caps.push_back(static_cast<Bytes>(
                                std::llround((caps->number() != nullptr
                                                  ? *caps->number()
                                                  : *(*caps->list())[static_cast<std::size_t>(rank)].number()) *
                                             static_cast<double>(activationShare))));
                    }
                request.seconds = 20;
                const auto found = plan(request);
                QVERIFY2(found, found ? "" : found.error().message.c_str());
                const double bound = static_cast<double>(found->bound) / static_cast<double>(request.costs.timeUnit);
                QVERIFY2(std::abs(bound - *report->makespan()) < 1e-9,
                         qPrintable(QString("%1: the bound is %2, the solution takes %3")
                                        .arg(QString::fromStdString(check->id))
                                        .arg(bound)
                                        .arg(*report->makespan())));
                proven << QString::fromStdString(check->id);
            }
        }
        QCOMPARE(proven, (QStringList{"slide-in", "thrifty", "hide-it", "filler"}));
    }

    // A goal takes every repair that does what it says, and none that does not.
    void everyRightRepairPasses()
    {
        const auto text = std::find_if(builtInLessons().begin(), builtInLessons().end(), [](const BuiltInText& one) {
            return std::string(one.name).find("deadlock") != std::string::npos;
        });
        QVERIFY(text != builtInLessons().end());
        const auto lesson = readLesson(text->text, "12-deadlock.md");
        QVERIFY(lesson);
        const auto verdict = [&](const char* id, const char* edits) {
            const Check& check = *lesson->check(id);
            const Step& step = *lesson->step(check.step);
            auto canvas = startOf(*lesson, step);
            if (!canvas) return Verdict::Open;
            auto commands = parseEdits(edits);
            auto edited = commands ? applyEdits(*commands, *canvas) : tl::unexpected(commands.error());
            if (!edited) return Verdict::Open;
            return StepState(*lesson, step, *edited).grade(check).verdict;
        };
        // several ops in one edit: how to write them
        const auto many = applyEdits(*parseEdits("place 0F0 1F0 1B0"), *startOf(*lesson, *lesson->step(0)));
        QVERIFY(!many && many.error().remedy.find("place 0F0; place 1F0") != std::string::npos);
        for (const char* right : {"move 0F1 before 0B0", "swap 0B0 0F1", "move 1B0 before 1F1"})
            QVERIFY2(verdict("order-fault", right) == Verdict::Pass, right);
        for (const char* wrong : {"swap 1F0 1B0", "move 0B1 before 0F1"})
            QVERIFY2(verdict("order-fault", wrong) == Verdict::Fail, wrong);
        for (const char* right : {"set lower=grouped", "set lower=rank-parity"}) // both keep the order
            QVERIFY2(verdict("repair", right) == Verdict::Pass, right);
        for (const char* wrong : {"set lower=just-in-time", "load gpipe", "load gpipe; set lower=grouped"})
            QVERIFY2(verdict("repair", wrong) == Verdict::Fail, wrong);
    }

    void verdictFollowsTheCanvas()
    {
        const auto lesson = readLesson(lessonTemplate("base"), "base.md");
        const Check& check = *lesson->check("thrifty");
        const Step& step = *lesson->step(0);
        Canvas canvas = *canvasOf(*lesson, *lesson->solutionOf("thrifty"));
        const StepState solved(*lesson, step, canvas);
        const Grade good = solved.grade(check);
        QCOMPARE(good.verdict, Verdict::Pass);
        QCOMPARE(good.meters.size(), std::size_t(3));
        QVERIFY(good.meters[1].holds && same(good.meters[1].yours, Value(33)));
        canvas = *applyEdit({"warmup", "4,2,2,1"}, canvas);
        const Grade bad = StepState(*lesson, step, canvas).grade(check);
        QCOMPARE(bad.verdict, Verdict::Fail);
        QCOMPARE(bad.remark, 1);
        const ScoreRail rail = solved.rail(check);
        QCOMPARE(rail.bound, 33.0);
        QCOMPARE(rail.yours, 33.0);
        QVERIFY(rail.bestKnown <= 33);
        QVERIFY(!rail.boundReason.empty());
    }

    void capFaultNamesTheHolders()
    {
        Settings settings;
        settings.memoryLimit = "4";
        const Canvas canvas{*makeFor("gpipe", settings), settings};
        const auto fault = firstOverCap(canvas.schedule, *costsFor(canvas.schedule, settings), 4 * activationShare);
        QVERIFY(fault);
        QCOMPARE(fault->rank, 0);
        QCOMPARE(QString::fromStdString(stagewright::toText(fault->op)), QString("0F4"));
        QCOMPARE(fault->held, 5.0);
        QCOMPARE(fault->holders.size(), std::size_t(4));
        QVERIFY(!firstOverCap(canvas.schedule, *costsFor(canvas.schedule, settings), 8 * activationShare));
    }

    void boundsAreNeverBeaten()
    {
        for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv", "v-half",
                                 "v-min", "chimera", "hanayo", "bfs", "terapipe"})
            for (const char* set :
                 {"comm=0", "comm=0.5", "costs=I=1.11,W=0.78", "slow=1,1.5,1,1", "microbatches=4 comm=2"}) {
                const Settings settings = *withSettings({}, set);
                auto schedule = makeFor(name, settings);
                if (!schedule) continue;
                const SimulatedReport report(*schedule, *costsFor(*schedule, settings), {});
                QVERIFY(report.makespan());
                const Bound bound = boundOf(report.schedule(), report.costs());
                QVERIFY2(bound.value <= *report.makespan() + 1e-9, (std::string(name) + " " + set).c_str());
                QVERIFY(bound.value > 0);
            }
        const Settings plain;
        const auto fused = *makeFor("1f1b", plain);
        QCOMPARE(boundOf(fused, *costsFor(fused, plain)).value, 33.0);
        const auto split = *makeFor("zb-h1", plain);
        QCOMPARE(boundOf(split, *costsFor(split, plain)).value, 27.0);
    }
};

QTEST_GUILESS_MAIN(TestLessonCheck)
#include "tst_lesson_check.moc"
