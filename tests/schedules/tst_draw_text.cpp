// The picture in characters: exact for a small schedule, honest about time, within its width.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/base/shown_text.h"
#include "schedules/library/registry.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

std::shared_ptr<const Timeline> timelineFor(const char* name, const Shape& shape)
{
    const Schedule s = *makeSchedule(name, shape);
    return *simulatedTimeline(s, CostModel::uniform(s));
}

QStringList linesOf(const std::string& text) { return QString::fromStdString(text).split('\n', Qt::SkipEmptyParts); }

} // namespace

class TestDrawText : public QObject {
    Q_OBJECT
private slots:
    void smallPicture()
    {
        const QString picture = QString::fromStdString(drawTimeline(*timelineFor("1f1b", {2, 2, 0}), 0, 46, false));
        QCOMPARE(picture, QString("        ╵0             ╵5\n"
                                  "rank 0 │F0 F1 ······B0─── ···B1─── │  67 %\n"
                                  "rank 1 │···F0 B0─── F1 B1─── ······│  67 %\n"
                                  "        F forward  B full backward  · idle   one column = 0.3333 units\n"));
    }
    void asciiHasNoOtherCharacters()
    {
        for (bool colour : {false, true})
            for (char c : drawTimeline(*timelineFor("zb-h1", {4, 8, 0}), 0, 100, colour, false))
                QVERIFY(static_cast<unsigned char>(c) < 128);
    }
    // Cells per kind are proportional to time, where the columns divide evenly.
    void inkIsTime()
    {
        const QStringList lines = linesOf(drawTimeline(*timelineFor("zb-h1", {4, 8, 0}), 0, 200, false, false));
        QCOMPARE(lines.size(), 6);
        for (int r = 0; r < 4; ++r) {
            const QString row = lines[r + 1].section('|', 1, 1);
            QCOMPARE(row.size() % 27, 0);
            QCOMPARE(row.count('.') * 27, row.size() * 3); // 3 of 27 units are idle
            QVERIFY(lines[r + 1].endsWith("89 %"));
        }
    }
    void staysWithinTheColumns()
    {
        for (unsigned seed = 0; seed < 100; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            const auto timeline = *simulatedTimeline(s, CostModel::uniform(s));
            for (int columns : {10, 60, 97, 160}) {
                const QStringList lines = linesOf(drawTimeline(*timeline, 0, columns, false));
                QCOMPARE(lines.size(), s.ranks + 2);
                for (int r = 0; r < s.ranks; ++r) {
                    QVERIFY(lines[r + 1].size() <= std::max(columns, 40));
                    QCOMPARE(lines[r + 1].size(), lines[1].size());
                }
            }
        }
    }
    void coloursByKind()
    {
        const std::string picture = forTerminal(drawTimeline(*timelineFor("zb-h1", {2, 4, 0}), 0, 80, true), true);
        for (const char* background : {"48;2;72;149;238", "48;2;247;192;51", "48;2;138;226;184"})
            QVERIFY(picture.find(background) != std::string::npos);
        // Without the escapes the rows are as wide as without colour.
        const QStringList bare = linesOf(drawTimeline(*timelineFor("zb-h1", {2, 4, 0}), 0, 80, false));
        QStringList coloured = linesOf(picture);
        coloured.replaceInStrings(QRegularExpression("\x1b\\[[0-9;]*m"), "");
        for (int r = 1; r <= 2; ++r) QCOMPARE(coloured[r].size(), bare[r].size());
    }
    void nothingRan()
    {
        QCOMPARE(drawTimeline(*timelineFor("gpipe", {1, 1, 0}), 1, 80, false), std::string("step 2: nothing ran\n"));
    }
    void measuredTimesHaveUnits()
    {
        const Schedule s = *makeSchedule("gpipe", {2, 2, 0});
        CostModel costs = CostModel::uniform(s);
        costs.timeUnit = 1;
        const std::string picture = drawTimeline(**simulatedTimeline(s, costs), 0, 90, false);
        QVERIFY(picture.find("╵50 ms") != std::string::npos || picture.find("╵20 ms") != std::string::npos);
        QVERIFY(picture.find("units") == std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestDrawText)
#include "tst_draw_text.moc"
