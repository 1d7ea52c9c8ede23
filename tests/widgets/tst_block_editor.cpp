// The building-block editor: papers' blocks, dragging and keys, live validity, figures and the schedule made from a
// block.
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QtTest>

#include "widgets/library/block_editor.h"

using namespace stagewright;

class TestBlockEditor : public QObject {
    Q_OBJECT
private slots:
    void presetsAreValidAndMakeSchedules()
    {
        BlockEditor editor(Theme::light());
        for (const char* preset : {"v-min", "v-half", "v-half:turn=paper", "v-zb", "1f1b"}) {
            editor.choose(QString::fromLatin1(preset), 4, 8);
            QVERIFY2(editor.valid(), preset);
            QTRY_VERIFY_WITH_TIMEOUT(editor.settled(), 20000);
            QVERIFY(editor.schedule());
            QCOMPARE(editor.schedule()->ranks, 4);
            QCOMPARE(editor.schedule()->microbatches, 8);
            QVERIFY(editor.figuresText().contains(QStringLiteral("Step time")));
        }
    }

    void aPassOnAnotherIsAFault()
    {
        BlockEditor editor(Theme::light());
        const Block whole = editor.block();
        const BlockPass forward{1, 0, OpKind::Forward};
        const int was = slotOf(whole, forward);
        QVERIFY(was > 0);
        editor.setBlock(withPassAt(whole, forward, slotOf(whole, {1, 1, OpKind::Forward})));
        QVERIFY(!editor.valid());
        QVERIFY(!editor.faultText().isEmpty());
        QVERIFY(!editor.findChild<QPushButton*>(QStringLiteral("primary"))->isEnabled());
        editor.setBlock(whole);
        QVERIFY(editor.valid() && editor.faultText().isEmpty());
    }

    void keyboardMovesAPass()
    {
        BlockEditor editor(Theme::light());
        editor.show();
        QVERIFY(QTest::qWaitForWindowExposed(&editor));
        BlockView* view = editor.view();
        view->setFocus();
        QVERIFY(view->selected());
        QTest::keyClick(view, Qt::Key_Down);
        QCOMPARE(view->selected()->device, 1);
        QTest::keyClick(view, Qt::Key_Right);
        const BlockPass pass = *view->selected();
        const int slot = slotOf(editor.block(), pass);
        QTest::keyClick(view, Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(slotOf(editor.block(), pass), slot + 1);
        QTest::keyClick(view, Qt::Key_Left, Qt::ControlModifier);
        QCOMPARE(slotOf(editor.block(), pass), slot);
    }

    void dragMovesAPass()
    {
        BlockEditor editor(Theme::light());
        editor.show();
        QVERIFY(QTest::qWaitForWindowExposed(&editor));
        BlockView* view = editor.view();
        const BlockPass pass{0, 1, OpKind::InputGrad};
        const int slot = slotOf(editor.block(), pass);
        const QPoint from = view->rectOf(pass).center().toPoint();
        // one interval later
        const QPoint to = from + QPoint(static_cast<int>((view->rectOf(pass).width() + 1) * 6), 0);
        QTest::mousePress(view, Qt::LeftButton, {}, from);
        QMouseEvent move(QEvent::MouseMove, to, view->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(view, &move);
        QTest::mouseRelease(view, Qt::LeftButton, {}, to);
        QVERIFY(slotOf(editor.block(), pass) > slot);
    }

    void textAndPictureAgree()
    {
        BlockEditor editor(Theme::light());
        auto* text = editor.findChild<QPlainTextEdit*>(QStringLiteral("blockText"));
        QCOMPARE(text->toPlainText(), QString::fromStdString(toText(editor.block())));
        const Block other = vZbBlock(3);
        text->setPlainText(QString::fromStdString(toText(other)));
        QCOMPARE(editor.view()->block().devices, other.devices);
        text->setPlainText(QStringLiteral("no block"));
        QVERIFY(!editor.valid() && !editor.faultText().isEmpty());
    }

    void createGivesTheSchedule()
    {
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            BlockEditor editor(*theme);
            QSignalSpy made(&editor, &BlockEditor::createAsked);
            editor.show();
            QTRY_VERIFY_WITH_TIMEOUT(editor.settled(), 20000);
            const QImage image = editor.view()->grab().toImage();
            const QPointF at = editor.view()->rectOf({0, 0, OpKind::Forward}).topLeft() + QPointF(5, 6);
            QCOMPARE(image.pixelColor((at * image.devicePixelRatio()).toPoint()), theme->of(OpKind::Forward).fill);
            editor.findChild<QPushButton*>(QStringLiteral("primary"))->click();
            QCOMPARE(made.size(), 1);
        }
    }
};

QTEST_MAIN(TestBlockEditor)
#include "tst_block_editor.moc"
