// A soak: random actions, keys, clicks, drags, wheel, edits, undo and redo, themes, sizes, opening, closing, comparing, from a seed.
// No crash, no widget left behind, undoing everything gives the order that was begun with, and the window settles.
// STAGEWRIGHT_SOAK_ACTIONS, STAGEWRIGHT_SOAK_SEED, STAGEWRIGHT_SOAK_LOG (a file that names every action as it begins).
#include <cstdio>
#include <random>

#include <QDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QUndoStack>
#include <QWheelEvent>

#include "window_fixture.h"

using namespace stagewright;

namespace {

class Monkey {
public:
    Monkey(MainWindow& window, WindowFixture& fixture, QStringList files, unsigned seed, std::FILE* log)
        : m_window(window), m_fixture(fixture), m_files(std::move(files)), m_random(seed), m_log(log)
    {
        QObject::connect(&window, &MainWindow::modeChanged, &m_closer, [this] { m_begun.reset(); });
        // Dialogs that wait for an answer get none: they are closed from inside their own event loop.
        m_closer.setInterval(15);
        QObject::connect(&m_closer, &QTimer::timeout, &m_closer, [] {
            if (QWidget* popup = QApplication::activePopupWidget()) popup->close();
            if (auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget())) dialog->reject();
        });
        m_closer.start();
    }

    QString step()
    {
        remember();
        const int kind = pick(100);
        if (kind < 30) return action();
        if (kind < 55) return key();
        if (kind < 68) return click();
        if (kind < 78) return drag();
        if (kind < 86) return wheel();
        if (kind < 90) return show();
        if (kind < 93) return resize();
        if (kind < 95) return undoAll();
        if (kind < 97) return type();
        QTest::qWait(pick(40));
        return QStringLiteral("wait");
    }

    // Undoing everything gives the order that editing began with. Empty: it does, or nothing is edited.
    QString undoFault()
    {
        if (m_window.mode() != MainWindow::Mode::Edit || !m_begun) return {};
        QUndoStack* stack = m_window.editor()->undoStack();
        while (stack->canUndo()) stack->undo();
        if (m_window.editor()->schedule() == *m_begun) return {};
        return QStringLiteral("undoing everything gives another order than the one that was begun with");
    }
    void stop() { m_closer.stop(); }
    QString fault() const { return m_fault; }

private:
    int pick(int count) { return static_cast<int>(m_random() % static_cast<unsigned>(std::max(1, count))); }
    Qt::KeyboardModifiers modifiers()
    {
        const Qt::KeyboardModifiers some[] = {Qt::NoModifier, Qt::NoModifier, Qt::NoModifier, Qt::ControlModifier, Qt::ShiftModifier, Qt::ControlModifier | Qt::ShiftModifier, Qt::AltModifier};
        return some[pick(7)];
    }
    QString said(const QString& what)
    {
        if (m_log != nullptr) {
            std::fprintf(m_log, "%s\n", qPrintable(what));
            std::fflush(m_log);
        }
        return what;
    }

    void remember()
    {
        if (m_window.mode() == MainWindow::Mode::Edit && !m_begun && m_window.editor()->active() && m_window.editor()->undoStack()->index() == 0)
            m_begun = m_window.editor()->schedule();
    }

    QString action()
    {
        const auto& table = actionTable();
        const ActionEntry& entry = table[static_cast<std::size_t>(pick(static_cast<int>(table.size())))];
        if (entry.id == ActionId::Quit) return said(QStringLiteral("nothing"));
        const QString name = said(QStringLiteral("action %1").arg(QLatin1String(entry.name)));
        if (m_window.actions()[entry.id]->isEnabled()) m_window.actions()[entry.id]->trigger();
        return name;
    }

    QString key()
    {
        static const int keys[] = {Qt::Key_W, Qt::Key_A, Qt::Key_S, Qt::Key_D, Qt::Key_F, Qt::Key_G, Qt::Key_E, Qt::Key_M, Qt::Key_N, Qt::Key_P, Qt::Key_Q, Qt::Key_Z, Qt::Key_C, Qt::Key_V, Qt::Key_X,
                                   Qt::Key_B, Qt::Key_K, Qt::Key_Plus, Qt::Key_Minus, Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Home, Qt::Key_End, Qt::Key_PageUp,
                                   Qt::Key_PageDown, Qt::Key_Comma, Qt::Key_Period, Qt::Key_BracketLeft, Qt::Key_BracketRight, Qt::Key_Escape, Qt::Key_Tab, Qt::Key_Backtab, Qt::Key_Return,
                                   Qt::Key_Space, Qt::Key_Backspace, Qt::Key_Delete, Qt::Key_Slash, Qt::Key_Question, Qt::Key_F2, Qt::Key_F3, Qt::Key_1, Qt::Key_5};
        const int chosen = keys[pick(static_cast<int>(std::size(keys)))];
        const Qt::KeyboardModifiers with = modifiers();
        if (with == Qt::ControlModifier && chosen == Qt::Key_Q) return said(QStringLiteral("nothing"));
        QWidget* to = QApplication::focusWidget();
        if (to == nullptr || pick(3) == 0) to = m_window.timelineView();
        const QString name = said(QStringLiteral("key %1 to %2").arg(QKeySequence(QKeyCombination(with, static_cast<Qt::Key>(chosen))).toString(), QLatin1String(to->metaObject()->className())));
        QTest::keyClick(to, static_cast<Qt::Key>(chosen), with);
        return name;
    }

