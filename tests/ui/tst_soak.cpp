// A soak test: random actions, keys, clicks, drags, wheel, edits, undo and redo, themes, sizes, opening, closing,
// comparing, from a seed, in every open window and dialog. No crash, no Qt warning, no leaked widget or object; undoing
// everything restores the first order and redoing it the last; the autosave matches the edit; and the window settles.
// STAGEWRIGHT_SOAK_ACTIONS, STAGEWRIGHT_SOAK_SEED, STAGEWRIGHT_SOAK_LOG (a file that names every action as it starts).
#include <cstdio>
#include <map>
#include <random>

#include <QDialog>
#include <QFile>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QUndoStack>
#include <QWheelEvent>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_autosave.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/explore/explorer_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/layout_controller.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

namespace {

// Qt's warnings, except those about the offscreen platform's own limits.
QStringList warnings;
QtMessageHandler tellOn = nullptr;
void hear(QtMsgType type, const QMessageLogContext& context, const QString& message)
{
    if (message.startsWith(QLatin1String("This plugin does not support"))) return;
    if (type != QtDebugMsg && type != QtInfoMsg) warnings << message;
    tellOn(type, context, message);
}

// Modal dialogs are closed from inside their own event loop.
class Closer : public QTimer {
public:
    Closer()
    {
        setInterval(15);
        connect(this, &QTimer::timeout, this, [] {
            if (QWidget* popup = QApplication::activePopupWidget()) popup->close();
            if (auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget())) dialog->reject();
        });
        start();
    }
};

using Counts = std::map<QByteArray, int>;
Counts objects()
{
    Counts counts;
    for (QWidget* top : QApplication::topLevelWidgets()) {
        if (top->parent() != nullptr) continue; // counted with it
        ++counts[top->metaObject()->className()];
        for (const QObject* object : top->findChildren<QObject*>()) {
            // Qt keeps one more each time a dock is shown
            if (object->objectName() == QLatin1String("qt_qmainwindow_extended_splitter")) continue;
            QByteArray name = object->metaObject()->className();
            for (const QObject* above = object->parent(); above != nullptr; above = above->parent()) {
                name += QByteArray(" of ") + above->metaObject()->className() + ' ' + above->objectName().toUtf8();
                if (name.size() > 160) break;
            }
            ++counts[name];
        }
    }
    return counts;
}

class Monkey {
public:
    Monkey(MainWindow& window, QStringList files, unsigned seed, std::FILE* log)
        : m_window(window), m_files(std::move(files)), m_random(seed), m_log(log)
    {
        QObject::connect(&window.workspace().shown(), &Shown::modeChanged, &m_listens, [this] { m_begun.reset(); });
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
        if (kind < 96) return kept();
        if (kind < 98) return type();
        QTest::qWait(pick(40));
        return QStringLiteral("wait");
    }

