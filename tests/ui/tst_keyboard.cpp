// Everything by keyboard alone: toolbar, runs list, walking, zoom, history, editing, finding, Escape and the page of
// keys.
#include <QDialog>
#include <QLineEdit>
#include <QToolButton>
#include <QTreeView>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestKeyboard : public WindowTest {
    Q_OBJECT

    static void press(int key, Qt::KeyboardModifiers modifiers = {}) { WindowFixture::press(key, modifiers); }
    SpanRef selected() const { return m_window->workspace().viewState()->selected(); }
    const Timeline& timeline() const { return *m_window->workspace().views().timeline->panels().front()->timeline; }
    QString selectedName() const
    {
        return QString::fromStdString(timeline().nameOf(timeline().spans()[selected().span]));
    }
    int selectedRank() const { return timeline().trackOf(selected().span).rank; }

    void open(std::initializer_list<const char*> schedules)
    {
        const QString path = m_fixture->file("keys.stagewright", schedules);
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
    }

private slots:
    void walksAlongRankStageAndDependencies()
    {
        open({"1f1b"});
        press(Qt::Key_Period);
        QVERIFY(selected().valid());
        QCOMPARE(selectedRank(), 0);
        const SpanRef first = selected();
        press(Qt::Key_Period);
        QCOMPARE(selectedName(), QStringLiteral("0F1"));
        press(Qt::Key_Comma);
        QCOMPARE(selected(), first);
        press(Qt::Key_PageDown);
        QCOMPARE(selectedName(), QStringLiteral("1F0"));
        press(Qt::Key_PageUp);
        QCOMPARE(selectedName(), QStringLiteral("0F0"));
        press(Qt::Key_BracketRight); // what it unblocks
        QVERIFY(!(selected() == first));
        press(Qt::Key_BracketLeft);
        QCOMPARE(selected(), first);
        press(Qt::Key_Escape);
        QVERIFY(!selected().valid());
    }

    void zoomsPansAndGoesBack()
    {
        open({"1f1b"});
        ViewState& state = *m_window->workspace().viewState();
        const TimeRange all = state.visible();
        WindowFixture::walkByKeys(*m_window);
        QTest::qWait(400); // the keys rest: the view is remembered
        press(Qt::Key_Plus);
        press(Qt::Key_Minus);
        press(Qt::Key_F); // the op fills the view
        QVERIFY(state.visible().duration() < all.duration() / 2);
        QVERIFY(state.canGoBack());
        const TimeRange op = state.visible();
        press(Qt::Key_Backspace);
        QVERIFY(!(state.visible() == op));
        press(Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(state.visible(), op);
        press(Qt::Key_Home);
        QCOMPARE(state.visible(), all);
    }

    void editsAndUndoes()
    {
        open({"zb-h1"});
        press(Qt::Key_E);
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Edit);
        ScheduleEditor& editor = m_window->workspace().feature<OrderEditing>()->editor();
        const Schedule original = editor.schedule();
        QVERIFY(m_window->workspace().views().timeline->hasFocus());
        press(Qt::Key_Period);
        press(Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(editor.changed());
        press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(editor.schedule() == original);
        press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(editor.changed());
        press(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(editor.schedule() == original);
        press(Qt::Key_E);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Run);
    }

    void playsAndStops()
    {
        open({"1f1b"});
        press(Qt::Key_P);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().actions()["play"]->isChecked(), 20000);
        press(Qt::Key_P);
        QVERIFY(!m_window->workspace().actions()["play"]->isChecked());
        QVERIFY(m_window->workspace().actions()["previousBeat"]->isEnabled());
        press(Qt::Key_Escape);
        QVERIFY(!m_window->workspace().actions()["previousBeat"]->isEnabled());
    }

    void findsAndComesBack()
    {
        open({"zb-h1"});
        press(Qt::Key_Slash);
        auto* field = m_window->findChild<QLineEdit*>(QStringLiteral("find"));
        QTRY_VERIFY(field->hasFocus());
        for (const char letter : std::string("e 2F5")) // E would start editing elsewhere
            QTest::keyClick(field, letter);
        QCOMPARE(field->text().toLower(), QStringLiteral("e 2f5"));
        QCOMPARE(m_window->workspace().shown().mode(), Shown::Mode::Run);
        field->clear();
        QTest::keyClicks(field, QStringLiteral("2F5"));
        press(Qt::Key_Return);
        QCOMPARE(selectedName(), QStringLiteral("2F5"));
        press(Qt::Key_Escape);
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
        press(Qt::Key_F3);
        QVERIFY(selected().valid());
    }

    void choosesARunInTheList()
    {
        open({"1f1b", "zb-h1"});
        auto* tree = m_window->findChild<QTreeView*>();
        tree->setFocus(Qt::TabFocusReason);
        QTRY_VERIFY(tree->hasFocus());
        QCOMPARE(m_window->workspace().shown().ref().id, 1);
        press(Qt::Key_Down);
        press(Qt::Key_Return);
        QVERIFY(QTest::qWaitFor(
            [&] { return m_window->workspace().shown().ref().id == 2 && m_window->workspace().settled(); }, 10000));
        QVERIFY(tree->hasFocus());
        press(Qt::Key_Up);
        press(Qt::Key_Return);
        QVERIFY(QTest::qWaitFor(
            [&] { return m_window->workspace().shown().ref().id == 1 && m_window->workspace().settled(); }, 10000));
    }

    // Tab alone reaches every toolbar button, the list, the timeline and the charts, and each shows the focus.
    void tabComesEverywhere()
    {
        open({"1f1b", "zb-h1"});
        QSet<QString> missing;
        for (auto* button : m_window->findChildren<QToolButton*>())
            if (button->isVisible() && button->isEnabled() && button->defaultAction() != nullptr)
                missing << button->defaultAction()->objectName();
        QVERIFY(missing.contains(QStringLiteral("record")) && missing.contains(QStringLiteral("exportPicture")));
        QSet<QWidget*> seen;
        bool list = false;
        bool charts = false;
        for (int i = 0; i < 80; ++i) {
            press(Qt::Key_Tab);
            QWidget* now = QApplication::focusWidget();
            QVERIFY(now != nullptr);
            seen << now;
            if (auto* button = qobject_cast<QToolButton*>(now);
                button != nullptr && button->defaultAction() != nullptr) {
                if (missing.contains(button->defaultAction()->objectName())) {
                    const QImage with = button->grab().toImage();
                    button->clearFocus();
                    QVERIFY2(button->grab().toImage() != with,
                             qPrintable(button->defaultAction()->objectName() + QStringLiteral(" shows no focus")));
                    button->setFocus(Qt::TabFocusReason);
                }
                missing.remove(button->defaultAction()->objectName());
            }
            list = list || qobject_cast<QTreeView*>(now) != nullptr;
            charts = charts || now == m_window->workspace().views().memory;
        }
        QVERIFY2(missing.isEmpty(), qPrintable(QStringList(missing.values()).join(QLatin1Char(' '))));
        QVERIFY(list);
        QVERIFY(charts);
        QVERIFY(seen.contains(m_window->workspace().views().timeline));
        QVERIFY(seen.contains(m_window->findChild<QLineEdit*>(QStringLiteral("find"))));
    }

    void theTimelineShowsItsFocus()
    {
        open({"1f1b"});
        for (QWidget* view : {static_cast<QWidget*>(m_window->workspace().views().timeline),
                              static_cast<QWidget*>(m_window->workspace().views().memory)}) {
            view->setFocus(Qt::TabFocusReason);
            QTRY_VERIFY(view->hasFocus());
            const QImage with = view->grab().toImage();
            m_window->findChild<QLineEdit*>(QStringLiteral("find"))->setFocus();
            QVERIFY(!view->hasFocus());
            QVERIFY2(view->grab().toImage() != with, qPrintable(view->accessibleName()));
        }
    }

    void toolbarKeysDoWhatTheyTell()
    {
        open({"1f1b", "zb-h1"});
        press(Qt::Key_B, Qt::ControlModifier);
        QVERIFY(!m_window->workspace().views().side->isVisible());
        press(Qt::Key_Q);
        QVERIFY(m_window->workspace().views().side->isVisible());
        press(Qt::Key_K, Qt::ControlModifier);
        auto* compare = m_window->findChild<QDialog*>(QStringLiteral("chooseCompare"));
        QVERIFY(compare != nullptr);
        QTest::keyClick(compare, Qt::Key_Return);
        QVERIFY(QTest::qWaitFor(
            [&] {
                return m_window->workspace().shown().mode() == Shown::Mode::Compare && m_window->workspace().settled();
            },
            10000));
        QTRY_VERIFY(m_window->findChild<QDialog*>(QStringLiteral("chooseCompare")) == nullptr);
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
        press(Qt::Key_K, Qt::ControlModifier);
        QVERIFY(QTest::qWaitFor(
            [&] { return m_window->workspace().shown().mode() == Shown::Mode::Run && m_window->workspace().settled(); },
            10000));
        press(Qt::Key_R, Qt::ControlModifier);
        auto* record = m_window->findChild<QDialog*>(QStringLiteral("recordDialog"));
        if (record == nullptr) record = qobject_cast<QDialog*>(QApplication::activeModalWidget());
        QVERIFY(record != nullptr);
        QTest::keyClick(record, Qt::Key_Escape);
        QVERIFY(!m_window->workspace().feature<Recording>()->process()->running());
    }

    void questionMarkShowsTheKeys()
    {
        open({"1f1b"});
        press(Qt::Key_Question);
        auto* keys = m_window->findChild<QDialog*>(QStringLiteral("keyMap"));
        QVERIFY(keys != nullptr && keys->isVisible());
        QTest::keyClick(keys, Qt::Key_Escape);
        QTRY_VERIFY(m_window->findChild<QDialog*>(QStringLiteral("keyMap")) == nullptr);
    }
};

QTEST_MAIN(TestKeyboard)
#include "tst_keyboard.moc"
