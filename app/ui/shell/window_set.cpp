#include "app/ui/shell/window_set.h"

#include <algorithm>

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMenu>
#include <QProcess>
#include <QSettings>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/session_controller.h"

namespace stagewright {
namespace {

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

MainWindow* WindowSet::open(MainWindow* beside)
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

MainWindow* WindowSet::moveRun(MainWindow& from, MainWindow* to)
{
    const auto shown = from.shownView();
    if (!shown) return nullptr;
    if (to == nullptr) to = open(&from);
    const QVariantMap view = from.session()->viewState();
    if (from.library()->isSimulated(shown->ref.file)) {
        const RunRef ref = to->library()->addSimulated(*shown->run);
        for (const Note& note : from.notes()->notes(shown->ref)) to->notes()->addNote(ref, note);
        to->session()->showThere(ref, view);
    } else {
        to->session()->showThere(shown->ref, view);
    }
    const auto refs = from.runs()->refs();
    const auto same = std::find_if(refs.begin(), refs.end(), [&](const RunRef& ref) { return ref.file == shown->ref.file && !(ref == shown->ref); });
    if (same != refs.end())
        from.showRun(*same); // the file holds others
    else
        from.closeFile(shown->ref.file);
    to->raise();
    to->activateWindow();
    return to;
}

void WindowSet::addMenu(QMenu& menu, MainWindow& from, const RunRef& ref)
{
    const auto show = [this, &from, ref](MainWindow* to) {
        if (to == nullptr) to = open(&from);
        if (from.library()->isSimulated(ref.file)) {
            const auto run = from.library()->cachedRun(ref);
            if (run) to->showRun(to->library()->addSimulated(*run));
        } else {
            to->session()->showThere(ref, {});
        }
        to->raise();
        to->activateWindow();
    };
    QMenu* windows = menu.addMenu(MainWindow::tr("Show in another window"));
    windows->addAction(MainWindow::tr("A new window"), &from, [show] { show(nullptr); });
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
            window->session()->keepSimulated(last);
            windows << window->session()->state();
            kept << window->session()->simulatedFile();
        }
    removeStale(kept);
    QSettings settings;
    settings.setValue(QLatin1String(windowsKey), windows);
    settings.setValue(QLatin1String(runningKey), true);
    settings.sync();
}

// Runs in memory of windows that are no longer part of the session.
void WindowSet::removeStale(const QStringList& kept) const
{
    for (const QFileInfo& info : QDir(SessionController::folder()).entryInfoList({QStringLiteral("*.simulated")}, QDir::Files))
        if (!kept.contains(info.absoluteFilePath())) QFile::remove(info.absoluteFilePath());
}

bool WindowSet::restore(MainWindow& first)
{
    QSettings settings;
    const QVariantList windows = settings.value(QLatin1String(windowsKey)).toList();
    const bool crashed = settings.value(QLatin1String(runningKey), false).toBool();
    const bool failed = settings.value(QLatin1String(restoringKey), false).toBool();
    if (!PreferenceStore::instance().value().restoreSession || windows.isEmpty()) return false;
    if (failed) {
        settings.setValue(QLatin1String(restoringKey), false);
        first.banner()->showQuestion(tr("The last session could not be reopened"), tr("the program ended while reopening it; find the files under Open recent"), tr("Try again"),
                                     [this, &first] { restore(first); });
        return false;
    }
    settings.setValue(QLatin1String(restoringKey), true);
    settings.sync();
    for (int i = 0; i < windows.size(); ++i) {
        MainWindow* window = i == 0 ? &first : open();
        window->session()->restore(windows.at(i).toMap());
    }
    if (crashed && first.bannerText().isEmpty() && !first.edit()->offersRecovery()) first.banner()->showNote(tr("Stagewright did not exit properly. The last session has been reopened."));
    QTimer::singleShot(4000, this, [] { QSettings().setValue(QLatin1String(restoringKey), false); });
    connect(&first, &MainWindow::runShown, this, [] { QSettings().setValue(QLatin1String(restoringKey), false); });
    return true;
}

void WindowSet::closing(MainWindow& window)
{
    if (!m_keeps || m_frozen) return;
    const bool last = std::none_of(m_windows.begin(), m_windows.end(), [&](MainWindow* one) { return one != &window && one->isVisible(); });
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
    environment.remove(QStringLiteral("QT_SCALE_FACTOR")); // set by this start
    program.setProcessEnvironment(environment);
    program.setProgram(QCoreApplication::applicationFilePath());
    program.startDetached();
}

} // namespace stagewright
