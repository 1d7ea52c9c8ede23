#include "app/ui/shell/session_controller.h"

#include <utility>

#include <algorithm>

#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSettings>
#include <QSplitter>
#include <QUuid>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/notes/bookmarks_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/preferences_controller.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/sql/sql_controller.h"
#include "traces/run/notes.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"

namespace stagewright {
namespace {

constexpr qint64 mostSpansKept = 500'000; // of a run in memory
const QString simulatedSuffix = QStringLiteral(".simulated");

} // namespace

QString SessionController::folder() { return QFileInfo(QSettings().fileName()).absolutePath() + QStringLiteral("/session"); }
QString SessionController::simulatedFile() const { return folder() + QLatin1Char('/') + m_id + simulatedSuffix; }

// Runs in memory have other ids at the next start: they go by their names.
QVariantMap SessionController::mapOf(const RunRef& ref) const
{
    QVariantMap map{{QStringLiteral("file"), ref.file}, {QStringLiteral("id"), ref.id}};
    const RunInfo* info = m_window.library()->isSimulated(ref.file) ? m_window.runs()->info(ref) : nullptr;
    if (info != nullptr) map[QStringLiteral("name")] = QString::fromStdString(info->name);
    return map;
}

RunRef SessionController::refOf(const QVariant& value) const
{
    const QVariantMap map = value.toMap();
    RunRef ref{map.value(QStringLiteral("file")).toString(), map.value(QStringLiteral("id")).toLongLong()};
    const std::string name = map.value(QStringLiteral("name")).toString().toStdString();
    if (!m_window.library()->isSimulated(ref.file) || name.empty()) return ref;
    for (const RunRef& one : m_window.runs()->refs())
        if (const RunInfo* info = m_window.runs()->info(one); one.file == ref.file && info != nullptr && info->name == name) return one;
    return ref;
}

SessionController::SessionController(MainWindow& window) : QObject(&window), m_window(window), m_id(QUuid::createUuid().toString(QUuid::WithoutBraces))
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
        showWanted();
        answered(path);
        WindowSet::instance().saveSoon();
    });
    connect(window.library(), &RunLibrary::failed, this, [this](const QString& path) {
        const bool others = std::any_of(m_wantedOthers.begin(), m_wantedOthers.end(), [&](const RunRef& ref) { return ref.file == path; });
        if (m_wanted.file == path || others) {
            m_wanted = {};
            m_wantedOthers.clear();
        }
        answered(path);
        WindowSet::instance().saveSoon(); // without it
    });
    connect(window.library(), &RunLibrary::simulatedChanged, this, &SessionController::simulatedChanged);
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
    m_keeping.setMaxThreadCount(1);
    connect(&m_look, &QTimer::timeout, this, &SessionController::lookAtChanged);
}

