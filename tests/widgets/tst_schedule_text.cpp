// The schedule as text beside the canvas: where ops are in it, typed texts read into the edited shape, records of
// edits.
#include <QLabel>
#include <QSignalSpy>
#include <QtTest>

#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "widgets/edit/edit_record.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/edit/text_sync.h"

using namespace stagewright;

namespace {

Schedule make(const char* name, int ranks = 4, int microbatches = 8)
{
    return *makeSchedule(name, Shape{ranks, microbatches, 0});
}
QString textOf(const Schedule& schedule) { return textLinesOf(schedule)->join(QLatin1Char('\n')); }

} // namespace

class TestScheduleText : public QObject {
    Q_OBJECT

private slots:
    void columnsAndOpsFindEachOther()
    {
        for (const char* name : {"1f1b", "dualpipe", "zb-h1", "terapipe"}) {
            const Schedule schedule = make(name);
            const QStringList lines = *textLinesOf(schedule);
            const int skip = settingsLines(lines.first());
            for (int r = 0; r < schedule.ranks; ++r) {
                const QString line = lines[r + skip];
                const auto& row = schedule.order[static_cast<std::size_t>(r)];
                for (int i = 0; i < static_cast<int>(row.size()); ++i) {
                    const TextSpan span = spanOfOp(line, i);
                    QVERIFY(span.valid());
                    QCOMPARE(line.mid(span.column, span.length),
                             QString::fromStdString(toText(row[static_cast<std::size_t>(i)])));
                    QCOMPARE(opAtColumn(line, span.column), i);
                    QCOMPARE(opAtColumn(line, span.column + span.length), i);
                }
                QVERIFY(!spanOfOp(line, static_cast<int>(row.size())).valid());
            }
        }
        QCOMPARE(opAtColumn(QStringLiteral("0F0, ,1F0"), 4), -1); // a blank cell holds none
        QCOMPARE(spanOfOp(QStringLiteral("0F0, ,1F0"), 1).column, 6);
        QCOMPARE(spanOfCell(QStringLiteral("0F0, ,1F0"), 3).column, 6);
    }

    void typedTextsKeepTheShape()
    {
        const Schedule frame = make("1f1b");
        const QString text = textOf(frame);
        const TypedOrder same = readTypedOrder(text, frame);
        QVERIFY(same.schedule.has_value());
        QVERIFY(*same.schedule == frame);
        // An op removed: the shape stays, so it is missing and not the last microbatch of another schedule.
        QString without = text;
        without.remove(QStringLiteral(",3B7"));
        const TypedOrder missing = readTypedOrder(without, frame);
        QVERIFY(missing.schedule.has_value());
        QCOMPARE(missing.schedule->microbatches, 8);
        QCOMPARE(unplacedOps(*missing.schedule).size(), std::size_t{1});
        QCOMPARE(readTypedOrder(QStringLiteral(",\n,\n,\n,"), frame).schedule->opCount(), std::size_t{0});
        // A completely different schedule is read as it is.
        const Schedule other = make("zb-h1", 3, 5);
        const TypedOrder pasted = readTypedOrder(textOf(other), frame);
        QVERIFY(pasted.schedule.has_value());
        QVERIFY(pasted.schedule->order == other.order);
    }

    void faultsAreNamedWithTheirPlace()
    {
        const Schedule frame = make("1f1b");
        const QString text = textOf(frame);
        const QStringList lines = text.split(QLatin1Char('\n'));
        struct Case {
            const char* typed;
            const char* says;
        };
        for (const Case& c : {Case{"1X3", "line 2"}, Case{"1F99", "microbatch 99, but microbatches are 0 to 7"},
                              Case{"7F0", "stage 7, but stages are 0 to 3"}, Case{"1SEND_F0", "sends and receives"},
                              Case{"1F", "line 2"}}) {
            QStringList changed = lines;
            const TextSpan old = spanOfOp(changed[1], 2);
            changed[1].replace(old.column, old.length, QString::fromLatin1(c.typed));
            const TypedOrder order = readTypedOrder(changed.join(QLatin1Char('\n')), frame);
            QVERIFY2(!order.schedule.has_value(), c.typed);
            QVERIFY2(order.schedule.error().message.find(c.says) != std::string::npos,
                     order.schedule.error().message.c_str());
            QVERIFY2(order.fault.valid(), c.typed);
            QCOMPARE(order.fault.line, 1);
            QCOMPARE(changed[1].mid(order.fault.column, order.fault.length), QString::fromLatin1(c.typed));
        }
        QVERIFY(!readTypedOrder(text + QStringLiteral("\n0F0"), frame).schedule.has_value()); // one rank too many
    }

