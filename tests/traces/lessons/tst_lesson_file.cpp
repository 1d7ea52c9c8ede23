// Lesson files and expressions: valid files, refusals with their place, values to 1e-9, evaluation always ends.
#include <QtTest>

#include "traces/lessons/edit_command.h"
#include "traces/lessons/expression.h"
#include "traces/lessons/lesson_file.h"
#include "traces/lessons/lesson_library.h"

using namespace stagewright;
using namespace stagewright::lessons;

namespace {

class Names : public Scope {
public:
    Result<Value> name(std::string_view name) const override
    {
        if (name == "p") return Value(4);
        if (name == "r") return Value(List{Value(0), Value(1), Value(2), Value(3)});
        if (name == "none") return Value();
        return fail(ErrorCode::Usage, "there is no name '" + std::string(name) + "'");
    }
    Result<Value> call(std::string_view function, const std::vector<Argument>& arguments) const override
    {
        if (function == "answer" && arguments.size() == 1 && arguments[0].value.text())
            return Value(*arguments[0].value.text());
        if (function == "sim" && arguments.size() == 2 && arguments[1].name == "c") return arguments[1].value;
        return fail(ErrorCode::Usage, "there is no function '" + std::string(function) + "'");
    }
};

QString value(const char* text)
{
    auto expression = Expression::parse(text);
    if (!expression) return QString::fromStdString(expression.error().message);
    auto result = expression->evaluate(Names());
    return QString::fromStdString(result ? toText(*result) : result.error().message);
}

QString fault(const std::string& text)
{
    auto lesson = readLesson(text, "x.md");
    return lesson ? QString() : QString::fromStdString(lesson.error().message);
}

const std::string head = "---\nlesson: x\ntitle: T\nset: ranks=2 microbatches=2\n---\n";

} // namespace

