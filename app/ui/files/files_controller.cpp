#include "app/ui/files/files_controller.h"

#include <algorithm>
#include <cstring>

#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QSettings>
#include <QStackedWidget>

#include "app/ui/files/first_look.h"
#include "app/ui/files/welcome_page.h"
#include "app/ui/workspace/deadlock.h"
#include "app/ui/workspace/settings_change.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/execute/deadlock.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "traces/format/format_registry.h"
#include "traces/run/simulated_run.h"
#include "widgets/import/import_dialog.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {
namespace {

constexpr qint64 mostScheduleBytes = 8 << 20; // read and simulated at once

// By its suffix or its first word.
bool isBlock(const QString& path)
{
    if (path.endsWith(".block"_L1, Qt::CaseInsensitive)) return true;
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && file.read(6) == "block ";
}

// What the dialog offers: run files, building blocks, lessons, and every format that is read, packed ones too.
QString openedPatterns()
{
    return (QStringList{u"*.stagewright"_s, u"*.block"_s, u"*.md"_s} + readPatterns()).join(u' ');
}

} // namespace

std::vector<ActionEntry> FilesController::actionTable()
{
    return {
        item("open", ActionGroup::FileOpen, u"&Open…"_s, "Ctrl+O",
             u"Opens run files (.stagewright), traces, schedules, building blocks and lessons"_s,
             {.button = u"Open…"_s, .tool = 11}),
        item("openRecent", ActionGroup::FileKeep, u"Open &recent"_s, {}, u"Recently opened files"_s),
        item("firstLook", ActionGroup::HelpKeys, u"Look at recorded &runs"_s, {},
             u"Opens three runs that ship with the program: GPipe, 1F1B and ZB-H1 on four ranks"_s,
             {.at = 20, .line = true, .needs = Needs::Nothing}),
        item("saveCopy", ActionGroup::FileKeep, u"&Save a copy…"_s, "Ctrl+S",
             u"Writes this file's runs to another file, or an edited order to a CSV"_s),
        item("closeFile", ActionGroup::FileKeep, u"&Close file"_s, "Ctrl+W",
             u"Removes this file from the list; nothing on disk changes"_s),
    };
}

FilesController::FilesController(Workspace& workspace)
    : Feature(workspace), m_welcome(new WelcomePage(workspace.room().pages()))
{
    const auto on = [&](ActionId id, auto slot) { connect(workspace.actions()[id], &QAction::triggered, this, slot); };
    on("open", [this] { openAsked(); });
    on("saveCopy", [this] { saveCopyAsked(); });
    on("closeFile", [this] {
        if (const RunRef ref = m_workspace.shown().ref(); ref.valid()) closeFile(ref.file);
    });
    connect(workspace.library(), &RunLibrary::listed, this, &FilesController::fileListed);
    connect(workspace.library(), &RunLibrary::failed, this, &FilesController::fileFailed);
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        for (const ActionId id : {"saveCopy", "closeFile"})
            m_workspace.actions()[id]->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty);
    });
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, &FilesController::refreshRecent);
    const auto count = [this] { m_welcome->setRunsListed(!m_workspace.runs()->refs().empty()); };
    connect(&workspace.shown(), &Shown::modeChanging, this, [this, count] {
        if (m_workspace.shown().mode() != Shown::Mode::Empty) return;
        m_welcome->setRecent(recentFiles());
        count();
    });
    connect(workspace.runs(), &QAbstractItemModel::rowsRemoved, this, count); // a lesson's go with it
    connect(workspace.runs(), &QAbstractItemModel::modelReset, this, count);
    Actions& actions = workspace.actions();
    connect(m_welcome, &WelcomePage::recordAsked, actions["record"], &QAction::trigger);
    connect(m_welcome, &WelcomePage::lessonsAsked, actions["lessons"], &QAction::trigger);
    connect(m_welcome, &WelcomePage::newAsked, actions["newSchedule"], &QAction::trigger);
    connect(m_welcome, &WelcomePage::openAsked, this, &FilesController::openAsked);
    connect(m_welcome, &WelcomePage::lookAsked, actions["firstLook"], &QAction::trigger);
    connect(actions["firstLook"], &QAction::triggered, this, [this] {
        if (const auto path = firstLookFile())
            openFiles({*path});
        else
            m_workspace.banner()->showError(QString(), path.error());
    });
    connect(m_welcome, &WelcomePage::fileChosen, this, [this](const QString& path) { openFiles({path}); });
    refreshRecent();
}

FeatureParts FilesController::parts() { return {.firstPage = m_welcome}; }

void FilesController::await(const QString& path, bool awaited)
{
    m_openFirst.removeAll(path);
    if (awaited) m_openFirst << path;
    m_workspace.shown().awaitFiles(!m_openFirst.isEmpty());
}

void FilesController::closeFile(const QString& path)
{
    Shown& shown = m_workspace.shown();
    if (!shown.view() || (shown.ref().file != path && !(shown.other() && shown.other()->ref.file == path))) {
        m_workspace.library()->close(path);
        return;
    }
    emit shown.replacing();
    shown.drop();
    m_workspace.library()->close(path);
    shown.forget();
    const auto rest = m_workspace.runs()->refs();
    if (rest.empty())
        shown.showNothing();
    else
        shown.showRun(rest.front());
}