    // Undoing everything restores the first order, redoing everything the last. Empty: correct, or nothing is edited.
    QString undoFault()
    {
        if (m_window.workspace().shown().mode() != Shown::Mode::Edit || !m_begun) return {};
        QUndoStack* stack = m_window.workspace().feature<OrderEditing>()->editor().undoStack();
        const Schedule now = m_window.workspace().feature<OrderEditing>()->editor().schedule();
        const int at = stack->index();
        while (stack->canUndo()) stack->undo();
        if (m_window.workspace().feature<OrderEditing>()->editor().schedule() != *m_begun)
            return QStringLiteral("undoing everything gives another order than the one that was begun with");
        if (pick(2) == 0) return {}; // and stay there
        while (stack->index() < at) stack->redo();
        if (m_window.workspace().feature<OrderEditing>()->editor().schedule() != now)
            return QStringLiteral("undoing everything and redoing it gives another order");
        return {};
    }
    // The autosave matches the current order; there is none if it is unchanged.
    QString autosaveFault()
    {
        if (m_window.workspace().shown().mode() != Shown::Mode::Edit) return {};
        EditAutosave* autosave = m_window.workspace().feature<EditController>()->recovery().autosave();
        const auto& preferences = PreferenceStore::instance().value();
        // switched off, or due much later
        if (!preferences.autosave || preferences.autosaveSeconds > 5 ||
            m_window.workspace().feature<LessonController>()->session() != nullptr)
            return {};
        const auto same = [&]() -> QString {
            if (m_window.workspace().shown().mode() != Shown::Mode::Edit) return {};
            if (autosave->file().isEmpty())
                return m_window.workspace().feature<OrderEditing>()->editor().changed()
                           ? QStringLiteral("a changed order is not kept")
                           : QString();
            QFile file(autosave->file());
            if (!m_window.workspace().feature<OrderEditing>()->editor().changed())
                return !file.exists() ? QString() : QStringLiteral("an order that was not changed is kept");
            if (!file.open(QIODevice::ReadOnly)) return QStringLiteral("a changed order is not kept");
            const QByteArray bytes = file.readAll();
            const auto record =
                readEditRecord(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
            if (!record)
                return QStringLiteral("what is kept can't be read: ") + QString::fromStdString(record.error().message);
            return record->edited == m_window.workspace().feature<OrderEditing>()->editor().schedule() &&
                           record->original == m_window.workspace().feature<OrderEditing>()->editor().original()
                       ? QString()
                       : QStringLiteral("what is kept is not the order as it is");
        };
        (void)QTest::qWaitFor([&] { return same().isEmpty(); }, 20000 + 1000 * preferences.autosaveSeconds);
        return same();
    }
    QString fault() const { return m_fault; }

private:
    int pick(int count) { return static_cast<int>(m_random() % static_cast<unsigned>(std::max(1, count))); }
    Qt::KeyboardModifiers modifiers()
    {
        const Qt::KeyboardModifiers some[] = {Qt::NoModifier,    Qt::NoModifier,
                                              Qt::NoModifier,    Qt::ControlModifier,
                                              Qt::ShiftModifier, Qt::ControlModifier | Qt::ShiftModifier,
                                              Qt::AltModifier};
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
        if (m_window.workspace().shown().mode() == Shown::Mode::Edit && !m_begun &&
            m_window.workspace().feature<OrderEditing>()->editor().active() &&
            m_window.workspace().feature<OrderEditing>()->editor().undoStack()->index() == 0)
            m_begun = m_window.workspace().feature<OrderEditing>()->editor().schedule();
    }

    QString action()
    {
        const auto& all = m_window.workspace().actions().all();
        const auto& [entry, action] = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
        if (entry.id == "quit") return said(QStringLiteral("nothing"));
        const QString name = said(QStringLiteral("action %1").arg(QString::fromLatin1(entry.id)));
        if (action->isEnabled()) action->trigger();
        return name;
    }

    QString key()
    {
        static const int keys[] = {Qt::Key_W,
                                   Qt::Key_A,
                                   Qt::Key_S,
                                   Qt::Key_D,
                                   Qt::Key_F,
                                   Qt::Key_G,
                                   Qt::Key_E,
                                   Qt::Key_M,
                                   Qt::Key_N,
                                   Qt::Key_P,
                                   Qt::Key_Q,
                                   Qt::Key_Z,
                                   Qt::Key_C,
                                   Qt::Key_V,
                                   Qt::Key_X,
                                   Qt::Key_B,
                                   Qt::Key_K,
                                   Qt::Key_Plus,
                                   Qt::Key_Minus,
                                   Qt::Key_Left,
                                   Qt::Key_Right,
                                   Qt::Key_Up,
                                   Qt::Key_Down,
                                   Qt::Key_Home,
                                   Qt::Key_End,
                                   Qt::Key_PageUp,
                                   Qt::Key_PageDown,
                                   Qt::Key_Comma,
                                   Qt::Key_Period,
                                   Qt::Key_BracketLeft,
                                   Qt::Key_BracketRight,
                                   Qt::Key_Escape,
                                   Qt::Key_Tab,
                                   Qt::Key_Backtab,
                                   Qt::Key_Return,
                                   Qt::Key_Space,
                                   Qt::Key_Backspace,
                                   Qt::Key_Delete,
                                   Qt::Key_Slash,
                                   Qt::Key_Question,
                                   Qt::Key_F2,
                                   Qt::Key_F3,
                                   Qt::Key_1,
                                   Qt::Key_5};
        const int chosen = keys[pick(static_cast<int>(std::size(keys)))];
        const Qt::KeyboardModifiers with = modifiers();
        if (with == Qt::ControlModifier && chosen == Qt::Key_Q) return said(QStringLiteral("nothing"));
        QWidget* to = QApplication::focusWidget();
        if (to == nullptr || pick(3) == 0) to = m_window.workspace().views().timeline;
        const QString name = said(QStringLiteral("key %1 to %2")
                                      .arg(QKeySequence(QKeyCombination(with, static_cast<Qt::Key>(chosen))).toString(),
                                           QLatin1String(to->metaObject()->className())));
        QTest::keyClick(to, static_cast<Qt::Key>(chosen), with);
        return name;
    }

    // Half of the time the timeline, else any visible widget that is not blocked by a modal dialog.
    QWidget* someWidget()
    {
        if (pick(2) == 0) return m_window.workspace().views().timeline;
        QList<QWidget*> visible;
        for (QWidget* top : QApplication::topLevelWidgets()) {
            if (!top->isVisible() || qobject_cast<QMenu*>(top) != nullptr || top->windowType() == Qt::ToolTip) continue;
            for (QWidget* widget : top->findChildren<QWidget*>())
                if (widget->isVisible() && widget->window() == top && widget->width() > 2 && widget->height() > 2 &&
                    qobject_cast<QMenuBar*>(widget) == nullptr)
                    visible << widget;
        }
        return visible.isEmpty() ? m_window.workspace().views().timeline
                                 : visible[pick(static_cast<int>(visible.size()))];
    }
    QPoint inside(const QWidget* widget) { return {pick(widget->width()), pick(widget->height())}; }

    QString click()
    {
        QWidget* widget = someWidget();
        const QPoint at = inside(widget);
        const Qt::MouseButton buttons[] = {Qt::LeftButton, Qt::LeftButton, Qt::LeftButton, Qt::RightButton,
                                           Qt::MiddleButton};
        const Qt::MouseButton button = buttons[pick(5)];
        const Qt::KeyboardModifiers with = modifiers();
        const QString name = said(QStringLiteral("click %1 on %2 %3 at %4,%5")
                                      .arg(static_cast<int>(button))
                                      .arg(QLatin1String(widget->metaObject()->className()), widget->objectName())
                                      .arg(at.x())
                                      .arg(at.y()));
        QPointer<QWidget> alive(widget);
        if (pick(5) == 0)
            QTest::mouseDClick(widget, button, with, at);
        else
            QTest::mouseClick(widget, button, with, at);
        if (button == Qt::RightButton && alive)
            QApplication::sendEvent(
                alive, std::make_unique<QContextMenuEvent>(QContextMenuEvent::Mouse, at, alive->mapToGlobal(at)).get());
        return name;
    }

    QString drag()
    {
        QWidget* widget = pick(4) == 0 ? someWidget() : m_window.workspace().views().timeline;
        const QPoint from = inside(widget), to = inside(widget);
        const QString name = said(QStringLiteral("drag on %1 from %2,%3 to %4,%5")
                                      .arg(QLatin1String(widget->metaObject()->className()))
                                      .arg(from.x())
                                      .arg(from.y())
                                      .arg(to.x())
                                      .arg(to.y()));
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
        QWheelEvent event(at, widget->mapToGlobal(at), QPoint(), QPoint(0, pick(2) == 0 ? 120 : -120), Qt::NoButton,
                          modifiers(), Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(widget, &event);
        return name;
    }

    QString show()
    {
        const auto refs = m_window.workspace().runs()->refs();
        const int what = pick(4);
        if (refs.empty() || what == 0) {
            const QString name = said(QStringLiteral("open"));
            m_window.workspace().feature<FileOpening>()->openFiles({m_files[pick(static_cast<int>(m_files.size()))]});
            return name;
        }
        const auto one = [&] { return refs[static_cast<std::size_t>(pick(static_cast<int>(refs.size())))]; };
        if (what == 1 && refs.size() > 1) {
            const QString name = said(QStringLiteral("compare"));
            const RunRef a = one(), b = one();
            if (!(a == b)) m_window.workspace().feature<RunComparing>()->show({a, b});
            return name;
        }
        if (what == 2) {
            const QString name = said(QStringLiteral("edit"));
            m_window.workspace().feature<OrderEditing>()->enterEdit();
            return name;
        }
        const QString name = said(QStringLiteral("show"));
        m_window.workspace().shown().showRun(one());
        return name;
    }

    QString resize()
    {
        const QSize sizes[] = {{1280, 720}, {1600, 1000}, {1000, 640}, {2200, 1300}};
        const QString name = said(QStringLiteral("resize"));
        m_window.resize(sizes[pick(4)]);
        Appearance::choose(pick(2) == 0 ? ThemeChoice::Light : ThemeChoice::Dark);
        return name;
    }

    QString undoAll()
    {
        const QString name = said(QStringLiteral("undo all"));
        remember();
        if (m_fault.isEmpty()) m_fault = undoFault();
        return name;
    }

    QString kept()
    {
        const QString name = said(QStringLiteral("autosave"));
        if (m_fault.isEmpty()) m_fault = autosaveFault();
        return name;
    }

    QString type()
    {
        const QString texts[] = {QStringLiteral("rank:1 mb:2 B"), QStringLiteral("F"), QStringLiteral("zzz"),
                                 QStringLiteral("2F0"), QString()};
        const QString text = texts[pick(5)];
        const QString name = said(QStringLiteral("find %1").arg(text));
        m_window.workspace().feature<OpFinding>()->find(text, pick(2) == 0);
        return name;
    }

    MainWindow& m_window;
    QStringList m_files;
    std::mt19937 m_random;
    std::FILE* m_log;
    QObject m_listens;
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

    // Why the window is not settled.
    static QString busy(MainWindow& window)
    {
        QStringList parts;
        if (window.workspace().feature<SearchController>()->searching()) parts << QStringLiteral("search");
        if (!window.workspace().jobs().idle()) parts << QStringLiteral("a job");
        if (!window.workspace().feature<EditController>()->settled()) parts << QStringLiteral("edit");
        if (!window.workspace().feature<NotesController>()->settled()) parts << QStringLiteral("notes");
        if (window.workspace().library()->busy()) parts << QStringLiteral("library");
        if (window.workspace().feature<Recording>()->process()->running()) parts << QStringLiteral("recording");
        return QStringLiteral("the window does not settle: ") +
               (parts.isEmpty() ? QStringLiteral("a run, a tool or a file") : parts.join(QLatin1String(", ")));
    }

    // Everything closed, light theme, initial size.
    static QString reset(MainWindow& window) // what went wrong; empty: nothing
    {
        window.workspace().feature<LessonController>()->leave();
        window.workspace().feature<ExplorerController>()->setShown(false);
        window.workspace().shown().setTool(Shown::Tool::None);
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (widget != &window && widget->isVisible()) widget->close();
        for (int round = 0; round < 3; ++round) { // an edited order stays in the list when its run is closed
            while (!window.workspace().runs()->files().isEmpty())
                window.workspace().feature<FileOpening>()->closeFile(window.workspace().runs()->files().front());
            if (!WindowFixture::settle(window, 60000)) return busy(window);
        }
        window.workspace().feature<LayoutController>()->reset();
        Appearance::choose(ThemeChoice::Light);
        window.resize(1400, 900);
        window.show();
        const bool settled = WindowFixture::settle(window, 60000);
        for (int i = 0; i < 3; ++i) {
            QTest::qWait(120);
            QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        }
        if (!settled) return busy(window);
        return window.workspace().shown().mode() == Shown::Mode::Empty
                   ? QString()
                   : QStringLiteral("something is shown where every file is closed: mode %1, %2")
                         .arg(static_cast<int>(window.workspace().shown().mode()))
                         .arg(window.windowTitle());
    }

    // Every action once, so that lazily created objects exist.
    static bool tour(MainWindow& window, const QString& file)
    {
        for (const auto& [entry, action] : window.workspace().actions().all()) {
            if (entry.id == "quit" || entry.id == "newWindow" || entry.id == "moveToWindow") continue;
            if (window.workspace().runs()->files().isEmpty()) {
                window.workspace().feature<FileOpening>()->openFiles({file});
                if (!WindowFixture::settle(window, 60000)) return false;
            }
            if (window.workspace().shown().mode() == Shown::Mode::Run) window.workspace().viewState()->select({0, 3});
            if (action->isEnabled()) action->trigger();
            QCoreApplication::processEvents();
        }
        const auto refs = window.workspace().runs()->refs();
        if (refs.size() > 1) window.workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        return WindowFixture::settle(window, 60000);
    }
private slots:
    void initTestCase()
    {
        for (const char* place : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"})
            qputenv(place, m_home.path().toLocal8Bit());
        qputenv("STAGEWRIGHT_PROGRAM", "/nonexistent"); // nothing is trained
        QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
        tellOn = qInstallMessageHandler(hear);
    }
    void cleanupTestCase() { qInstallMessageHandler(tellOn); }

    // To find the source of a leaked object: repeats every action in turn; enabled by STAGEWRIGHT_SOAK_EACH.
    void eachAction()
    {
        const int times = setting("STAGEWRIGHT_SOAK_EACH", 0);
        if (times == 0) QSKIP("STAGEWRIGHT_SOAK_EACH says how often");
        WindowFixture fixture;
        const QString file = fixture.file("a.stagewright", {"1f1b", "zb-h1"});
        Closer closer;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QVERIFY(tour(window, file));
        QCOMPARE(reset(window), QString());
        Counts before = objects();
        for (const auto& [entry, action] : window.workspace().actions().all()) {
            if (entry.id == "quit" || entry.id == "newWindow" || entry.id == "moveToWindow") continue;
            for (int i = 0; i < times; ++i) {
                if (window.workspace().runs()->files().isEmpty()) {
                    window.workspace().feature<FileOpening>()->openFiles({file});
                    QVERIFY(WindowFixture::settle(window, 60000));
                }
                if (window.workspace().shown().mode() == Shown::Mode::Run)
                    window.workspace().viewState()->select({0, 3});
                if (!action->isEnabled()) break;
                action->trigger();
                QTest::qWait(20);
            }
            QCOMPARE(reset(window), QString());
            const Counts after = objects();
            QStringList more;
            for (const auto& [name, number] : after) {
                const auto at = before.find(name);
                const int was = at == before.end() ? 0 : at->second;
                if (number >= was + times / 2)
                    more << QStringLiteral("%1 %2, before %3").arg(QLatin1String(name)).arg(number).arg(was);
            }
            if (!more.isEmpty()) qInfo("%s: %s", entry.id.data(), qPrintable(more.join(QLatin1String("; "))));
            before = after;
        }
    }

    void randomActions()
    {
        const int count = setting("STAGEWRIGHT_SOAK_ACTIONS", 500);
        const auto seed = static_cast<unsigned>(setting("STAGEWRIGHT_SOAK_SEED", 1));
        std::FILE* log = nullptr;
        if (qEnvironmentVariableIsSet("STAGEWRIGHT_SOAK_LOG"))
            log = std::fopen(qPrintable(qEnvironmentVariable("STAGEWRIGHT_SOAK_LOG")), "w");
        WindowFixture fixture;
        const QStringList files{fixture.file("a.stagewright", {"1f1b", "zb-h1"}),
                                fixture.file("b.stagewright", {"interleaved-1f1b", "gpipe"}, 3, 6),
                                fixture.file("small.stagewright", {"gpipe"}, 1, 1)};
        const QWidgetList before = QApplication::topLevelWidgets();
        QString last;
        warnings.clear();
        const auto report = [&](int action, const QString& fault) {
            return QStringLiteral("seed %1, action %2 (%3): %4").arg(seed).arg(action).arg(last, fault);
        };
        {
            Closer closer;
            MainWindow window;
            QVERIFY(WindowFixture::show(window));
            QVERIFY(tour(window, files.front()));
            QCOMPARE(reset(window), QString());
            const Counts begun = objects();
            window.workspace().feature<FileOpening>()->openFiles({files.front()});
            QVERIFY(WindowFixture::settle(window));
            {
                Monkey monkey(window, files, seed, log);
                for (int i = 0; i < count; ++i) {
                    last = monkey.step();
                    QVERIFY2(monkey.fault().isEmpty(), qPrintable(report(i, monkey.fault())));
                    QVERIFY2(warnings.isEmpty(), qPrintable(report(i, warnings.join(QLatin1String("; ")))));
                    if (i % 8 == 0) QCoreApplication::processEvents();
                    if (i % 100 == 99 && log != nullptr)
                        std::fprintf(log, "after %d actions: %lld widgets, %zu windows\n", i + 1,
                                     static_cast<long long>(QApplication::allWidgets().size()),
                                     WindowSet::instance().windows().size());
                    for (MainWindow* other : std::vector<MainWindow*>(WindowSet::instance().windows().begin(),
                                                                      WindowSet::instance().windows().end()))
                        if (other != &window && WindowSet::instance().windows().size() > 3) {
                            other->close(); // the oldest; it deletes itself
                            QCoreApplication::sendPostedEvents(other, QEvent::DeferredDelete);
                        }
                    if (!window.isVisible()) window.show(); // Ctrl+W and the like may have closed it
                }
                QVERIFY2(QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000),
                         qPrintable(report(count, busy(window))));
                QString fault = monkey.autosaveFault();
                if (fault.isEmpty()) fault = monkey.undoFault();
                QVERIFY2(fault.isEmpty(), qPrintable(report(count, fault)));
            }
            const QString stays = reset(window);
            QVERIFY2(stays.isEmpty(), qPrintable(report(count, stays)));
            QStringList more; // than a few created on first use
            for (const auto& [name, number] : objects()) {
                const auto at = begun.find(name);
                const int was = at == begun.end() ? 0 : at->second;
                if (number > was + 24 + was / 2)
                    more << QStringLiteral("%1 %2, before %3").arg(QLatin1String(name)).arg(number).arg(was);
            }
            QVERIFY2(more.isEmpty(), qPrintable(report(count, more.join(QLatin1String("; ")))));
        }
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QCoreApplication::processEvents();
        QStringList left;
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (!before.contains(widget))
                left << QLatin1String(widget->metaObject()->className()) + QLatin1Char(' ') + widget->objectName();
        if (log != nullptr) std::fclose(log);
        QVERIFY2(left.isEmpty(),
                 qPrintable(QStringLiteral("seed %1 leaves %2").arg(seed).arg(left.join(QLatin1String(", ")))));
        QVERIFY2(warnings.isEmpty(), qPrintable(warnings.join(QLatin1String("; "))));
    }
};

QTEST_MAIN(TestSoak)
#include "tst_soak.moc"
