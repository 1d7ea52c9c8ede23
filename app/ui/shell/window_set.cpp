#include "app/ui/shell/window_set.h"

#include <algorithm>

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMenu>
#include <QProcess>
#include <QSettings>

#include "app/ui/shell/main_window.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {
namespace {

Workspace& workspaceOf(QMainWindow& window) { return static_cast<MainWindow&>(window).workspace(); }
SessionController& sessionOf(QMainWindow& window) { return *workspaceOf(window).feature<SessionController>(); }

constexpr auto windowsKey = "session/windows";
constexpr auto runningKey = "session/running";     // set while the program runs: left behind by a crash
constexpr auto restoringKey = "session/restoring"; // set until a restored session was shown

} // namespace

WindowSet& WindowSet::instance()
{
    static QPointer<WindowSet> set;
    if (!set) set = new WindowSet(QCoreApplication::instance());
    return *set;
}

WindowSet::WindowSet(QObject* parent) : QObject(parent)
{
    m_timer.setSingleShot(true);
    m_timer.setInterval(1000);
    connect(&m_timer, &QTimer::timeout, this, [this] { save(); });
}

void WindowSet::add(MainWindow* window)
{
    m_windows.push_back(window);
    connect(window, &QObject::destroyed, this, [this, window] { std::erase(m_windows, window); });
}

MainWindow* WindowSet::open(QMainWindow* beside)
{
    auto* window = new MainWindow;
    window->setAttribute(Qt::WA_DeleteOnClose);
    if (beside != nullptr) {
        window->resize(beside->size());
        window->move(beside->pos() + QPoint(32, 32));
    }
    window->show();
    saveSoon();
    return window;
}

MainWindow* WindowSet::moveRun(QMainWindow& from, MainWindow* to)
{
    Workspace& source = workspaceOf(from);
    const auto shown = source.shown().view();
    if (!shown) return nullptr;
    if (to == nullptr) to = open(&from);
    Workspace& target = to->workspace();
    const QVariantMap view = sessionOf(from).viewState();
    if (source.library()->isSimulated(shown->ref.file)) {
        const RunRef ref = target.library()->addSimulated(*shown->run);
        for (const Note& note : source.feature<NoteKeeping>()->notes(shown->ref))
            target.feature<NoteKeeping>()->addNote(ref, note);
        sessionOf(*to).showThere(ref, view);
    } else {
        sessionOf(*to).showThere(shown->ref, view);
    }
    const auto refs = source.runs()->refs();
    const auto same = std::find_if(refs.begin(), refs.end(), [&](const RunRef& ref) {
        return ref.file == shown->ref.file && !(ref == shown->ref);
    });
    if (same != refs.end())
        source.shown().showRun(*same); // the file holds others
    else
        source.feature<FileOpening>()->closeFile(shown->ref.file);
    to->raise();
    to->activateWindow();
    return to;
}

void WindowSet::addMenu(QMenu& menu, QMainWindow& from, const RunRef& ref)
{
    const auto show = [this, &from, ref](MainWindow* to) {
        if (to == nullptr) to = open(&from);
        if (RunLibrary* library = workspaceOf(from).library(); library->isSimulated(ref.file)) {
            const auto run = library->cachedRun(ref);
            if (run) to->workspace().shown().showRun(to->workspace().library()->addSimulated(*run));
        } else {
            sessionOf(*to).showThere(ref, {});
        }
        to->raise();
        to->activateWindow();
    };
    QMenu* windows = menu.addMenu(u"Show in another window"_s);
    windows->addAction(u"A new window"_s, &from, [show] { show(nullptr); });
    for (MainWindow* other : m_windows)
        if (other != &from) windows->addAction(other->windowTitle(), other, [show, other] { show(other); });
}

void WindowSet::keepSession(bool keep)
{
    m_keeps = keep;
    m_frozen = false;
    m_timer.stop();
}

void WindowSet::saveSoon()
{
    if (m_keeps && !m_frozen && !m_timer.isActive()) m_timer.start();
}

void WindowSet::save(bool last)
{
    m_timer.stop();
    if (!m_keeps || m_frozen) return;
    QVariantList windows;
    QStringList kept;
    for (MainWindow* window : m_windows)
        if (window->isVisible() || m_windows.size() == 1) {
            sessionOf(*window).keepSimulated(last);
            windows << sessionOf(*window).state();
            kept << sessionOf(*window).simulatedFile();
        }
    removeStale(kept);
    QSettings settings;
    settings.setValue(QLatin1String(windowsKey), windows);
    settings.setValue(QLatin1String(runningKey), true);
    settings.sync();
}