void FilesController::openAsked()
{
    QString folder = PreferenceStore::instance().value().folder;
    if (folder.isEmpty() && !recentFiles().isEmpty()) folder = QFileInfo(recentFiles().first()).absolutePath();
    const QStringList paths = QFileDialog::getOpenFileNames(
        m_workspace.window(), u"Open"_s, folder,
        u"Runs, schedules, lessons and traces (%1);;All files (*)"_s.arg(openedPatterns()));
    if (!paths.isEmpty()) openFiles(paths);
}

void FilesController::openFiles(const QStringList& paths)
{
    m_workspace.banner()->clear();
    QStringList traces;
    for (const QString& given : paths) {
        const QString path = RunLibrary::normalised(given);
        if (isTrace(path)) {
            traces << path;
            continue;
        }
        if (holdsOrder(path.toStdString())) {
            openSchedule(path);
            continue;
        }
        if (path.endsWith(".md"_L1, Qt::CaseInsensitive)) {
            m_workspace.feature<LessonOpening>()->openFile(path);
            continue;
        }
        if (isBlock(path)) {
            openBlock(path);
            continue;
        }
        if (!m_openFirst.contains(path)) await(path, true);
        if (m_workspace.shown().mode() == Shown::Mode::Empty) m_workspace.shown().setPending(true);
        m_workspace.library()->open(path);
    }
    if (!traces.isEmpty()) m_workspace.feature<TraceImporting>()->openTraces(traces);
    m_workspace.refreshCaptions();
}

void FilesController::fileListed(const QString& path, const std::vector<RunRef>& refs)
{
    const bool wanted = m_openFirst.contains(path);
    await(path, false);
    if (wanted) remember(path);
    m_workspace.refreshActions();
    m_welcome->setRunsListed(!m_workspace.runs()->refs().empty());
    if (!wanted) return;
    if (m_workspace.shown().view() && m_openFirst.isEmpty() && m_workspace.shown().mode() != Shown::Mode::Empty &&
        m_workspace.shown().view()->ref.file != path && refs.empty())
        return;
    if (refs.empty()) {
        m_workspace.shown().setPending(false);
        m_welcome->setMessage(
            u"%1 holds no runs yet. Record one into it, or open another file."_s.arg(QFileInfo(path).fileName()));
        if (const QString remark = m_workspace.library()->takeRemark(path); !remark.isEmpty())
            m_workspace.banner()->showNote(remark);
        m_workspace.refreshCaptions();
        return;
    }
    // Several files may be opened at once: the first that has runs is shown.
    if (m_workspace.shown().mode() == Shown::Mode::Empty || m_openFirst.isEmpty() || !m_workspace.shown().view())
        m_workspace.shown().showRun(refs.front());
}

// The text of a schedule or a building block; none: the banner says why.
std::optional<QByteArray> FilesController::readText(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        m_workspace.banner()->showError(u"file %1: %2"_s.arg(path, file.errorString()), u"choose a readable file"_s);
        return std::nullopt;
    }
    QByteArray bytes = file.read(mostScheduleBytes + 1);
    if (bytes.size() <= mostScheduleBytes && !bytes.contains('\0')) return bytes;
    refuseText(path, bytes.indexOf('\0'));
    return std::nullopt;
}

// zero: the place of a byte that no text has; −1: the file is too large.
void FilesController::refuseText(const QString& path, qint64 zero)
{
    m_workspace.banner()->showError(
        zero >= 0 ? u"file %1: byte %2 is zero, so it is not a text file"_s.arg(QFileInfo(path).fileName()).arg(zero)
                  : u"file %1: more than %L2 bytes, too large for a schedule here"_s.arg(QFileInfo(path).fileName())
                        .arg(mostScheduleBytes),
        u"choose a schedule CSV or a building block; stagewright validate reads larger ones"_s);
}

void FilesController::openBlock(const QString& path)
{
    const auto text = readText(path);
    if (!text) return;
    auto block = parseBlock(text->toStdString());
    if (!block) {
        m_workspace.banner()->showError(u"file %1"_s.arg(QFileInfo(path).fileName()), block.error());
        return;
    }
    remember(path);
    m_workspace.feature<LibraryOpening>()->openBlock(*block);
}

void FilesController::openSchedule(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        m_workspace.banner()->showError(u"file %1: %2"_s.arg(path, file.errorString()), u"choose a readable file"_s);
        return;
    }
    qint64 bytes = 0, zero = -1; // so far; of a byte that no text has
    const auto part = [&](char* to, std::size_t size) -> std::size_t {
        if (bytes > mostScheduleBytes || zero >= 0) return 0;
        const qint64 got = std::max<qint64>(0, file.read(to, static_cast<qint64>(size)));
        if (const void* found = std::memchr(to, 0, static_cast<std::size_t>(got)))
            zero = bytes + (static_cast<const char*>(found) - to);
        bytes += got;
        return zero >= 0 || bytes > mostScheduleBytes ? 0 : static_cast<std::size_t>(got);
    };
    auto schedule = readScheduleCsv(part, {}, QFileInfo(path).completeBaseName().toStdString());
    if (zero >= 0 || bytes > mostScheduleBytes) return refuseText(path, zero);
    if (!schedule) {
        m_workspace.banner()->showError(u"file %1"_s.arg(QFileInfo(path).fileName()), schedule.error());
        return;
    }
    openOrder(*schedule, path);
}

