#include "app/ui/shell/session_controller.h"

#include <utility>

#include <algorithm>
#include <optional>

#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMenu>
#include <QSettings>
#include <QSplitter>
#include <QUuid>

#include "app/ui/runs/run_writing.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/run/notes.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr qint64 mostSpansKept = 500'000; // of a run in memory
const QString simulatedSuffix = u".simulated"_s;

} // namespace

QString SessionController::folder() { return QFileInfo(QSettings().fileName()).absolutePath() + u"/session"_s; }
QString SessionController::simulatedFileOf(const QString& id) { return folder() + u'/' + id + simulatedSuffix; }

// Runs in memory have other ids at the next start: they go by their names.
QVariantMap SessionController::mapOf(const RunRef& ref) const
{
    QVariantMap map{{u"file"_s, ref.file}, {u"id"_s, ref.id}};
    const RunInfo* info = m_workspace.library()->isSimulated(ref.file) ? m_workspace.runs()->info(ref) : nullptr;
    if (info != nullptr) map[u"name"_s] = QString::fromStdString(info->name);
    return map;
}

RunRef SessionController::refOf(const QVariant& value) const
{
    const QVariantMap map = value.toMap();
    RunRef ref{map.value(u"file"_s).toString(), map.value(u"id"_s).toLongLong()};
    const std::string name = map.value(u"name"_s).toString().toStdString();
    if (!m_workspace.library()->isSimulated(ref.file) || name.empty()) return ref;
    for (const RunRef& one : m_workspace.runs()->refs())
        if (const RunInfo* info = m_workspace.runs()->info(one);
            one.file == ref.file && info != nullptr && info->name == name)
            return one;
    return ref;
}

std::vector<ActionEntry> SessionController::actionTable()
{
    return {
        item("newWindow", ActionGroup::FileWindow, u"&New window"_s, "Ctrl+Shift+O",
             u"Opens another window with its own view"_s),
        item("moveToWindow", ActionGroup::FileWindow, u"&Move the run to a new window"_s, {},
             u"Shows this run in its own window; this window shows the next run"_s),
        item("quit", ActionGroup::FileQuit, u"&Quit"_s, "Ctrl+Q"),
    };
}