class TestLessonFile : public QObject {
    Q_OBJECT
private slots:
    void values_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("result");
        const std::pair<const char*, const char*> rows[] = {
            {"1 + 2 * 3 ^ 2", "19"},
            {"-2 ^ 2", "−4"},
            {"(1 + 2) * 3", "9"},
            {"7 / 2", "3.5"},
            {"50%", "0.5"},
            {"1e3 + 0.125", "1000.125"},
            {"p - r", "4, 3, 2, 1"},
            {"[4,3,2,1] <= [4,3,2,1] and 1 <= 2", "yes"},
            {"[4,3,2,1] <= 3", "no, yes, yes, yes"},
            {"all([4,3] <= 3)", "no"},
            {"any([4,3] <= 3)", "yes"},
            {"[1,2,3] == 2", "no, yes, no"},
            {"not (1 == 2)", "yes"},
            {"0.1 + 0.2 == 0.3", "yes"},
            {"0.1 + 0.2 == 0.3000001", "no"},
            {"1 < 1 + 1e-12", "no"},
            {"100 ~ 104 ±5%", "yes"},
            {"100 ~ 106 ±5%", "no"},
            {"10 ~ 10.4 ±0.5", "yes"},
            {"10 ~ 10.6 +-0.5", "no"},
            {"floor(2.7) + ceil(2.1)", "5"},
            {"max([1,5,2]) - min(3, 4)", "2"},
            {"argmin([3,1,2])", "1"},
            {"argsort([3,1,2])", "1, 2, 0"},
            {"sum(range(1,4))", "10"},
            {"first(range(0,2,0.5), range(0,2,0.5) > 0.9)", "1"},
            {"[1,2,3][-1]", "3"},
            {"size(r)", "4"},
            {"percent(3/11)", "27.3 %"},
            {"round(2.3456, 2)", "2.35"},
            {"answer(best-fixed)", "best-fixed"},
            {"answer(total) == \"total\"", "yes"},
            {"sim(\"a\", c=2)", "2"},
            {"sim(\"a\", c=rendezvous)", "rendezvous"},
            {"3B0", "3B0"},
            {"none <= 3", "no"},
            {"none + 1", "none"},
            {"percent(none / 2)", "none"},
            {"1 / 0", "1 is divided by 0"},
            {"[1,2] + [1,2,3]", "+ of lists of lengths 2 and 3"},
            {"\"a\" < \"b\"", "a text < a text: these have no order"},
            {"nobody", "there is no name 'nobody'"},
            {"1 +", "expression, column 4: expected a value at the end"},
            {"1 = 2", "expression, column 3: '=' is not a comparison"},
            {"1 2", "expression, column 3: '2' does not belong here"},
            {"(1", "expression, column 3: expected ')', not 'the end'"},
            {"\"a", "expression, column 2: the text is not closed"},
            {"3Q0", "expression, column 1: '3Q0' is not an op"},
            {"range(0, 1, 1e-9)", "range() gives at most 1,000 ascending values"},
        };
        for (const auto& [text, result] : rows)
            QTest::newRow(text) << QString::fromUtf8(text) << QString::fromUtf8(result);
    }
    void values()
    {
        QFETCH(QString, text);
        QFETCH(QString, result);
        QCOMPARE(value(text.toUtf8().constData()), result);
    }

    void boundedSizes()
    {
        QVERIFY(value(std::string(3000, '1').c_str()).contains("at most 2000"));
        QVERIFY(value((std::string(400, '(') + "1" + std::string(400, ')')).c_str()).contains("nested too deeply"));
        QVERIFY(value(("1" + std::string(400, '-') + "1").c_str()).contains("nested too deeply"));
        std::string sum = "1";
        for (int i = 0; i < 900; ++i) sum += "+1";
        QCOMPARE(value(sum.c_str()), QString("901"));
    }

    void parts()
    {
        const auto goal = *Expression::parse("valid and (p + 1) <= 39 and x ~ 2 ±5%");
        const auto parts = goal.conjuncts();
        QCOMPARE(parts.size(), std::size_t(3));
        QCOMPARE(QString::fromStdString(parts[1].comparison().left.text()), QString("(p + 1)"));
        QCOMPARE(QString::fromStdString(parts[1].comparison().sign), QString("<="));
        QCOMPARE(QString::fromStdString(parts[2].comparison().sign), QString("~"));
        QVERIFY(parts[0].comparison().sign.empty());
        QCOMPARE(goal.names().size(), std::size_t(3));
    }

    void wholeLesson()
    {
        const auto lesson = readLesson(lessonTemplate("mine"), "/tmp/07-mine.md");
        QVERIFY2(lesson, lesson ? "" : lesson.error().message.c_str());
        QCOMPARE(lesson->number, 7);
        QCOMPARE(lesson->id, std::string("mine"));
        QCOMPARE(lesson->all<Step>().size(), std::size_t(1));
        QCOMPARE(lesson->all<Check>().front()->fails.size(), std::size_t(3));
        QCOMPARE(lesson->hintsOf("thrifty").size(), std::size_t(3));
        QCOMPARE(lesson->hintsOf("thrifty")[2]->edits.size(), std::size_t(1));
        QVERIFY(lesson->solutionOf("thrifty"));
        QCOMPARE(lesson->sections.size(), std::size_t(5));
    }

    void faults_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* name, const std::string& text, const char* message) {
            QTest::newRow(name) << QString::fromStdString(text) << QString(message);
        };
        row("empty", "", "x.md:1:1: the front matter is missing");
        row("no end", "---\nlesson: x\n", "x.md:1:1: the front matter is not closed");
        row("no title", "---\nlesson: x\nset: ranks=2\n---\n", "x.md:1:1: the front matter has no 'title'");
        row("unknown key", "---\nlesson: x\ntitel: T\n---\n", "x.md:3:1: a front matter has no 'titel'");
        row("bad id", "---\nlesson: My Lesson\ntitle: T\nset: ranks=2\n---\n", "x.md:2:9: 'My Lesson' is not an id");
        row("bad setting", "---\nlesson: x\ntitle: T\nset: ranks=many\n---\n", "x.md:4:6: setting 'ranks=many'");
        row("open fence", head + "```step\nshow: 1f1b\n", "x.md:6:1: the block 'step' is not closed");
        row("open braces", head + "a {{p\n", "x.md:6:3: '{{' is not closed");
        row("bad expression", head + "one\n\nab {{1 +}}\n", "x.md:8:9: expected a value at the end");
        row("bad goal",
            head + "```step\nshow: 1f1b\n```\n```check\nid: a\ngoal: p ==\nsay: s\npass: p\nfail: -> f\n```\n",
            "x.md:11:11: expected a value");
        row("no catch-all",
            head + "```step\nshow: 1f1b\n```\n```check\nid: a\ngoal: p == 2\nsay: s\npass: p\nfail: p == 3 -> f\n```\n",
            "x.md:14:1: the last 'fail' has a condition");
        row("unknown edit", head + "```step\nshow: 1f1b\ndo: jump 3\n```\n", "x.md:8:5: 'jump' is not an edit");
        row("twice", head + "```step\nid: a\nshow: 1f1b\n```\n```step\nid: a\nshow: gpipe\n```\n",
            "x.md:10:1: the id 'a' is already used in line 6");
        row("heading order", head + "## Do\n\n## Guess\n", "x.md:8:1: 'Guess' comes after 'Do'");
        row("answer to nothing", head + "```solution\nschedule: 1f1b\n```\n", "x.md:6:1: an answer without a check");
        row("a byte 0", head + std::string("a\0b", 3), "x.md:6:1: it contains a zero byte");
    }
    void faults()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const QString found = fault(text.toStdString());
        QVERIFY2(found.startsWith(message), qPrintable(found));
    }
    void everyTruncation()
    {
        // Refused with a place, or a shorter lesson; never a crash.
        for (const BuiltInText& one : builtInLessons())
            for (std::size_t length = 0; length < one.text.size(); length += 37) {
                const auto lesson = readLesson(one.text.substr(0, length), "x.md");
                if (!lesson)
                    QVERIFY2(QString::fromStdString(lesson.error().message).startsWith("x.md:"),
                             lesson.error().message.c_str());
            }
    }
    void damagedBytes()
    {
        const std::string good = lessonTemplate("mine");
        for (std::size_t i = 0; i < good.size(); ++i)
            for (const char c : {'{', '`', ':', '\xff', '\n'}) {
                std::string bad = good;
                bad[i] = c;
                const auto lesson = readLesson(bad, "x.md");
                if (!lesson) QVERIFY(!lesson.error().message.empty());
            }
    }

    void settings()
    {
        const auto set = *withSettings({}, "ranks=2 microbatches=4 costs=F=1,I=0.5,W=2 comm=0.25 cap=3 recompute=0 "
                                           "hoist keep=0.125 layers=3,4 slow=1,2 sends=rendezvous");
        QCOMPARE(*withSettings({}, changesOf(set)), set);
        QVERIFY(changesOf(set, set).empty());
        // and from each to each, disturbances and what is taken back included
        std::vector<Settings> all;
        for (const char* text :
             {"", "link=1-2:0.5", "link=1-2:0.5 launch=3:0.25 lower=grouped replicas=2 shard=weights",
              "launch=3:0.25 chunks=2 gather=microbatch reduce=overlapped parameters=7.5 head=2",
              "costs=F=2,B=3,UNSHARD=0.5,REDUCE_GRAD=1 cap=2 recompute=0-1 share=3"})
            all.push_back(*withSettings({}, text));
        for (const Settings& from : all)
            for (const Settings& to : all)
                if (to.units().backward >= 0 || from.units().backward < 0) // I + W has no word
                    QVERIFY2(*withSettings(from, changesOf(to, from)) == to, changesOf(to, from).c_str());
        for (const char* bad :
             {"ranks=0", "ranks=2.5", "speed=3", "costs=Q=1", "cap=x", "sends=fast", "recompute=x", "layers=a"})
            QVERIFY2(!withSettings({}, bad), bad);
    }

    void edits()
    {
        Canvas canvas{*makeFor("gpipe", {}), {}};
        QCOMPARE(applyEdit({"warmup", "4,3,2,1"}, canvas)->schedule, *makeFor("1f1b", {}));
        const auto split = *applyEdit({"split", ""}, canvas);
        QVERIFY(split.schedule.splitsBackward());
        QCOMPARE(applyEdit({"merge", ""}, split)->schedule, canvas.schedule);
        QCOMPARE(applyEdit({"swap", "0F0 0F1"}, *applyEdit({"swap", "0F0 0F1"}, canvas))->schedule, canvas.schedule);
        Canvas empty{emptySchedule({}), {}};
        const auto placed = *applyEdit({"place", "1F1"}, empty);
        QCOMPARE(placed.schedule.order[1].size(), std::size_t(1));
        QCOMPARE(applyEdit({"place", "1F1"}, placed)->schedule, placed.schedule);
        QVERIFY(runnablePart(placed.schedule).order[1].empty());
        Schedule late = *makeFor("1f1b", {});
        std::swap(late.order[2][1], late.order[2].back()); // the last backward before all others
        const Schedule some = runnablePart(late);
        QCOMPARE(some.order[2].size(), std::size_t{1});
        QCOMPARE(some.order[3].size(), std::size_t{2}); // 0F 0B: the next forward never comes
        QVERIFY(some.order[0].size() < late.order[0].size());
        QCOMPARE(applyEdit({"set", "microbatches=12"}, canvas)->schedule.microbatches, 12);
        for (const EditCommand& bad :
             {EditCommand{"move", "3B0 after 0F0"}, EditCommand{"move", "9F0 after 0F0"}, EditCommand{"warmup", "1,2"},
              EditCommand{"warmup", "0,1,1,1"}, EditCommand{"rank", "7: 0F0"}, EditCommand{"load", "nobody"},
              EditCommand{"place", "9F9"}, EditCommand{"group", "0F0 0F1"}})
            QVERIFY2(!applyEdit(bad, canvas), bad.text().c_str());
        QVERIFY(!parseEdits("fly away"));
        QVERIFY(!parseEdits("split now"));
        QCOMPARE(parseEdits("split; warmup 4,3,2,1")->size(), std::size_t(2));
    }
};

QTEST_GUILESS_MAIN(TestLessonFile)
#include "tst_lesson_file.moc"