void FilesController::openOrder(const Schedule& schedule, const QString& path)
{
    auto run = simulatedRun(schedule, CostModel::uniform(schedule));
    if (!run) {
        if (m_workspace.feature<OrderEditing>()->editIncomplete(schedule)) {
            remember(path);
            emit m_workspace.scheduleOpened(path);
            return;
        }
        if (const auto stuck = explainDeadlock(schedule); stuck && stuck->hung()) {
            showDeadlock(m_workspace, std::make_shared<const Schedule>(schedule), {},
                         [this, path](const Schedule& fixed) { openOrder(fixed, path); });
            m_workspace.banner()->showError(u"file %1: this order hangs"_s.arg(QFileInfo(path).fileName()),
                                            u"apply the suggested change, or fix the file"_s);
            return;
        }
        m_workspace.banner()->showError(u"file %1"_s.arg(QFileInfo(path).fileName()), run.error());
        return;
    }
    if (const std::string known = recognise(schedule); !known.empty()) run->info.scheduleName = known;
    remember(path);
    emit m_workspace.scheduleOpened(path);
    m_workspace.shown().showRun(m_workspace.library()->addSimulated(std::move(*run)));
}

QStringList FilesController::recentFiles() const
{
    QStringList files =
        QSettings().value(u"files/recent"_s).toStringList().mid(0, PreferenceStore::instance().value().recentFiles);
    files.erase(
        std::remove_if(files.begin(), files.end(), [](const QString& file) { return !QFileInfo::exists(file); }),
        files.end());
    return files;
}

void FilesController::remember(const QString& path)
{
    changeSettings([&](QSettings& settings) {
        QStringList files = recentFiles();
        files.removeAll(path);
        files.prepend(path);
        settings.setValue(u"files/recent"_s,
                          QStringList(files.mid(0, PreferenceStore::instance().value().recentFiles)));
    });
    refreshRecent();
}

void FilesController::refreshRecent()
{
    const QStringList files = recentFiles();
    QMenu* menu = m_workspace.room().menu(MenuId::Recent);
    menu->clear();
    menu->setEnabled(!files.isEmpty());
    for (const QString& file : files) {
        QAction* action = menu->addAction(QFileInfo(file).fileName(), this, [this, file] { openFiles({file}); });
        action->setToolTip(file);
        action->setStatusTip(file);
    }
    m_welcome->setRecent(files);
}

void FilesController::saveCopyAsked()
{
    if (m_workspace.shown().mode() == Shown::Mode::Edit) {
        m_workspace.feature<OrderExporting>()->exportOrder();
        return;
    }
    if (!m_workspace.shown().view()) return;
    const QString from = m_workspace.shown().ref().file;
    QString path =
        QFileDialog::getSaveFileName(m_workspace.window(), u"Save a copy of %1"_s.arg(QFileInfo(from).fileName()), {},
                                     u"Run files (*.stagewright)"_s);
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += u".stagewright"_s;
    if (RunLibrary::normalised(path) == from) {
        m_workspace.banner()->showRefusal(u"a copy can't replace its own original"_s, u"choose another name"_s);
        return;
    }
    m_workspace.library()->saveCopy(from, path, [this, path](Result<void> done) {
        if (!done)
            m_workspace.banner()->showError(u"could not save"_s, done.error());
        else
            m_workspace.room().tell(u"Saved %1"_s.arg(path), 6000);
    });
}

void FilesController::openDropped(QStringList paths)
{
    QStringList traces;
    for (const QString& path : paths)
        if (isTrace(path) || holdsOrder(path.toStdString())) traces << RunLibrary::normalised(path);
    paths.erase(std::remove_if(paths.begin(), paths.end(),
                               [&](const QString& path) { return traces.contains(RunLibrary::normalised(path)); }),
                paths.end());
    if (!paths.isEmpty()) openFiles(paths);
    if (!traces.isEmpty()) m_workspace.feature<TraceImporting>()->openTraces(traces);
}

void FilesController::fileFailed(const QString& path, const Error& error)
{
    await(path, false);
    Shown& shown = m_workspace.shown();
    if (shown.mode() == Shown::Mode::Empty && m_openFirst.isEmpty()) shown.setPending(false);
    const auto* recording = m_workspace.feature<Recording>();
    if (recording != nullptr && recording->awaits(path)) return; // the child has not created it yet
    m_workspace.banner()->showError(QString(), error);
    if (m_workspace.runs()->refs().empty() && shown.mode() == Shown::Mode::Empty) m_workspace.library()->close(path);
    m_workspace.refreshCaptions();
}

FeatureEntry filesFeature() { return featureEntry<FilesController>(); }

} // namespace stagewright
