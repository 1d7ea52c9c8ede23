#include "app/ui/session_controller.h"

#include <utility>

#include <QComboBox>
#include <QFileInfo>
#include <QSplitter>

#include "app/ui/banner.h"
#include "app/ui/bookmarks_controller.h"
#include "app/ui/main_window.h"
#include "app/ui/notes_controller.h"
#include "app/ui/preferences_controller.h"
#include "app/ui/sql_controller.h"
#include "app/ui/window_set.h"
#include "traces/notes.h"

namespace stagewright {
namespace {

QVariantMap mapOf(const RunRef& ref) { return {{QStringLiteral("file"), ref.file}, {QStringLiteral("id"), ref.id}}; }
RunRef refOf(const QVariant& map)
{
    return {map.toMap().value(QStringLiteral("file")).toString(), map.toMap().value(QStringLiteral("id")).toLongLong()};
}

} // namespace

SessionController::SessionController(MainWindow& window) : QObject(&window), m_window(window)
{
    WindowSet& set = WindowSet::instance();
    set.add(&window);
    using I = ActionId;
    connect(window.actions()[I::NewWindow], &QAction::triggered, this, [this] { WindowSet::instance().open(&m_window); });
    connect(window.actions()[I::MoveToWindow], &QAction::triggered, this, [this] { WindowSet::instance().moveRun(m_window, nullptr); });
    connect(window.preferences(), &PreferencesController::restartAsked, &set, &WindowSet::restart);
    connect(&window, &MainWindow::actionsRefreshed, this, [this] {
        m_window.actions()[I::MoveToWindow]->setEnabled(m_window.mode() == MainWindow::Mode::Run && m_window.shownView() && !m_window.shownView()->partial);
    });
    connect(&window, &MainWindow::windowClosing, this, [this] { WindowSet::instance().closing(m_window); });
    for (const auto signal : {&MainWindow::runShown, &MainWindow::modeChanged}) connect(&window, signal, &set, &WindowSet::saveSoon);
    connect(window.viewState(), &ViewState::visibleChanged, &set, &WindowSet::saveSoon);
    connect(window.viewState(), &ViewState::selectionChanged, &set, &WindowSet::saveSoon);
    connect(&window, &MainWindow::runShown, this, &SessionController::applyView);
    connect(window.library(), &RunLibrary::listed, this, [this](const QString& path) {
        m_stamps[path] = stampOf(path);
        watchFiles();
        showWanted(path);
        WindowSet::instance().saveSoon();
    });
    connect(window.library(), &RunLibrary::failed, this, [this](const QString& path) {
        if (m_wanted.file == path || m_wantedOther.file == path) m_wanted = m_wantedOther = {};
    });
    // Other windows of this process write, too.
    const auto tell = [](const QString& file) { emit WindowSet::instance().fileWritten(file); };
    connect(window.notes(), &NotesController::wrote, this, tell);
    connect(window.sql(), &SqlController::wrote, this, tell);
    connect(window.bookmarks(), &BookmarksController::wrote, this, tell);
    connect(window.library(), &RunLibrary::wrote, this, tell);
    connect(&set, &WindowSet::fileWritten, this, &SessionController::wroteFile);
    connect(&m_watcher, &QFileSystemWatcher::fileChanged, this, [this](const QString& file) {
        if (!m_changed.contains(file)) m_changed << file;
        m_look.start();
    });
    m_look.setSingleShot(true);
    m_look.setInterval(600); // a writer takes several turns
    connect(&m_look, &QTimer::timeout, this, &SessionController::lookAtChanged);
}

QVariantMap SessionController::viewState() const
{
    QVariantMap map;
    const auto shown = m_window.shownView();
    if (!shown || m_window.mode() == MainWindow::Mode::Empty) return map;
    map[QStringLiteral("mode")] = static_cast<int>(m_window.mode());
    map[QStringLiteral("run")] = mapOf(shown->ref);
    if (const auto other = m_window.comparedView()) map[QStringLiteral("other")] = mapOf(other->ref);
    map[QStringLiteral("step")] = shown->step;
    const TimeRange range = m_window.viewState()->visible();
    if (!m_window.viewState()->isFitted()) {
        map[QStringLiteral("begin")] = qint64(range.begin);
        map[QStringLiteral("end")] = qint64(range.end);
    }
    const SpanRef selected = m_window.viewState()->selected();
    const auto& panels = m_window.timelineView()->panels();
    if (selected.valid() && selected.panel < static_cast<int>(panels.size())) {
        const Note anchor = noteOnSpan(*panels[static_cast<std::size_t>(selected.panel)]->timeline, selected.span);
        map[QStringLiteral("selected")] = QVariantMap{{QStringLiteral("panel"), selected.panel},
                                                      {QStringLiteral("rank"), anchor.rank},
                                                      {QStringLiteral("step"), anchor.step},
                                                      {QStringLiteral("op"), QString::fromStdString(anchor.op)},
                                                      {QStringLiteral("occurrence"), anchor.occurrence}};
    }
    return map;
}

QVariantMap SessionController::state() const
{
    QVariantMap map = viewState();
    QStringList files;
    for (const QString& file : m_window.runs()->files())
        if (!m_window.library()->isSimulated(file)) files << file;
    map[QStringLiteral("files")] = files;
    map[QStringLiteral("schedules")] = m_schedules;
    map[QStringLiteral("geometry")] = m_window.saveGeometry();
    map[QStringLiteral("docks")] = m_window.saveState();
    map[QStringLiteral("columns")] = m_window.columns()->saveState();
    return map;
}

void SessionController::restore(const QVariantMap& state)
{
    m_window.restoreGeometry(state.value(QStringLiteral("geometry")).toByteArray());
    m_window.restoreState(state.value(QStringLiteral("docks")).toByteArray());
    m_window.columns()->restoreState(state.value(QStringLiteral("columns")).toByteArray());
    QStringList gone;
    const RunRef run = refOf(state.value(QStringLiteral("run")));
    m_wanted = run;
    m_wantedOther = refOf(state.value(QStringLiteral("other")));
    m_view = state;
    QStringList schedules = state.value(QStringLiteral("schedules")).toStringList();
    schedules.removeDuplicates();
    QStringList there;
    for (const QString& file : schedules) (QFileInfo::exists(file) ? there : gone) << file;
    if (!there.isEmpty()) m_window.openFiles(there);
    bool any = false;
    for (const QString& file : state.value(QStringLiteral("files")).toStringList()) {
        if (!QFileInfo::exists(file)) {
            gone << file;
            continue;
        }
        any = any || file == run.file;
        m_window.library()->open(file);
    }
    if (!any) { // nothing to wait for: the schedule that was opened is shown as it is
        m_wanted = m_wantedOther = {};
        m_view.clear();
    }
    if (!gone.isEmpty()) m_window.banner()->showError(tr("of the last session %1 is no longer there").arg(gone.join(QStringLiteral(", "))), tr("open it from where it is now"));
}

void SessionController::showThere(const RunRef& ref, const QVariantMap& view)
{
    m_wanted = ref;
    m_wantedOther = refOf(view.value(QStringLiteral("other")));
    m_view = view;
    if (m_window.library()->isSimulated(ref.file) || m_window.runs()->info(ref) != nullptr)
        showWanted(ref.file);
    else
        m_window.library()->open(ref.file);
}

void SessionController::showWanted(const QString&)
{
    if (!m_wanted.valid() || m_window.runs()->info(m_wanted) == nullptr) return;
    const int mode = m_view.value(QStringLiteral("mode"), static_cast<int>(MainWindow::Mode::Run)).toInt();
    if (mode == static_cast<int>(MainWindow::Mode::Compare) && m_wantedOther.valid()) {
        if (m_window.runs()->info(m_wantedOther) == nullptr) return; // its file is still being listed
        m_window.showCompare(m_wanted, m_wantedOther);
    } else {
        m_window.showRun(m_wanted, m_view.value(QStringLiteral("step"), -1).toInt());
    }
}

void SessionController::applyView()
{
    if (!m_wanted.valid() || !(m_window.shownRef() == m_wanted)) return;
    const QVariantMap view = m_view;
    m_wanted = m_wantedOther = {};
    m_view.clear();
    if (view.contains(QStringLiteral("begin")))
        m_window.viewState()->setVisible({view.value(QStringLiteral("begin")).toLongLong(), view.value(QStringLiteral("end")).toLongLong()});
    if (view.contains(QStringLiteral("selected"))) {
        const QVariantMap selected = view.value(QStringLiteral("selected")).toMap();
        Note anchor;
        anchor.rank = selected.value(QStringLiteral("rank")).toInt();
        anchor.step = selected.value(QStringLiteral("step")).toInt();
        anchor.op = selected.value(QStringLiteral("op")).toString().toStdString();
        anchor.occurrence = selected.value(QStringLiteral("occurrence")).toInt();
        const int panel = selected.value(QStringLiteral("panel")).toInt();
        const auto& panels = m_window.timelineView()->panels();
        if (panel >= 0 && panel < static_cast<int>(panels.size())) {
            const SpanId span = spanOfNote(*panels[static_cast<std::size_t>(panel)]->timeline, anchor);
            if (span != noSpan) m_window.viewState()->select({panel, span});
        }
    }
    if (view.value(QStringLiteral("mode")).toInt() == static_cast<int>(MainWindow::Mode::Edit) && m_window.mode() == MainWindow::Mode::Run)
        QTimer::singleShot(0, &m_window, &MainWindow::enterEdit);
}

SessionController::Stamp SessionController::stampOf(const QString& file)
{
    QFileInfo info(file);
    info.refresh();
    return info.exists() ? Stamp{info.lastModified(), info.size()} : Stamp{};
}

void SessionController::watchFiles()
{
    for (const QString& file : m_window.runs()->files())
        if (!m_window.library()->isSimulated(file) && QFileInfo::exists(file) && !m_watcher.files().contains(file)) m_watcher.addPath(file);
    for (const QString& file : m_watcher.files())
        if (!m_window.runs()->hasFile(file)) m_watcher.removePath(file);
}

void SessionController::wroteFile(const QString& file)
{
    if (m_stamps.contains(file)) m_stamps[file] = stampOf(file);
}

void SessionController::lookAtChanged()
{
    watchFiles(); // a file that was replaced is no longer watched
    const QStringList changed = std::exchange(m_changed, {});
    for (const QString& file : changed) {
        if (!m_window.runs()->hasFile(file)) continue;
        const Stamp now = stampOf(file);
        if (now == m_stamps.value(file)) continue;
        m_stamps[file] = now;
        if (m_window.isRecordingInto(file)) continue; // followed anyway
        const QString name = QFileInfo(file).fileName();
        if (now.size < 0) {
            m_window.banner()->showError(tr("%1 was removed or renamed; what is shown was read before").arg(name), tr("save a copy while it is open"));
            continue;
        }
        m_window.banner()->showQuestion(tr("%1 was changed by another program").arg(name), tr("what is shown was read before"), tr("Read it again"), [this, file] {
            for (const RunRef& ref : m_window.runs()->refs())
                if (ref.file == file) m_window.notes()->forget(ref);
            const bool shown = m_window.shownRef().file == file;
            if (shown) {
                m_wanted = m_window.shownRef();
                m_view = viewState();
            }
            m_window.library()->refresh(file);
        });
    }
}

} // namespace stagewright
