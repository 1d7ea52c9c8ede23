// Texts of playback, the glossary, and the learner's progress.
#include <QtTest>

#include <thread>

#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/lessons/glossary.h"
#include "traces/lessons/lesson_file.h"
#include "traces/lessons/lesson_library.h"
#include "traces/lessons/narrate.h"
#include "traces/lessons/progress_file.h"

using namespace stagewright;
using namespace stagewright::lessons;

namespace {

std::vector<Beat> beats(const char* name, int microbatches = 8, double comm = 0, std::optional<Bytes> cap = {})
{
    const Schedule schedule = *makeSchedule(name, {4, microbatches, 0});
    CostModel::UnitCosts costs;
    costs.latency = comm;
    const auto timeline = *simulatedTimeline(schedule, CostModel::uniform(schedule, costs));
    NarrationOptions options;
    options.memoryCap = cap;
    return beatsOf(*timeline, 0, options);
}

int count(const std::vector<Beat>& all, BeatEvent event)
{
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Beat& one) { return one.event == event; }));
}

QString words(const std::vector<Beat>& all, BeatEvent event)
{
    for (const Beat& one : all)
        if (one.event == event) return QString::fromStdString(one.plain);
    return {};
}

} // namespace

class TestNarration : public QObject {
    Q_OBJECT
private slots:
    void oneForwardOneBackward()
    {
        const auto all = beats("1f1b");
        QVERIFY(std::is_sorted(all.begin(), all.end(), [](const Beat& a, const Beat& b) { return a.time < b.time; }));
        QCOMPARE(all.front().event, BeatEvent::FirstForward);
        QCOMPARE(QString::fromStdString(all.front().plain),
                 QString("Microbatch 0 enters the pipeline. Rank 0 keeps its activations until its backward."));
        QVERIFY(words(all, BeatEvent::FirstBackward).startsWith("Microbatch 0 has reached the loss."));
        QCOMPARE(count(all, BeatEvent::FirstBackward), 1);
        QCOMPARE(count(all, BeatEvent::FirstReturn), 3);
        QVERIFY(words(all, BeatEvent::GapBegins).startsWith("Rank 0 has nothing to run: it needs the"));
        QVERIFY(count(all, BeatEvent::DrainOver) >= 2);
        for (const Beat& one : all) {
            QVERIFY(one.plain.empty() || !one.terse.empty());
            QVERIFY(!one.interesting || !one.plain.empty());
        }
    }
    void repetitionIsSkipped()
    {
        const auto all = beats("1f1b", 32);
        QCOMPARE(count(all, BeatEvent::SteadySkip), 1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].event != BeatEvent::SteadySkip) continue;
            QVERIFY(all[i].skip > 10);
            QVERIFY(i + static_cast<std::size_t>(all[i].skip) < all.size());
            QVERIFY(QString::fromStdString(all[i].plain).startsWith("The same pattern"));
        }
        QCOMPARE(count(beats("gpipe"), BeatEvent::SteadySkip), 0);
    }
    void wiresAndCaps()
    {
        const auto wired = beats("1f1b", 8, 1);
        QVERIFY(std::any_of(wired.begin(), wired.end(),
                            [](const Beat& one) { return one.plain.find("in transit") != std::string::npos; }));
        QVERIFY(words(beats("1f1b", 8, 0, 4 * activationShare), BeatEvent::CapReached).startsWith("Rank 0 is full"));
        QCOMPARE(count(beats("1f1b", 8, 0, 5 * activationShare), BeatEvent::CapReached), 0);
        QVERIFY(words(beats("zb-h1"), BeatEvent::Filler).startsWith("Nothing waits for this weight gradient"));
    }
    void degenerate()
    {
        QVERIFY(beatsOf(**TimelineBuilder(Provenance::Simulated, "model", 1).build(), 0).empty());
        const Schedule one = *readScheduleCsv("0F0,0B0\n");
        const auto all = beatsOf(**simulatedTimeline(one, CostModel::uniform(one)), 0);
        QVERIFY(all.size() >= 2);
        QVERIFY(beatsOf(**simulatedTimeline(one, CostModel::uniform(one)), 7).empty());
    }
    void everySchedule()
    {
        for (const ScheduleInfo& info : allSchedules()) {
            auto schedule = makeSchedule(info.name, {4, 8, 0});
            if (!schedule) continue;
            const auto all = beatsOf(**simulatedTimeline(*schedule, CostModel::uniform(*schedule)), 0);
            QVERIFY2(count(all, BeatEvent::FirstForward) >= 1 && all.size() > 8, std::string(info.name).c_str());
        }
    }
    void hang()
    {
        const Schedule ends = *makeSchedule("1f1b", {2, 2, 0});
        const Schedule hangs = *readScheduleCsv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
        const auto deadlock = explainDeadlock(hangs);
        NarrationOptions options;
        options.hang = &*deadlock;
        const auto all = beatsOf(**simulatedTimeline(ends, CostModel::uniform(ends)), 0, options);
        QVERIFY(words(all, BeatEvent::Hang).startsWith("No rank can continue."));
    }

    void glossaryKnowsOtherNames()
    {
        const auto read = readGlossary(builtInGlossary());
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QVERIFY(read->size() >= 50);
        QCOMPARE(findTerm("VPP")->id, std::string("interleaving"));
        QCOMPARE(findTerm("vpp (Megatron-LM)")->id, std::string("interleaving"));
        QCOMPARE(findTerm("looped schedule")->id, std::string("interleaving"));
        QCOMPARE(findTerm("microbatches")->id, std::string("microbatch"));
        QCOMPARE(findTerm("dgrad")->id, std::string("i"));
        QVERIFY(!findTerm("teapot"));
        std::vector<std::string> ids;
        for (const BuiltInText& one : builtInLessons()) ids.push_back(readLesson(one.text, std::string(one.name))->id);
        for (const Term& term : *read) {
            QVERIFY2(term.lesson.empty() || std::find(ids.begin(), ids.end(), term.lesson) != ids.end(),
                     term.name.c_str());
            for (const std::string& related : term.related)
                QVERIFY2(findTerm(related), (term.name + " → " + related).c_str());
        }
    }
    void mentions()
    {
        const std::string text = "A bubble fraction, a bubble and microbatches; not bubblegum. V-Half holds half.";
        const auto found = mentionsIn(text);
        QStringList names;
        for (const Mention& one : found) names << QString::fromStdString(text.substr(one.begin, one.length));
        QCOMPARE(names, QStringList({"bubble fraction", "bubble", "microbatches", "V-Half"}));
        QVERIFY(mentionsIn("").empty());
        // A verb is not a mention, nor is a part of a joined word.
        const std::string verbs = "They run and it costs 3. The run costs one unit; zb-h1 too. Owners gather once.";
        names.clear();
        for (const Mention& one : mentionsIn(verbs))
            names << QString::fromStdString(verbs.substr(one.begin, one.length));
        QCOMPARE(names, QStringList({"run", "unit"}));
    }
    void termsOfSharedState()
    {
        const auto termOf = [](std::string_view words) {
            return QString::fromStdString(findTerm(words) ? findTerm(words)->id : std::string("none"));
        };
        QCOMPARE(termOf("replicas"), QStringLiteral("replica")); // not the copies of a stage within one pipeline
        QCOMPARE(termOf("gathers"), QStringLiteral("gather"));
        QCOMPARE(termOf("reduce-scatter"), QStringLiteral("reduction"));
        QCOMPARE(termOf("ZeRO"), QStringLiteral("sharding"));
        QCOMPARE(termOf("unit"), QStringLiteral("unit"));
    }
    void damagedGlossary()
    {
        QVERIFY(!readGlossary("## A\nx\n## A\ny\n"));
        QVERIFY(!readGlossary("## A\n"));
        QVERIFY(!readGlossary("## A\nx\nSee: nobody\n"));
    }

    void progressKeepsAnswers()
    {
        QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/deep/lessons.json";
        auto progress = *LearnerProgress::read(path);
        auto lesson = *readLesson(lessonTemplate("base"), "base.md");
        QCOMPARE(progress.markOf(lesson), Mark::None);
        KeptAnswer answer{
            "base", "thrifty", lesson.hash, Mark::Done, *writeScheduleCsv(*makeSchedule("1f1b", {4, 8, 0})),
            {},     {},        {},          5};
        progress.keep(answer);
        QCOMPARE(progress.markOf(lesson), Mark::Done);
        answer.mark = Mark::Shown;
        progress.keep(answer); // a solution shown by the program does not replace the mark
        QCOMPARE(progress.find("base", "thrifty")->mark, Mark::Done);
        progress.keep({"base", "both", lesson.hash, Mark::Proved, {}, {}, {}, {}, 6});
        QCOMPARE(progress.markOf(lesson), Mark::Proved);
        QVERIFY(progress.write(path));

        auto again = *LearnerProgress::read(path);
        QCOMPARE(again.answers().size(), std::size_t(2));
        QCOMPARE(again.find("base", "thrifty")->csv, answer.csv);

        // An edited lesson grades the kept answer again: it still passes a reworded goal, but no longer a harder one.
        std::string text = lessonTemplate("base");
        auto reworded = *readLesson(text + "\nOne more sentence.\n", "base.md");
        again.regrade(reworded);
        QCOMPARE(again.find("base", "thrifty")->mark, Mark::Done);
        QCOMPARE(again.find("base", "thrifty")->hash, reworded.hash);
        text.replace(text.find("peak_activation <= p-r"), 22, "peak_activation <= p-r-1");
        auto harder = *readLesson(text, "base.md");
        again.regrade(harder);
        QCOMPARE(again.find("base", "thrifty")->mark, Mark::Guessed);
        again.forget("base");
        QVERIFY(again.answers().empty());
    }
    // Each change is made to what is there by then, whoever wrote it.
    void changesAtTheSameTimeAreAllKept()
    {
        QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/lessons.json";
        constexpr int writers = 4, changes = 25;
        std::vector<std::thread> threads;
        for (int writer = 0; writer < writers; ++writer)
            threads.emplace_back([&path, writer] {
                for (int i = 0; i < changes; ++i)
                    (void)LearnerProgress::change(path, [&](LearnerProgress& now) {
                        now.keep({"base",
                                  std::to_string(writer) + "-" + std::to_string(i),
                                  1,
                                  Mark::Guessed,
                                  {},
                                  {},
                                  {},
                                  {},
                                  1});
                    });
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(LearnerProgress::read(path)->answers().size(), std::size_t(writers * changes));
        const auto forgotten = LearnerProgress::change(path, [](LearnerProgress& now) { now.forget("base"); });
        QVERIFY(forgotten && forgotten->answers().empty() && LearnerProgress::read(path)->answers().empty());
        // a damaged file is not written over
        const std::string bad = folder.path().toStdString() + "/bad.json";
        QFile file(QString::fromStdString(bad));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{") == 1);
        file.close();
        QVERIFY(!LearnerProgress::change(bad, [](LearnerProgress&) {}));
        QCOMPARE(QFileInfo(file).size(), qint64(1));
    }
    // 120 files that nest deeper than any reader may follow, at every place of the format.
    void nestedProgress()
    {
        QTemporaryDir folder;
        const QString path = folder.path() + "/lessons.json";
        const std::vector<QByteArray> places{
            "%",
            "{\"format\":%,\"version\":1,\"answers\":[]}",
            "{\"format\":\"stagewright-lessons\",\"version\":%,\"answers\":[]}",
            "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":%}",
            "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[%]}",
            "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[{\"lesson\":%}]}",
            "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[],\"other\":%}",
            "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[{\"lesson\":\"a\",\"check\":\"b\",\"hash\":"
            "\"1\",\"mark\":\"done\",\"said\":%}]}"};
        const std::vector<std::pair<QByteArray, QByteArray>> nests{
            {"[", "]"}, {"{\"a\":", "}"}, {"[{\"a\":", "}]"}, {"[", ""}, {"[[],", "]"}};
        for (const QByteArray& place : places)
            for (const auto& [open, close] : nests)
                for (const int depth : {101, 3000, 60000}) {
                    QByteArray text = place;
                    text.replace("%", open.repeated(depth) + "1" + close.repeated(depth));
                    QFile file(path);
                    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
                    file.close();
                    const auto read = LearnerProgress::read(path.toStdString());
                    QVERIFY2(!read && read.error().message.find("nested too deep") != std::string::npos,
                             qPrintable(QStringLiteral("%1 %2 %3").arg(QString(place), QString(open)).arg(depth)));
                }
    }
    void damagedProgress()
    {
        QTemporaryDir folder;
        const QString path = folder.path() + "/lessons.json";
        for (const char* text : {"", "{", "[]", "{\"format\":\"other\"}", "{\"format\":1,\"answers\":[]}",
                                 "{\"format\":\"stagewright-lessons\",\"version\":\"x\",\"answers\":[]}",
                                 "{\"format\":\"stagewright-lessons\",\"version\":9,\"answers\":[]}",
                                 "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[{}]}",
                                 "{\"format\":\"stagewright-lessons\",\"version\":1,\"answers\":[{\"lesson\":1,"
                                 "\"check\":\"a\",\"hash\":\"x\",\"mark\":\"done\"}]}"}) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text);
            file.close();
            const auto read = LearnerProgress::read(path.toStdString());
            QVERIFY2(!read, text);
            QVERIFY(QString::fromStdString(read.error().message).startsWith(path));
            QVERIFY(!read.error().remedy.empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestNarration)
#include "tst_narration.moc"