    QWidget* someWidget()
    {
        if (pick(2) == 0) return m_window.timelineView();
        QList<QWidget*> visible;
        for (QWidget* widget : m_window.findChildren<QWidget*>())
            if (widget->isVisible() && widget->window() == &m_window && widget->width() > 2 && widget->height() > 2 && qobject_cast<QMenuBar*>(widget) == nullptr) visible << widget;
        return visible.isEmpty() ? m_window.timelineView() : visible[pick(static_cast<int>(visible.size()))];
    }
    QPoint inside(const QWidget* widget) { return {pick(widget->width()), pick(widget->height())}; }

    QString click()
    {
        QWidget* widget = someWidget();
        const QPoint at = inside(widget);
        const Qt::MouseButton buttons[] = {Qt::LeftButton, Qt::LeftButton, Qt::LeftButton, Qt::RightButton, Qt::MiddleButton};
        const Qt::MouseButton button = buttons[pick(5)];
        const Qt::KeyboardModifiers with = modifiers();
        const QString name = said(QStringLiteral("click %1 on %2 %3 at %4,%5").arg(static_cast<int>(button)).arg(QLatin1String(widget->metaObject()->className()), widget->objectName()).arg(at.x()).arg(at.y()));
        QPointer<QWidget> alive(widget);
        if (pick(5) == 0)
            QTest::mouseDClick(widget, button, with, at);
        else
            QTest::mouseClick(widget, button, with, at);
        if (button == Qt::RightButton && alive) QApplication::sendEvent(alive, std::make_unique<QContextMenuEvent>(QContextMenuEvent::Mouse, at, alive->mapToGlobal(at)).get());
        return name;
    }

    QString drag()
    {
        QWidget* widget = pick(4) == 0 ? someWidget() : m_window.timelineView();
        const QPoint from = inside(widget), to = inside(widget);
        const QString name = said(QStringLiteral("drag on %1 from %2,%3 to %4,%5").arg(QLatin1String(widget->metaObject()->className())).arg(from.x()).arg(from.y()).arg(to.x()).arg(to.y()));
        QPointer<QWidget> alive(widget);
        const Qt::MouseButton button = pick(5) == 0 ? Qt::MiddleButton : Qt::LeftButton;
        const Qt::KeyboardModifiers with = modifiers();
        QTest::mousePress(widget, button, with, from);
        for (int i = 1; i <= 4 && alive; ++i) {
            const QPoint at = from + (to - from) * i / 4;
            QMouseEvent move(QEvent::MouseMove, at, alive->mapToGlobal(at), Qt::NoButton, button, with);
            QCoreApplication::sendEvent(alive, &move);
        }
        if (alive && pick(8) == 0) QTest::keyClick(alive.data(), Qt::Key_Escape);
        if (alive) QTest::mouseRelease(alive.data(), button, with, to);
        return name;
    }