QVariantMap SessionController::viewState() const
{
    QVariantMap map;
    const auto shown = m_window.shownView();
    if (!shown || m_window.mode() == MainWindow::Mode::Empty) return map;
    map[QStringLiteral("mode")] = static_cast<int>(m_window.mode());
    map[QStringLiteral("run")] = mapOf(shown->ref);
    if (m_window.mode() == MainWindow::Mode::Compare) {
        QVariantList others;
        const auto& views = m_window.compare()->shown();
        for (std::size_t i = 1; i < views.size(); ++i) others << mapOf(views[i]->ref);
        map[QStringLiteral("others")] = others;
    }
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
    QStringList files; // without those that can't be read: that was said when they were opened
    for (const QString& file : m_window.runs()->files())
        if (!m_window.library()->isSimulated(file) && !m_window.isScratch(file) && m_window.runs()->indexOfFile(file).data(RunsModel::ErrorRole).toString().isEmpty()) files << file;
    map[QStringLiteral("files")] = files;
    map[QStringLiteral("id")] = m_id;
    if (const auto [file, target] = m_window.recordingFiles(); !file.isEmpty()) map[QStringLiteral("recording")] = QStringList{file, target};
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
    if (const QString id = state.value(QStringLiteral("id")).toString(); !id.isEmpty()) m_id = id;
    QStringList gone;
    m_view = state;
    m_wanted = {};
    m_wantedOthers.clear();
    QStringList schedules = state.value(QStringLiteral("schedules")).toStringList();
    schedules.removeDuplicates();
    QStringList there;
    for (const QString& file : schedules) (QFileInfo::exists(file) ? there : gone) << file;
    const QStringList recording = state.value(QStringLiteral("recording")).toStringList();
    const bool left = recording.size() == 2 && recording[0] != recording[1] && QFileInfo::exists(recording[0]);
    QStringList files;
    for (const QString& file : state.value(QStringLiteral("files")).toStringList()) {
        if (QFileInfo::exists(file))
            files << file;
        else if (!recording.contains(file)) // else it went with its recording
            gone << file;
    }
    m_awaited = files;
    const bool simulated = QFileInfo::exists(simulatedFile());
    if (simulated) m_awaited << simulatedFile();
    const QString wanted = state.value(QStringLiteral("run")).toMap().value(QStringLiteral("file")).toString();
    if (files.contains(wanted) || (simulated && m_window.library()->isSimulated(wanted))) {
        m_wanted = refOf(state.value(QStringLiteral("run")));
        for (const QVariant& other : state.value(QStringLiteral("others")).toList()) m_wantedOthers.push_back(refOf(other));
    } else { // nothing to wait for: what is listed first is shown as it is
        m_view.clear();
    }
    if (!there.isEmpty()) m_window.openFiles(there);
    for (const QString& file : files) m_window.library()->open(file);
    if (simulated) restoreSimulated(simulatedFile());
    if (left) m_window.takeUpRecording(recording[0], recording[1]);
    if (!gone.isEmpty()) m_window.banner()->showError(tr("%1 from the last session no longer exists").arg(gone.join(QStringLiteral(", "))), tr("open it from its new place"));
    WindowSet::instance().saveSoon(); // what is gone is named once
}

void SessionController::restoreSimulated(const QString& path)
{
    struct Kept {
        std::vector<Run> runs;
        std::vector<std::vector<Note>> notes;
    };
    inBackground(
        this,
        [path]() -> Result<std::shared_ptr<Kept>> {
            auto file = RunFile::open(path.toStdString(), OpenMode::Read);
            if (!file) return tl::unexpected(file.error());
            auto infos = (*file)->runs();
            if (!infos) return tl::unexpected(infos.error());
            auto kept = std::make_shared<Kept>();
            for (const RunInfo& info : *infos) {
                auto run = (*file)->read(info.id);
                if (!run) return tl::unexpected(run.error());
                auto notes = (*file)->notes(info.id);
                kept->runs.push_back(std::move(*run));
                kept->notes.push_back(notes ? std::move(*notes) : std::vector<Note>{});
            }
            return kept;
        },
        [this, path](Result<std::shared_ptr<Kept>> kept) {
            if (kept) {
                for (std::size_t i = 0; i < (*kept)->runs.size(); ++i) {
                    const std::string& name = (*kept)->runs[i].info.name;
                    const auto now = m_window.library()->simulatedRuns();
                    if (std::any_of(now.begin(), now.end(), [&](const auto& one) { return one.second->info.name == name; })) continue; // newer: from its CSV
                    const RunRef ref = m_window.library()->addSimulated(std::move((*kept)->runs[i]));
                    for (const Note& note : (*kept)->notes[i]) m_window.notes()->addNote(ref, note);
                }
                m_simulatedChanged = false; // as they are on disk
                if (m_window.library()->isSimulated(m_wanted.file)) m_wanted = refOf(m_view.value(QStringLiteral("run")));
                const QVariantList others = m_view.value(QStringLiteral("others")).toList();
                for (std::size_t i = 0; i < m_wantedOthers.size(); ++i) m_wantedOthers[i] = refOf(others[static_cast<qsizetype>(i)]);
            } else {
                QFile::remove(path); // our own leftover
            }
            showWanted();
            answered(path);
        });
}