SessionController::SessionController(Workspace& workspace)
    : Feature(workspace), m_id(QUuid::createUuid().toString(QUuid::WithoutBraces))
{
    WindowSet& set = WindowSet::instance();
    connect(workspace.actions()["newWindow"], &QAction::triggered, this,
            [this] { WindowSet::instance().open(m_workspace.window()); });
    connect(workspace.actions()["moveToWindow"], &QAction::triggered, this,
            [this] { WindowSet::instance().moveRun(*m_workspace.window(), nullptr); });
    connect(&workspace, &Workspace::restartAsked, &set, &WindowSet::restart);
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        m_workspace.actions()["moveToWindow"]->setEnabled(
            m_workspace.shown().mode() == Shown::Mode::Run && m_workspace.shown().view() &&
            !m_workspace.shown().view()->partial && !m_workspace.shown().view()->excerpt);
    });
    connect(&workspace, &Workspace::closing, this, [this] { WindowSet::instance().closing(*m_workspace.window()); });
    connect(&workspace, &Workspace::closeRefused, &set, &WindowSet::stay);
    connect(&workspace, &Workspace::closeAsked, this, [this] {
        if (WindowSet::instance().quitting())
            WindowSet::instance().quit();
        else
            m_workspace.window()->close();
    });
    connect(&workspace, &Workspace::runMenuOpening, this, [this](QMenu* menu, const RunRef& ref) {
        WindowSet::instance().addMenu(*menu, *m_workspace.window(), ref);
    });
    connect(&workspace, &Workspace::scheduleOpened, this, [this](const QString& path) { m_schedules << path; });
    connect(workspace.actions()["quit"], &QAction::triggered, &set, &WindowSet::quit);
    for (const auto signal : {&Shown::runShown, &Shown::modeChanged})
        connect(&workspace.shown(), signal, &set, &WindowSet::saveSoon);
    connect(workspace.viewState(), &ViewState::visibleChanged, &set, &WindowSet::saveSoon);
    connect(workspace.viewState(), &ViewState::selectionChanged, &set, &WindowSet::saveSoon);
    connect(&workspace.shown(), &Shown::runShown, this, &SessionController::applyView);
    connect(workspace.library(), &RunLibrary::listed, this, [this](const QString& path) {
        m_stamps[path] = stampOf(path);
        watchFiles();
        showWanted();
        answered(path);
        WindowSet::instance().saveSoon();
    });
    connect(workspace.library(), &RunLibrary::failed, this, [this](const QString& path) {
        const bool others = std::any_of(m_wantedOthers.begin(), m_wantedOthers.end(),
                                        [&](const RunRef& ref) { return ref.file == path; });
        if (m_wanted.file == path || others) {
            m_wanted = {};
            m_wantedOthers.clear();
        }
        answered(path);
        WindowSet::instance().saveSoon(); // without it
    });
    connect(workspace.library(), &RunLibrary::simulatedChanged, this, &SessionController::simulatedChanged);
    // Other windows of this process write, too.
    connect(&workspace, &Workspace::fileWritten, &set, &WindowSet::fileWritten);
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
    const auto shown = m_workspace.shown().view();
    if (!shown || m_workspace.shown().mode() == Shown::Mode::Empty || m_workspace.library()->isAside(shown->ref.file))
        return map;
    map[u"mode"_s] = static_cast<int>(m_workspace.shown().mode());
    map[u"run"_s] = mapOf(shown->ref);
    if (m_workspace.shown().mode() == Shown::Mode::Compare) {
        QVariantList others;
        const auto& views = m_workspace.feature<RunComparing>()->shown();
        for (std::size_t i = 1; i < views.size(); ++i) others << mapOf(views[i]->ref);
        map[u"others"_s] = others;
    }
    map[u"step"_s] = shown->step;
    const TimeRange range = m_workspace.viewState()->visible();
    if (!m_workspace.viewState()->isFitted()) {
        map[u"begin"_s] = qint64(range.begin);
        map[u"end"_s] = qint64(range.end);
    }
    const SpanRef selected = m_workspace.viewState()->selected();
    const auto& panels = m_workspace.views().timeline->panels();
    if (selected.valid() && selected.panel < static_cast<int>(panels.size())) {
        const Note anchor = noteOnSpan(*panels[static_cast<std::size_t>(selected.panel)]->timeline, selected.span);
        map[u"selected"_s] = QVariantMap{{u"panel"_s, selected.panel},
                                         {u"rank"_s, anchor.rank},
                                         {u"step"_s, anchor.step},
                                         {u"op"_s, QString::fromStdString(anchor.op)},
                                         {u"occurrence"_s, anchor.occurrence}};
    }
    return map;
}

QVariantMap SessionController::state() const
{
    QVariantMap map = viewState();
    QStringList files; // without those that can't be read: that was said when they were opened
    for (const QString& file : m_workspace.runs()->files())
        if (!m_workspace.library()->isSimulated(file) && !m_workspace.library()->isAside(file) &&
            !m_workspace.feature<Recording>()->isScratch(file) &&
            m_workspace.runs()->indexOfFile(file).data(RunsModel::ErrorRole).toString().isEmpty())
            files << file;
    map[u"files"_s] = files;
    map[u"id"_s] = m_id;
    if (const auto [file, target] = m_workspace.feature<Recording>()->recordingFiles(); !file.isEmpty())
        map[u"recording"_s] = QStringList{file, target};
    map[u"schedules"_s] = m_schedules;
    map[u"geometry"_s] = m_workspace.window()->saveGeometry();
    map[u"docks"_s] = m_workspace.window()->saveState();
    map[u"columns"_s] = m_workspace.room().columns()->saveState();
    return map;
}