    QString wheel()
    {
        QWidget* widget = someWidget();
        const QPoint at = inside(widget);
        const QString name = said(QStringLiteral("wheel on %1").arg(QLatin1String(widget->metaObject()->className())));
        QWheelEvent event(at, widget->mapToGlobal(at), QPoint(), QPoint(0, pick(2) == 0 ? 120 : -120), Qt::NoButton, modifiers(), Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(widget, &event);
        return name;
    }

    QString show()
    {
        const auto refs = m_window.runs()->refs();
        const int what = pick(4);
        if (refs.empty() || what == 0) {
            const QString name = said(QStringLiteral("open"));
            m_window.openFiles({m_files[pick(static_cast<int>(m_files.size()))]});
            return name;
        }
        const auto one = [&] { return refs[static_cast<std::size_t>(pick(static_cast<int>(refs.size())))]; };
        if (what == 1 && refs.size() > 1) {
            const QString name = said(QStringLiteral("compare"));
            const RunRef a = one(), b = one();
            if (!(a == b)) m_window.showCompare(a, b);
            return name;
        }
        if (what == 2) {
            const QString name = said(QStringLiteral("edit"));
            m_window.enterEdit();
            return name;
        }
        const QString name = said(QStringLiteral("show"));
        m_window.showRun(one());
        return name;
    }

    QString resize()
    {
        const QSize sizes[] = {{1280, 720}, {1600, 1000}, {1000, 640}, {2200, 1300}};
        const QString name = said(QStringLiteral("resize"));
        m_window.resize(sizes[pick(4)]);
        m_window.setThemeChoice(pick(2) == 0 ? ThemeChoice::Light : ThemeChoice::Dark);
        return name;
    }

    QString undoAll()
    {
        const QString name = said(QStringLiteral("undo all"));
        if (m_fault.isEmpty()) m_fault = undoFault();
        return name;
    }

    QString type()
    {
        const QString texts[] = {QStringLiteral("rank:1 mb:2 B"), QStringLiteral("F"), QStringLiteral("zzz"), QStringLiteral("2F0"), QString()};
        const QString text = texts[pick(5)];
        const QString name = said(QStringLiteral("find %1").arg(text));
        m_window.find(text, pick(2) == 0);
        return name;
    }

    MainWindow& m_window;
    WindowFixture& m_fixture;
    QStringList m_files;
    std::mt19937 m_random;
    std::FILE* m_log;
    QTimer m_closer;
    std::optional<Schedule> m_begun;
    QString m_fault;
};

int setting(const char* name, int fallback)
{
    bool ok = false;
    const int value = qEnvironmentVariableIntValue(name, &ok);
    return ok ? value : fallback;
}

} // namespace

class TestSoak : public QObject {
    Q_OBJECT
    QTemporaryDir m_home;
private slots:
    void initTestCase()
    {
        for (const char* place : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) qputenv(place, m_home.path().toLocal8Bit());
        qputenv("STAGEWRIGHT_PROGRAM", "/nonexistent"); // nothing is trained
        QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    }

    void randomActions()
    {
        const int count = setting("STAGEWRIGHT_SOAK_ACTIONS", 500);
        const auto seed = static_cast<unsigned>(setting("STAGEWRIGHT_SOAK_SEED", 1));
        std::FILE* log = nullptr;
        if (qEnvironmentVariableIsSet("STAGEWRIGHT_SOAK_LOG")) log = std::fopen(qPrintable(qEnvironmentVariable("STAGEWRIGHT_SOAK_LOG")), "w");
        WindowFixture fixture;
        const QStringList files{fixture.file("a.stagewright", {"1f1b", "zb-h1"}), fixture.file("b.stagewright", {"interleaved-1f1b", "gpipe"}, 3, 6), fixture.file("small.stagewright", {"gpipe"}, 1, 1)};
        const QWidgetList before = QApplication::topLevelWidgets();
        QString last;
        {
            MainWindow window;
            QVERIFY(WindowFixture::show(window));
            window.openFiles({files.front()});
            QVERIFY(WindowFixture::settle(window));
            Monkey monkey(window, fixture, files, seed, log);
            for (int i = 0; i < count; ++i) {
                last = monkey.step();
                QVERIFY2(monkey.fault().isEmpty(), qPrintable(QStringLiteral("seed %1, action %2 (%3): %4").arg(seed).arg(i).arg(last, monkey.fault())));
                if (i % 8 == 0) QCoreApplication::processEvents();
                if (!window.isVisible()) window.show(); // Ctrl+W and the like may have closed it
            }
            const QString fault = monkey.undoFault();
            QVERIFY2(fault.isEmpty(), qPrintable(QStringLiteral("seed %1, at the end: %2").arg(seed).arg(fault)));
            QVERIFY2(QTest::qWaitFor([&] { return window.settled(); }, 60000), qPrintable(QStringLiteral("seed %1: the window does not settle after %2").arg(seed).arg(last)));
            monkey.stop();
            for (QWidget* widget : QApplication::topLevelWidgets())
                if (widget != &window && widget->isVisible()) widget->close();
        }
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QCoreApplication::processEvents();
        QStringList left;
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (!before.contains(widget)) left << QLatin1String(widget->metaObject()->className()) + QLatin1Char(' ') + widget->objectName();
        if (log != nullptr) std::fclose(log);
        QVERIFY2(left.isEmpty(), qPrintable(QStringLiteral("seed %1 leaves %2").arg(seed).arg(left.join(QLatin1String(", ")))));
    }
};

QTEST_MAIN(TestSoak)
#include "tst_soak.moc"