void SessionController::simulatedChanged()
{
    m_simulatedChanged = true;
    WindowSet::instance().saveSoon();
}

void SessionController::keepSimulated(bool wait)
{
    if (!m_simulatedChanged && !wait) return;
    if (m_awaited.contains(simulatedFile())) return; // not read back yet: it holds more than is here
    m_simulatedChanged = false;
    std::vector<std::shared_ptr<const Run>> runs;
    std::vector<std::vector<Note>> notes;
    for (const auto& [ref, run] : m_window.library()->simulatedRuns())
        if (run->info.spanCount <= mostSpansKept && (!run->timeline || static_cast<qint64>(run->timeline->spans().size()) <= mostSpansKept)) {
            runs.push_back(run);
            notes.push_back(m_window.notes()->notes(ref));
        }
    const QString target = simulatedFile();
    if (runs.empty()) {
        QFile::remove(target);
        return;
    }
    QDir().mkpath(folder());
    const auto write = [target, runs, notes] { return writeRuns(target, runs, notes); };
    if (wait) {
        m_keeping.waitForDone();
        (void)write(); // a run that can't be saved doesn't keep the window open
    } else {
        inBackground(
            this, write, [](const Result<void>&) {}, &m_keeping);
    }
}

void SessionController::showThere(const RunRef& ref, const QVariantMap& view)
{
    m_wanted = ref;
    m_wantedOthers.clear();
    for (const QVariant& other : view.value(QStringLiteral("others")).toList()) m_wantedOthers.push_back(refOf(other));
    m_view = view;
    if (m_window.library()->isSimulated(ref.file) || m_window.runs()->info(ref) != nullptr)
        showWanted();
    else
        m_window.library()->open(ref.file);
}

void SessionController::showWanted()
{
    if (!m_wanted.valid() || m_window.runs()->info(m_wanted) == nullptr) return;
    const int mode = m_view.value(QStringLiteral("mode"), static_cast<int>(MainWindow::Mode::Run)).toInt();
    if (mode == static_cast<int>(MainWindow::Mode::Compare) && !m_wantedOthers.empty()) {
        std::vector<RunRef> refs{m_wanted};
        for (const RunRef& other : m_wantedOthers) {
            if (m_window.runs()->info(other) == nullptr) return; // its file is still being listed
            refs.push_back(other);
        }
        m_window.compare()->show(refs);
    } else {
        m_window.showRun(m_wanted, m_view.value(QStringLiteral("step"), -1).toInt());
    }
}

// With every file listed a run is shown, if there is one.
void SessionController::answered(const QString& path)
{
    if (m_awaited.removeAll(path) == 0 || !m_awaited.isEmpty()) return;
    if (m_wanted.valid() && m_window.runs()->info(m_wanted) == nullptr) {
        m_wanted = {};
        m_wantedOthers.clear();
    }
    if (m_wanted.valid() || m_window.mode() != MainWindow::Mode::Empty || m_window.runs()->refs().empty()) return;
    m_window.showRun(m_window.runs()->refs().front());
}

void SessionController::applyView()
{
    if (!m_wanted.valid() || !(m_window.shownRef() == m_wanted)) return;
    const QVariantMap view = m_view;
    m_wanted = {};
    m_wantedOthers.clear();
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
    // Not if an edit can be recovered: an unchanged edit beside it would be misleading.
    if (view.value(QStringLiteral("mode")).toInt() == static_cast<int>(MainWindow::Mode::Edit) && m_window.mode() == MainWindow::Mode::Run && !m_window.edit()->offersRecovery())
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
            m_window.banner()->showError(tr("%1 was removed or renamed; the window shows what was read before").arg(name), tr("save a copy while it is still open"));
            continue;
        }
        m_window.banner()->showQuestion(tr("%1 was changed by another program").arg(name), tr("the window shows what was read before"), tr("Read it again"), [this, file] {
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
