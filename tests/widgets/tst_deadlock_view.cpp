// Orders that never end: the cycle drawn on the lists, the sentence, and the change that removes it.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>

#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "widgets/deadlock/deadlock_dialog.h"
#include "widgets/deadlock/deadlock_view.h"

using namespace stagewright;

namespace {

// 1F1B on four ranks in which rank 1 needs a gradient that can't exist yet.
std::shared_ptr<const Schedule> stuck()
{
    Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
    // 1F0 1F1 1F2 1B0 …: the gradient of microbatch 0 before the forwards that lead to it
    auto& list = schedule.order[1];
    const auto at = std::find(list.begin(), list.end(), makeOp(OpKind::Backward, 1, 2));
    const Op op = *at;
    list.erase(at);
    list.insert(std::find(list.begin(), list.end(), makeOp(OpKind::Forward, 1, 3)), op);
    return std::make_shared<const Schedule>(std::move(schedule));
}

} // namespace

class TestDeadlockView : public QObject {
    Q_OBJECT
private slots:
    void theFixIsApplied()
    {
        const auto schedule = stuck();
        QVERIFY(!validate(*schedule).valid());
        DeadlockDialog dialog(Theme::light(), schedule, {});
        QVERIFY(dialog.deadlock().hung());
        QVERIFY(dialog.deadlock().cycle.size() >= 2);
        QVERIFY(!dialog.sentence().isEmpty());
        QVERIFY(!dialog.fixText().isEmpty());
        QVERIFY(!dialog.findChild<QComboBox*>(QStringLiteral("sends"))->isVisibleTo(&dialog)); // nothing is sent in it
        Schedule fixed;
        connect(&dialog, &DeadlockDialog::fixAsked, this, [&](const Schedule& order) { fixed = order; });
        dialog.show();
        QVERIFY(QTest::qWaitForWindowExposed(&dialog));
        QTest::keyClick(&dialog, Qt::Key_Return); // the keyboard alone
        QVERIFY(validate(fixed).valid());
        QCOMPARE(fixed.opCount(), schedule->opCount());
    }

    void theCircleIsDrawn()
    {
        const auto schedule = stuck();
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            DeadlockDialog dialog(*theme, schedule, {});
            dialog.show();
            QVERIFY(QTest::qWaitForWindowExposed(&dialog));
            const QImage image = dialog.view()->grab().toImage();
            int marked = 0;
            for (const BlockedRank& blocked : dialog.deadlock().blocked) {
                const QRectF cell = dialog.view()->cellOf(blocked.rank, blocked.position);
                QVERIFY(!cell.isEmpty());
                const bool victim = std::find(dialog.deadlock().victims.begin(), dialog.deadlock().victims.end(),
                                              blocked.rank) != dialog.deadlock().victims.end();
                const QColor edge =
                    image.pixelColor(static_cast<int>(cell.left()) + 8, static_cast<int>(std::floor(cell.top() - 1.5)));
                if (!victim && edge == theme->critical) ++marked;
            }
            QCOMPARE(marked, static_cast<int>(dialog.deadlock().cycle.size()));
        }
    }

    void rendezvousHangsWhereBuffersWork()
    {
        // 1F1B lowered just in time: neighbours send to each other at the same moment.
        auto lowered = lower(*makeSchedule("1f1b", Shape{4, 8, 0}), Lowering{});
        QVERIFY(lowered);
        const auto schedule = std::make_shared<const Schedule>(std::move(*lowered));
        Channels strict;
        strict.sends = SendMode::Rendezvous;
        DeadlockDialog dialog(Theme::light(), schedule, strict);
        QVERIFY(dialog.deadlock().hung());
        QVERIFY(dialog.deadlock().worksIfBuffered);
        auto* sends = dialog.findChild<QComboBox*>(QStringLiteral("sends"));
        QVERIFY(sends->isVisibleTo(&dialog));
        sends->setCurrentIndex(0);
        QVERIFY(!dialog.deadlock().hung());
        QVERIFY(dialog.fixText().isEmpty());
        QCOMPARE(dialog.view()->textOf(makeOp(OpKind::SendF, 0, 3)), QString(QChar(0x2192)) + QStringLiteral("F3"));
    }
};

QTEST_MAIN(TestDeadlockView)
#include "tst_deadlock_view.moc"