void SessionController::restore(const QVariantMap& state)
{
    m_workspace.window()->restoreGeometry(state.value(u"geometry"_s).toByteArray());
    m_workspace.window()->restoreState(state.value(u"docks"_s).toByteArray());
    m_workspace.room().columns()->restoreState(state.value(u"columns"_s).toByteArray());
    if (const QString id = state.value(u"id"_s).toString(); !id.isEmpty()) m_id = id;
    QStringList gone;
    m_view = state;
    m_wanted = {};
    m_wantedOthers.clear();
    QStringList schedules = state.value(u"schedules"_s).toStringList();
    schedules.removeDuplicates();
    QStringList there;
    for (const QString& file : schedules) (QFileInfo::exists(file) ? there : gone) << file;
    const QStringList recording = state.value(u"recording"_s).toStringList();
    const bool left = recording.size() == 2 && recording[0] != recording[1] && QFileInfo::exists(recording[0]);
    QStringList files;
    for (const QString& file : state.value(u"files"_s).toStringList()) {
        if (QFileInfo::exists(file))
            files << file;
        else if (!recording.contains(file)) // else it went with its recording
            gone << file;
    }
    m_awaited = files;
    const bool simulated = QFileInfo::exists(simulatedFile());
    if (simulated) m_awaited << simulatedFile();
    const QString wanted = state.value(u"run"_s).toMap().value(u"file"_s).toString();
    if (files.contains(wanted) || (simulated && m_workspace.library()->isSimulated(wanted))) {
        m_wanted = refOf(state.value(u"run"_s));
        for (const QVariant& other : state.value(u"others"_s).toList()) m_wantedOthers.push_back(refOf(other));
    } else { // nothing to wait for: what is listed first is shown as it is
        m_view.clear();
    }
    if (!there.isEmpty()) m_workspace.feature<FileOpening>()->openFiles(there);
    for (const QString& file : files) m_workspace.library()->open(file);
    if (simulated) restoreSimulated(simulatedFile());
    if (left) m_workspace.feature<Recording>()->takeUpRecording(recording[0], recording[1]);
    if (!gone.isEmpty())
        m_workspace.banner()->showError(u"%1 from the last session no longer exists"_s.arg(gone.join(u", "_s)),
                                        u"open it from its new place"_s);
    WindowSet::instance().saveSoon(); // what is gone is named once
}

void SessionController::restoreSimulated(const QString& path)
{
    struct Kept {
        std::vector<Run> runs;
        std::vector<std::vector<Note>> notes;
        std::optional<Error> fault; // some of them can't be read
    };
    inBackground(
        this,
        [path]() -> Result<std::shared_ptr<Kept>> {
            STAGEWRIGHT_TRY(auto file, RunFile::open(path.toStdString(), OpenMode::Read));
            STAGEWRIGHT_TRY(auto infos, file->runs());
            auto kept = std::make_shared<Kept>();
            for (const RunInfo& info : infos) {
                auto run = file->read(info.id);
                if (!run && run.error().code == ErrorCode::Cancelled) return tl::unexpected(std::move(run.error()));
                if (!run) {
                    kept->fault = std::move(run.error());
                    continue;
                }
                if (run->info.damagedBlocks > 0)
                    kept->fault = Error{ErrorCode::Unreadable, run->info.name + " is damaged", {}};
                auto notes = file->notes(info.id);
                if (!notes) kept->fault = std::move(notes.error());
                kept->runs.push_back(std::move(*run));
                kept->notes.push_back(notes ? std::move(*notes) : std::vector<Note>{});
            }
            return kept;
        },
        [this, path](Result<std::shared_ptr<Kept>> kept) {
            // the program closes: the file stays as it is
            if (!kept && kept.error().code == ErrorCode::Cancelled) return;
            if (kept) {
                for (std::size_t i = 0; i < (*kept)->runs.size(); ++i) {
                    const std::string& name = (*kept)->runs[i].info.name;
                    const auto now = m_workspace.library()->simulatedRuns();
                    // newer: from its CSV
                    if (std::any_of(now.begin(), now.end(),
                                    [&](const auto& one) { return one.second->info.name == name; }))
                        continue;
                    const RunRef ref = m_workspace.library()->addSimulated(std::move((*kept)->runs[i]));
                    for (const Note& note : (*kept)->notes[i]) m_workspace.feature<NoteKeeping>()->addNote(ref, note);
                }
                m_simulatedChanged = false; // as they are on disk
                if (m_workspace.library()->isSimulated(m_wanted.file)) m_wanted = refOf(m_view.value(u"run"_s));
                const QVariantList others = m_view.value(u"others"_s).toList();
                for (std::size_t i = 0; i < m_wantedOthers.size(); ++i)
                    m_wantedOthers[i] = refOf(others[static_cast<qsizetype>(i)]);
            }
            if (!kept || (*kept)->fault) setAside(path, kept ? *(*kept)->fault : kept.error());
            showWanted();
            answered(path);
        });
}