// Runs in memory of windows that are no longer part of the session.
void WindowSet::removeStale(const QStringList& kept)
{
    for (const QString& file : m_simulated)
        if (!kept.contains(file)) QFile::remove(file);
    m_simulated = kept;
}

bool WindowSet::restore(MainWindow& first)
{
    QSettings settings;
    const QVariantList windows = settings.value(QLatin1String(windowsKey)).toList();
    const bool crashed = settings.value(QLatin1String(runningKey), false).toBool();
    const bool failed = settings.value(QLatin1String(restoringKey), false).toBool();
    if (!PreferenceStore::instance().value().restoreSession) // it is not wanted: its runs in memory go
        for (const QVariant& window : windows)
            m_simulated << SessionController::simulatedFileOf(window.toMap().value(u"id"_s).toString());
    if (!PreferenceStore::instance().value().restoreSession || windows.isEmpty()) return false;
    if (failed) {
        settings.setValue(QLatin1String(restoringKey), false);
        workspaceOf(first).banner()->showQuestion(
            u"The last session could not be reopened"_s,
            u"the program ended while reopening it; find the files under Open recent"_s, u"Try again"_s,
            // as it was: what is open by then is saved in its place
            [this, &first, windows] { reopen(first, windows); });
        return false;
    }
    reopen(first, windows);
    if (crashed && workspaceOf(first).banner()->text().isEmpty() &&
        !workspaceOf(first).feature<OrderEditing>()->offersRecovery())
        workspaceOf(first).banner()->showNote(
            u"Stagewright did not exit properly. The last session has been reopened."_s);
    return true;
}

void WindowSet::reopen(MainWindow& first, const QVariantList& windows)
{
    QSettings settings;
    settings.setValue(QLatin1String(restoringKey), true);
    settings.sync();
    for (int i = 0; i < windows.size(); ++i) {
        MainWindow* window = i == 0 ? &first : open();
        sessionOf(*window).restore(windows.at(i).toMap());
    }
    QTimer::singleShot(4000, this, [] { QSettings().setValue(QLatin1String(restoringKey), false); });
    connect(&workspaceOf(first).shown(), &Shown::runShown, this,
            [] { QSettings().setValue(QLatin1String(restoringKey), false); });
}

void WindowSet::closing(QMainWindow& window)
{
    if (!m_keeps || m_frozen) return;
    const bool last = std::none_of(m_windows.begin(), m_windows.end(),
                                   [&](MainWindow* one) { return one != &window && one->isVisible(); });
    if (last) {
        save(true);
        m_frozen = true;
        QSettings settings;
        settings.setValue(QLatin1String(runningKey), false);
        settings.setValue(QLatin1String(restoringKey), false);
    } else {
        QTimer::singleShot(0, this, [this] { save(); }); // without it
    }
}

void WindowSet::quit()
{
    m_quitting = true;
    save(true);
    m_frozen = true;
    const std::vector<QPointer<MainWindow>> all(m_windows.begin(), m_windows.end());
    for (const auto& window : all)
        if (window && window->isVisible() && !window->close()) { // it asks, and then continues or stays
            m_frozen = false;
            return;
        }
    m_quitting = false;
    if (!m_keeps) return;
    QSettings settings;
    settings.setValue(QLatin1String(runningKey), false);
    settings.setValue(QLatin1String(restoringKey), false);
}

void WindowSet::keep()
{
    save(true);
    m_frozen = true;
    if (!m_keeps) return;
    QSettings settings;
    settings.setValue(QLatin1String(runningKey), false);
    settings.setValue(QLatin1String(restoringKey), false);
    settings.sync();
}

void WindowSet::stay()
{
    m_quitting = false;
    m_frozen = false;
}

void WindowSet::restart()
{
    quit();
    if (!m_frozen) return;
    QProcess program;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.remove(u"QT_SCALE_FACTOR"_s); // set by this start
    program.setProcessEnvironment(environment);
    program.setProgram(QCoreApplication::applicationFilePath());
    program.startDetached();
}

} // namespace stagewright
