// Every survey of surveys.def: its defaults are in range, values out of range are refused in words, the same question
// has the same answer, a stopped one ends early and says so, and tables and plots are well formed.
#include <QtTest/QtTest>

#include <cmath>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/survey/heat.h"
#include "schedules/survey/levels.h"
#include "schedules/survey/memory.h"
#include "schedules/survey/partial.h"
#include "schedules/survey/state.h"
#include "schedules/survey/uneven.h"

using namespace stagewright;

namespace {

// Small enough for a quick test.
SurveyValues smallQuestion(const SurveyInfo& survey)
{
    const SurveyValues small{{"ranks", "4"},    {"microbatches", "8"}, {"schedules", "1f1b,zb-h1,pipedream"},
                             {"replicas", "4"}, {"batch", "6"},        {"samples", "16"},
                             {"tried", "1"}};
    SurveyValues out;
    for (const SurveyField& field : survey.fields())
        if (const auto at = small.find(field.name); at != small.end()) out.insert(*at);
    return out;
}

Result<SurveyAnswer> answered(const SurveyInfo& survey, const SurveyValues& given, const Progress& progress = {})
{
    const auto question = SurveyQuestion::read(survey, given);
    if (!question) return tl::unexpected(question.error());
    return survey.answer(*question, progress);
}

std::string textOf(const SurveyAnswer& answer)
{
    std::string out = answer.setup;
    for (const SurveyTable& table : answer.tables)
        out += table.title + csvOf(table.columns, table.rows, answer.units) + table.sentence;
    return out;
}

double valueIn(const SurveyTable& table, std::size_t row, const std::string& key)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].key == key)
            return std::stod(cellValue(table.columns[i], table.rows[row][i], exploreUnits));
    return std::nan("");
}

} // namespace