void SessionController::setAside(const QString& file, const Error& why)
{
    const QString name = file.chopped(simulatedSuffix.size()) + u"-unread"_s;
    QString aside = name + u".stagewright"_s;
    for (int i = 2; QFileInfo::exists(aside); ++i) aside = name + QString::number(i) + u".stagewright"_s;
    const QString place = QFile::rename(file, aside) ? aside : file;
    // what is kept from now on has another file
    if (place == file) m_id = QUuid::createUuid().toString(QUuid::WithoutBraces);
    m_simulatedChanged = true;
    m_workspace.banner()->showError(u"Runs kept with the last session can't all be read; they stay in %1"_s.arg(place),
                                    why);
    WindowSet::instance().saveSoon();
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
    for (const auto& [ref, run] : m_workspace.library()->simulatedRuns())
        if (run->info.spanCount <= mostSpansKept &&
            (!run->timeline || static_cast<qint64>(run->timeline->spans().size()) <= mostSpansKept)) {
            runs.push_back(run);
            notes.push_back(m_workspace.feature<NoteKeeping>()->notes(ref));
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
    for (const QVariant& other : view.value(u"others"_s).toList()) m_wantedOthers.push_back(refOf(other));
    m_view = view;
    if (m_workspace.library()->isSimulated(ref.file) || m_workspace.runs()->info(ref) != nullptr)
        showWanted();
    else
        m_workspace.library()->open(ref.file);
}

void SessionController::showWanted()
{
    if (!m_wanted.valid() || m_workspace.runs()->info(m_wanted) == nullptr) return;
    const int mode = m_view.value(u"mode"_s, static_cast<int>(Shown::Mode::Run)).toInt();
    if (mode == static_cast<int>(Shown::Mode::Compare) && !m_wantedOthers.empty()) {
        std::vector<RunRef> refs{m_wanted};
        for (const RunRef& other : m_wantedOthers) {
            if (m_workspace.runs()->info(other) == nullptr) return; // its file is still being listed
            refs.push_back(other);
        }
        m_workspace.feature<RunComparing>()->show(refs);
    } else {
        const int newest = m_workspace.runs()->info(m_wanted)->steps - 1;
        m_workspace.shown().showRun(m_wanted, m_newest ? newest : m_view.value(u"step"_s, -1).toInt());
        m_newest = false;
    }
}

// With every file listed a run is shown, if there is one.
void SessionController::answered(const QString& path)
{
    if (m_awaited.removeAll(path) == 0 || !m_awaited.isEmpty()) return;
    if (m_wanted.valid() && m_workspace.runs()->info(m_wanted) == nullptr) {
        m_wanted = {};
        m_wantedOthers.clear();
    }
    if (m_wanted.valid() || m_workspace.shown().mode() != Shown::Mode::Empty || m_workspace.runs()->refs().empty())
        return;
    m_workspace.shown().showRun(m_workspace.runs()->refs().front());
}

void SessionController::applyView()
{
    if (!m_wanted.valid() || !(m_workspace.shown().ref() == m_wanted)) return;
    const QVariantMap view = m_view;
    m_wanted = {};
    m_wantedOthers.clear();
    m_view.clear();
    if (view.contains(u"begin"_s))
        m_workspace.viewState()->setVisible({view.value(u"begin"_s).toLongLong(), view.value(u"end"_s).toLongLong()});
    if (view.contains(u"selected"_s)) {
        const QVariantMap selected = view.value(u"selected"_s).toMap();
        Note anchor;
        anchor.rank = selected.value(u"rank"_s).toInt();
        anchor.step = selected.value(u"step"_s).toInt();
        anchor.op = selected.value(u"op"_s).toString().toStdString();
        anchor.occurrence = selected.value(u"occurrence"_s).toInt();
        const int panel = selected.value(u"panel"_s).toInt();
        const auto& panels = m_workspace.views().timeline->panels();
        if (panel >= 0 && panel < static_cast<int>(panels.size())) {
            const SpanId span = spanOfNote(*panels[static_cast<std::size_t>(panel)]->timeline, anchor);
            if (span != noSpan) m_workspace.viewState()->select({panel, span});
        }
    }
    // Not if an edit can be recovered: an unchanged edit beside it would be misleading.
    if (view.value(u"mode"_s).toInt() == static_cast<int>(Shown::Mode::Edit) &&
        m_workspace.shown().mode() == Shown::Mode::Run && !m_workspace.feature<OrderEditing>()->offersRecovery())
        QTimer::singleShot(0, this, [this] { m_workspace.feature<OrderEditing>()->enterEdit(); });
}

SessionController::Stamp SessionController::stampOf(const QString& file)
{
    QFileInfo info(file);
    info.refresh();
    return info.exists() ? Stamp{info.lastModified(), info.size()} : Stamp{};
}

// `stagewright listen` writes its file again while spans come, and once more when it ends: what it received is beside
// it until then.
bool SessionController::isReceived(const QString& file)
{
    return QFileInfo::exists(file + u".received.otlp"_s) || QFileInfo::exists(file + u".received.jsonl"_s);
}

void SessionController::watchFiles()
{
    for (const QString& file : m_workspace.runs()->files()) {
        const bool own = m_workspace.library()->isSimulated(file) || m_workspace.library()->isAside(file); // a lesson's
        if (own || !QFileInfo::exists(file)) continue;
        if (!m_watcher.files().contains(file)) m_watcher.addPath(file);
        if (isReceived(file) && !m_received.contains(file)) m_received << file;
    }
    for (const QString& file : m_watcher.files())
        if (!m_workspace.runs()->hasFile(file)) m_watcher.removePath(file);
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
        if (!m_workspace.runs()->hasFile(file)) continue;
        const Stamp now = stampOf(file);
        if (now == m_stamps.value(file)) continue;
        m_stamps[file] = now;
        if (m_workspace.feature<Recording>()->isRecordingInto(file)) continue; // followed anyway
        const QString name = QFileInfo(file).fileName();
        if (now.size < 0) {
            m_workspace.banner()->showError(
                u"%1 was removed or renamed; the window shows what was read before"_s.arg(name),
                u"save a copy while it is still open"_s);
            continue;
        }
        if (m_received.contains(file)) { // followed without a question
            if (m_workspace.shown().mode() != Shown::Mode::Edit) readAgain(file);
            if (!isReceived(file)) m_received.removeAll(file);
            continue;
        }
        m_workspace.banner()->showQuestion(u"%1 was changed by another program"_s.arg(name),
                                           u"the window shows what was read before"_s, u"Read it again"_s,
                                           [this, file] { readAgain(file); });
    }
}

void SessionController::readAgain(const QString& file)
{
    for (const RunRef& ref : m_workspace.runs()->refs())
        if (ref.file == file) m_workspace.feature<NoteKeeping>()->forget(ref);
    if (m_workspace.shown().ref().file == file) {
        m_wanted = m_workspace.shown().ref();
        m_view = viewState();
        // A selection or a zoomed view keeps its step.
        m_newest = m_received.contains(file) && m_workspace.viewState()->isFitted() &&
                   !m_workspace.viewState()->selected().valid() && m_workspace.viewState()->areas().empty();
    }
    m_workspace.library()->refresh(file);
}

FeatureEntry sessionFeature() { return featureEntry<SessionController>(); }

} // namespace stagewright