    void whatIsTypedComesOutAndWhatCannotBeReadStays()
    {
        ScheduleText text;
        text.resize(600, 200);
        text.show();
        QVERIFY(QTest::qWaitForWindowExposed(&text));
        const auto schedule = std::make_shared<const Schedule>(make("1f1b"));
        text.setSchedule(schedule, validate(*schedule));
        QVERIFY(text.inStep());
        QCOMPARE(text.field()->toPlainText(), textOf(*schedule));
        QSignalSpy typed(&text, &ScheduleText::typed), caret(&text, &ScheduleText::caretMoved);
        text.field()->setFocus();
        text.field()->moveCursor(QTextCursor::Start);
        QTest::keyClick(text.field(), Qt::Key_Right);
        QVERIFY(!caret.isEmpty());
        QCOMPARE(caret.last().at(0).value<OpPosition>(), (OpPosition{0, 0}));
        // "0F0" → "0X0": not an op. The text stays, also when the canvas changes.
        QTest::keyClick(text.field(), Qt::Key_Delete);
        QTest::keyClicks(text.field(), QStringLiteral("X"));
        QTRY_VERIFY_WITH_TIMEOUT(text.settled(), 20000);
        QVERIFY(!text.inStep());
        QVERIFY(typed.isEmpty());
        QVERIFY(text.fault().valid());
        QCOMPARE(text.fault().line, 0);
        QVERIFY(!text.message().isEmpty());
        auto moved = std::make_shared<Schedule>(*schedule);
        std::swap(moved->order[3][2], moved->order[3][3]);
        text.setSchedule(moved, validate(*moved));
        QVERIFY(text.field()->toPlainText().startsWith(QStringLiteral("0X0")));
        // Fixed: the typed text is the order, including text typed elsewhere before.
        QTest::keyClick(text.field(), Qt::Key_Backspace);
        QTest::keyClicks(text.field(), QStringLiteral("F"));
        QTRY_VERIFY_WITH_TIMEOUT(!typed.isEmpty(), 20000);
        QVERIFY(typed.last().at(0).value<Schedule>() == *schedule);
        text.setSchedule(schedule, validate(*schedule));
        QVERIFY(text.inStep());
        // Undo belongs to the order once the text matches the canvas.
        QSignalSpy undo(&text, &ScheduleText::undoAsked);
        QTest::keyClick(text.field(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(undo.count(), 1);
    }

    // Blanks and blank cells stay while typing, also once applied; only the canvas normalises lines.
    void whatIsTypedIsNeverRewritten()
    {
        ScheduleText text;
        text.resize(600, 200);
        text.show();
        QVERIFY(QTest::qWaitForWindowExposed(&text));
        auto schedule = std::make_shared<const Schedule>(make("1f1b"));
        text.setSchedule(schedule, validate(*schedule));
        connect(&text, &ScheduleText::typed, &text, [&](const Schedule& order) { // as the window does
            schedule = std::make_shared<const Schedule>(order);
            text.setSchedule(schedule, validate(*schedule));
        });
        QSignalSpy typed(&text, &ScheduleText::typed);
        text.field()->setFocus();
        text.field()->moveCursor(QTextCursor::EndOfLine);
        QTest::keyClicks(text.field(), QStringLiteral(" , "));
        QTRY_VERIFY_WITH_TIMEOUT(text.settled(), 20000);
        const QString first = text.field()->toPlainText().section(QLatin1Char('\n'), 0, 0);
        QVERIFY2(first.endsWith(QStringLiteral("0B7 , ")), qPrintable(first));
        for (int i = 0; i < 3; ++i) QTest::keyClick(text.field(), Qt::Key_Backspace);
        for (int i = 0; i < 4; ++i) QTest::keyClick(text.field(), Qt::Key_Backspace); // ",0B7": it is in the tray
        QTest::keyClicks(text.field(), QStringLiteral("  "));
        QTRY_VERIFY_WITH_TIMEOUT(!typed.isEmpty() && text.settled(), 20000);
        QVERIFY(text.inStep());
        QVERIFY2(text.field()->toPlainText().section(QLatin1Char('\n'), 0, 0).endsWith(QStringLiteral("0B6  ")),
                 qPrintable(text.field()->toPlainText()));
        const int caret = text.field()->textCursor().position();
        text.setSchedule(schedule, validate(*schedule)); // set once more
        QCOMPARE(text.field()->textCursor().position(), caret);
        auto moved = std::make_shared<Schedule>(*schedule);
        std::swap(moved->order[0][2], moved->order[0][3]);
        text.setSchedule(moved, validate(*moved));
        QCOMPARE(text.field()->toPlainText(), textOf(*moved));
    }

    // The reason has its own space at the right of its line; it covers no text.
    void faultsStandBesideTheirLine()
    {
        ScheduleText text;
        text.resize(700, 220);
        text.show();
        QVERIFY(QTest::qWaitForWindowExposed(&text));
        const auto schedule = std::make_shared<const Schedule>(make("1f1b"));
        text.setSchedule(schedule, validate(*schedule));
        QVERIFY(!text.faultLabel()->isVisible());
        text.field()->setFocus();
        text.field()->moveCursor(QTextCursor::Start);
        text.field()->moveCursor(QTextCursor::Down);
        QTest::keyClicks(text.field(), QStringLiteral("7F0,"));
        QTRY_VERIFY_WITH_TIMEOUT(text.settled() && text.fault().valid(), 20000);
        QCOMPARE(text.fault().line, 1);
        const QRect label = text.faultLabel()->geometry();
        QVERIFY(text.faultLabel()->isVisible());
        QVERIFY2(
            label.left() >= text.field()->viewport()->geometry().right(),
            qPrintable(QStringLiteral("%1 %2").arg(label.left()).arg(text.field()->viewport()->geometry().right())));
        QVERIFY(text.field()->rect().contains(label));
        QVERIFY(text.field()->viewport()->rect().contains(text.field()->cursorRect()));
        QVERIFY2(!text.faultLabel()->text().startsWith(QStringLiteral("line")), qPrintable(text.faultLabel()->text()));
        int said = 0; // once: the line below names the place alone
        for (const QLabel* shown : text.findChildren<QLabel*>())
            said += shown->isVisible() && shown->text().contains(text.faultLabel()->text()) ? 1 : 0;
        QCOMPARE(said, 1);
        const QRect line = text.field()->cursorRect().translated(text.field()->viewport()->pos());
        QVERIFY(label.top() <= line.bottom() && label.bottom() >= line.top());
        for (int i = 0; i < 4; ++i) QTest::keyClick(text.field(), Qt::Key_Backspace);
        QTRY_VERIFY_WITH_TIMEOUT(!text.faultLabel()->isVisible(), 20000);
        QCOMPARE(text.field()->rightMargin(), 0);
    }

    void faultsOfTheOrderAreUnderlined()
    {
        ScheduleText text;
        auto schedule = std::make_shared<Schedule>(make("1f1b"));
        auto& row = schedule->order[3];
        std::swap(row[0], row[1]); // backward before its forward
        text.setSchedule(schedule, validate(*schedule));
        QVERIFY(text.inStep());
        QVERIFY(text.fault().valid());
        QCOMPARE(text.fault().line, 3);
        bool waved = false;
        for (const auto& mark : text.field()->extraSelections())
            waved = waved || (mark.format.underlineStyle() == QTextCharFormat::WaveUnderline &&
                              mark.cursor.selectedText() == QString::fromStdString(toText(row[0])));
        QVERIFY(waved);
        text.setSchedule(std::make_shared<const Schedule>(make("1f1b")), {});
        QVERIFY(!text.fault().valid());
    }

    void recordsReadBackAsWritten()
    {
        for (const char* name : {"1f1b", "chimera", "dualpipe", "interleaved-1f1b", "terapipe", "pipedream"}) {
            EditRecord record;
            record.when = QStringLiteral("2026-01-02T03:04:05Z");
            record.source = QStringLiteral("a name\nof two lines \\ and more");
            record.file = QStringLiteral("/tmp/x = y.stagewright");
            record.run = 7;
            record.changes = 3;
            record.original = make(name);
            record.original.name = "with spaces";
            record.edited = removeOps(record.original, {{1, 2}, {0, 0}})->schedule;
            record.costs = CostModel::uniform(record.original);
            const auto text = writeEditRecord(record);
            QVERIFY(text.has_value());
            const auto back = readEditRecord(*text);
            QVERIFY2(back.has_value(), back ? "" : back.error().message.c_str());
            QCOMPARE(back->when, record.when);
            QCOMPARE(back->source, record.source);
            QCOMPARE(back->file, record.file);
            QCOMPARE(back->run, record.run);
            QCOMPARE(back->changes, record.changes);
            QVERIFY2(back->original == record.original, name);
            QVERIFY2(back->edited == record.edited, name);
            QVERIFY(back->costs == record.costs);
            for (std::size_t size = 0; size < text->size(); size += 97)
                QVERIFY(!readEditRecord(std::string_view(*text).substr(0, size)).has_value());
        }
        EditRecord empty;
        empty.original = emptySchedule(2, 4, 3);
        empty.edited = empty.original;
        empty.costs = CostModel::uniform(empty.original);
        const auto text = writeEditRecord(empty);
        QVERIFY(text.has_value());
        QVERIFY(readEditRecord(*text)->edited == empty.edited);
    }
};

QTEST_MAIN(TestScheduleText)
#include "tst_schedule_text.moc"