class TestSurvey : public QObject {
    Q_OBJECT

private slots:
    void everySurveyAnswers_data()
    {
        QTest::addColumn<QString>("name");
        for (const SurveyInfo* survey : allSurveys()) QTest::newRow(survey->name.data()) << survey->name.data();
    }
    void everySurveyAnswers()
    {
        QFETCH(QString, name);
        const SurveyInfo& survey = **findSurvey(name.toStdString());
        QVERIFY(!survey.title.empty() && !survey.summary.empty());
        QVERIFY(SurveyQuestion::read(survey, {}).has_value());
        const auto answer = answered(survey, smallQuestion(survey));
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().message.c_str());
        QVERIFY(answer->complete && !answer->setup.empty() && !answer->tables.empty());
        QVERIFY(!answer->tables.front().rows.empty());
        for (const SurveyTable& table : answer->tables)
            for (const TableRow& row : table.rows) QCOMPARE(row.size(), table.columns.size());
        QVERIFY(!answer->plot.empty());
        for (const PlotSeries& series : answer->plot.series)
            for (const PlotPoint& point : series.points) QVERIFY(std::isfinite(point.x) && std::isfinite(point.y));
        QCOMPARE(textOf(*answered(survey, smallQuestion(survey))), textOf(*answer)); // deterministic
    }

    void whatIsStoppedSaysSo()
    {
        std::stop_source source;
        source.request_stop();
        Progress progress;
        progress.stop = source.get_token();
        for (const SurveyInfo* survey : allSurveys()) {
            if (survey->name == "partial") continue; // nothing of it takes time
            const auto answer = answered(*survey, {}, progress);
            QVERIFY(answer.has_value());
            QVERIFY(!answer->complete);
            QVERIFY(answer->tables.front().rows.empty());
        }
    }

    // Places by formula, units, costs and messages; what changes them.
    void levelsSayWhatChangesPlaces()
    {
        ExploreQuestion question;
        question.ranks = 4;
        question.microbatches = 8;
        question.latency = 0.5;
        question.inputGrad = 1.5;
        const auto answer = levelsSurvey(question, {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv"});
        QVERIFY(answer.complete);
        QCOMPARE(answer.rows.size(), std::size_t{5});
        const auto of = [&](const char* name) {
            return *std::find_if(answer.rows.begin(), answer.rows.end(),
                                 [&](const LevelRow& row) { return row.schedule == name; });
        };
        // formula and simulation at unit costs are the same: 1F1B (m + p − 1) × 3
        QCOMPARE(*of("1f1b").step[0], 33.0);
        QCOMPARE(*of("1f1b").step[1], 33.0);
        QCOMPARE(of("1f1b").place[1], of("gpipe").place[1]);
        QVERIFY(*of("1f1b").step[3] > *of("gpipe").step[3]); // with messages GPipe waits less
        QVERIFY(std::any_of(answer.flips.begin(), answer.flips.end(),
                            [](const std::string& flip) { return flip.find("Messages add") != std::string::npos; }));
        QVERIFY(!answer.measured());
        for (std::size_t level = 1; level + 1 < truthLevelCount; ++level) {
            int first = 0;
            for (const LevelRow& row : answer.rows) first += row.place[level] == 1 ? 1 : 0;
            QVERIFY(first >= 1);
        }
        QVERIFY(std::is_sorted(answer.rows.begin(), answer.rows.end(),
                               [](const LevelRow& a, const LevelRow& b) { return *a.step[3] < *b.step[3]; }));
        // what was measured is the last level, sorts, and says how far the others are from it
        const auto measured = levelsSurvey(question, {"gpipe", "1f1b"}, {}, {{"gpipe", 50.0}, {"1f1b", 40.0}});
        QVERIFY(measured.measured());
        QCOMPARE(measured.rows.front().schedule, std::string("1f1b"));
        QCOMPARE(measured.rows.front().place.back(), 1);
        QCOMPARE(levelsTable(measured).columns.size(), levelsTable(answer).columns.size() + 2);
        QVERIFY(levelsTable(measured).sentence.find("from the measured steps on average") != std::string::npos);
        QVERIFY(levelsTable(measured).sentence.find("What the simulation leaves out") != std::string::npos);
        QCOMPARE(levelsPlot(measured).across.names.size(), 5U);
        question.latency = 0;
        question.inputGrad = 1;
        const auto same = levelsSurvey(question, {"1f1b", "zb-h1"});
        QVERIFY(same.flips.empty());
        QVERIFY(levelsTable(same).sentence.find("No two") == 0);
    }

    void valuesOutOfRangeAreRefused()
    {
        for (const SurveyInfo* survey : allSurveys())
            for (const SurveyField& field : survey->fields()) {
                QVERIFY2(!field.title.empty() && field.help.ends_with("."), field.name.c_str());
                if (!field.fallback.empty()) QCOMPARE(faultOf(field, field.fallback), std::string());
                if (field.kind == FieldKind::Text) continue;
                const auto read = SurveyQuestion::read(*survey, {{field.name, "-7x"}});
                QVERIFY(!read.has_value());
                QVERIFY(read.error().message.starts_with(field.name + " takes "));
                QVERIFY(read.error().message.find("'-7x'") != std::string::npos);
                if (field.kind == FieldKind::Choice || field.kind == FieldKind::Switch) continue;
                for (const double outside : {field.least - 1, field.most + 1})
                    QVERIFY(!SurveyQuestion::read(*survey, {{field.name, textOf(outside)}}).has_value());
                for (const double inside : {field.least, field.most})
                    QVERIFY(SurveyQuestion::read(*survey, {{field.name, textOf(inside)}}).has_value());
                if (!field.none.empty())
                    QCOMPARE(SurveyQuestion::read(*survey, {{field.name, field.none}})->real(field.name), 0.0);
            }
        const SurveyInfo& memory = **findSurvey("memory");
        QCOMPARE(SurveyQuestion::read(memory, {{"speeds", "1"}}).error().message,
                 std::string("speeds is not a field of 'memory'"));
        QCOMPARE(SurveyQuestion::read(memory, {{"ranks", "2.5"}}).error().message,
                 std::string("ranks takes a whole number from 2 to 1024, not '2.5'"));
        QVERIFY(findSurvey("memry").error().remedy.find("'memory'") != std::string::npos);
    }

    // What can't be answered is refused; what can't be simulated is in the table with its reason.
    void infeasibleInputIsSaid()
    {
        const SurveyInfo& uneven = **findSurvey("uneven");
        QCOMPARE(answered(uneven, {{"speeds", "3,fast"}}).error().message,
                 std::string("speeds: 'fast' is neither a speed nor a device"));
        QCOMPARE(answered(uneven, {{"memory", "40,48"}}).error().message, std::string("memory: 2 sizes for 3 ranks"));
        QVERIFY(answered(uneven, {{"batch", "2"}}).error().message.find("2 samples for 3 ranks") != std::string::npos);
        const auto tight = answered(uneven, {{"batch", "6"}, {"memory", "20"}});
        QVERIFY(tight->tables.front().sentence.find("no division fits") != std::string::npos);
        QVERIFY(answered(**findSurvey("partial"), {{"replicas", "4"}, {"cuts", "1,2,3,4"}}).error().message.size() >
                10);
        QVERIFY(answered(**findSurvey("heat"), {{"across", "cap"}, {"up", "cap"}}).error().message.find("same") !=
                std::string::npos);
        QVERIFY(answered(**findSurvey("line"), {{"schedules", "1f1c"}}).error().message.find("1f1c") !=
                std::string::npos);
        QVERIFY(!answered(**findSurvey("heat"), {{"schedules", ""}}).has_value());
        const auto few = answered(**findSurvey("state"), {{"schedules", "chimera"}, {"ranks", "3"}});
        const TableRow& row = few->tables.front().rows.front();
        QVERIFY(!std::get<std::string>(row.back()).empty());
        QVERIFY(std::holds_alternative<std::monostate>(row[2])); // unknown, not zero
    }

    // Each row of memory is what simulate() says; the frontier is of synchronous ones within the cap.
    void rowsAreWhatSimulateSays()
    {
        ExploreQuestion question;
        question.ranks = 4;
        question.microbatches = 8;
        question.latency = 0.25;
        question.cap = 4;
        const auto answer = answered(**findSurvey("memory"),
                                     {{"ranks", "4"}, {"microbatches", "8"}, {"latency", "0.25"}, {"cap", "4"}});
        const SurveyTable& table = answer->tables.front();
        int simulated = 0;
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            const std::string name = std::get<std::string>(table.rows[i][0]);
            const SweepRow row = simulatePoint(question.point(name));
            QCOMPARE(std::get<std::string>(table.rows[i].back()), noteOf(row, question));
            if (!row.good()) continue;
            QCOMPARE(valueIn(table, i, "whole_step"), row.timeValue(row.step));
            QCOMPARE(valueIn(table, i, "peak_activation"), row.memoryValue(row.peak()));
            const std::string& on = std::get<std::string>(table.rows[i][table.columns.size() - 2]);
            if (on == "yes") QVERIFY(row.synchronous && overCap(row, question).empty());
            ++simulated;
        }
        QVERIFY(simulated > 20);
    }

    void meanBackwardIsTheFormula()
    {
        for (const int n : {1, 2, 3, 5, 6, 10, 15, 30}) { // divide the 30 layers
            const CutAnswer answer = cutSurvey({"gpt-6.2b", "a100", n, ""});
            QVERIFY(std::abs(answer.mean - (n + 1) / (2.0 * n)) < 1e-12);
            QCOMPARE(answer.replicas.front().cut, 0);
            for (std::size_t k = 1; k < answer.replicas.size(); ++k) {
                QVERIFY(answer.replicas[k].backward < answer.replicas[k - 1].backward);
                QCOMPARE(answer.replicas[k].forward, answer.replicas[0].forward);
            }
        }
        QVERIFY(cutSurvey({"gpt-6.2b", "a100", 4, "1,2,3,4"}).error.size() > 10); // none goes back to layer 0
        QVERIFY(cutSurvey({"gpt-6.2b", "a100", 4, "0,2"}).error.size() > 10);
        const CutAnswer head = cutSurvey({"gpt-6.2b", "a100", 2, "0,30"}); // through the head only
        QVERIFY(head.replicas[1].backward > 0 && head.replicas[1].backward * 10 < head.replicas[0].backward);
        QCOMPARE(head.rows.back().contributors.size(), std::size_t{2});
    }

    void winnersAreTheShortestWithinTheCap()
    {
        const auto answer = answered(
            **findSurvey("heat"),
            {{"ranks", "4"}, {"microbatches", "8"}, {"cap", "4"}, {"schedules", "gpipe,1f1b,zb-h1,pipedream"}});
        const SurveyTable& table = answer->tables.front();
        bool any = false;
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            if (std::holds_alternative<std::monostate>(table.rows[i][2])) continue;
            const std::string winner = std::get<std::string>(table.rows[i][2]);
            QVERIFY(winner != "pipedream"); // stale weights
            ExploreQuestion question;
            question.ranks = 4;
            question.cap = 4;
            question.microbatches = static_cast<int>(valueIn(table, i, "microbatches"));
            question.latency = valueIn(table, i, "latency");
            for (const char* other : {"gpipe", "1f1b", "zb-h1"}) {
                const SweepRow row = simulatePoint(question.point(other));
                if (row.good() && overCap(row, question).empty())
                    QVERIFY(valueIn(table, i, "whole_step") <= row.timeValue(row.step) + 1e-9);
            }
            any = true;
        }
        QVERIFY(any);
    }
};

QTEST_GUILESS_MAIN(TestSurvey)
#include "tst_survey.moc"
