// Files: opening, remembering, saving.
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMimeData>
#include <QSettings>
#include <QStatusBar>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/exchange/import_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/shell/welcome_page.h"
#include "schedules/execute/deadlock.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "traces/run/simulated_run.h"
#include "widgets/library/block_editor.h"

namespace stagewright {
namespace {

constexpr qint64 mostScheduleBytes = 8 << 20; // read and simulated at once

// By its suffix or its first word.
bool isBlock(const QString& path)
{
    if (path.endsWith(QLatin1String(".block"), Qt::CaseInsensitive)) return true;
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && file.read(6) == "block ";
}

} // namespace

void MainWindow::openAsked()
{
    QString folder = PreferenceStore::instance().value().folder;
    if (folder.isEmpty() && !recentFiles().isEmpty()) folder = QFileInfo(recentFiles().first()).absolutePath();
    const QStringList paths = QFileDialog::getOpenFileNames(this, tr("Open"), folder, tr("Runs, schedules, lessons and traces (*.stagewright *.csv *.block *.md *.json *.gz *.sqlite);;All files (*)"));
    if (!paths.isEmpty()) openFiles(paths);
}

void MainWindow::openFiles(const QStringList& paths)
{
    m_banner->clear();
    QStringList traces;
    for (const QString& given : paths) {
        const QString path = RunLibrary::normalised(given);
        if (isTrace(path)) {
            traces << path;
            continue;
        }
        if (path.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) {
            openSchedule(path);
            continue;
        }
        if (path.endsWith(QLatin1String(".md"), Qt::CaseInsensitive)) {
            m_lessons->openFile(path);
            continue;
        }
        if (isBlock(path)) {
            openBlock(path);
            continue;
        }
        if (!m_openFirst.contains(path)) m_openFirst << path;
        m_pending = m_pending || m_mode == Mode::Empty;
        m_library->open(path);
    }
    if (!traces.isEmpty()) m_import->open(traces);
    refreshStatus();
}

void MainWindow::fileListed(const QString& path, const std::vector<RunRef>& refs)
{
    const bool wanted = m_openFirst.removeAll(path) > 0;
    if (wanted) remember(path);
    m_runsPanel->setVisible((*m_actions)[ActionId::RunsList]->isChecked() && runs()->rowCount() > 0);
    refreshActions();
    m_welcome->setRunsListed(!runs()->refs().empty());
    if (path == m_recordFile && m_process->running()) followRecording(refs);
    if (!wanted) return;
    if (m_shown && m_openFirst.isEmpty() && m_mode != Mode::Empty && m_shown->ref.file != path && refs.empty()) return;
    if (refs.empty()) {
        m_pending = false;
        m_welcome->setMessage(tr("%1 holds no runs yet. Record one into it, or open another file.").arg(QFileInfo(path).fileName()));
        refreshStatus();
        return;
    }
    // Of several files opened at once the first that has runs is shown.
    if (m_mode == Mode::Empty || m_openFirst.isEmpty() || !m_shown) showRun(refs.front());
}

// The text of a schedule or a building block; none: the banner says why.
std::optional<QByteArray> MainWindow::readText(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        m_banner->showError(tr("file %1: %2").arg(path, file.errorString()), tr("choose a readable file"));
        return std::nullopt;
    }
    const QByteArray bytes = file.read(mostScheduleBytes + 1);
    if (bytes.size() > mostScheduleBytes || bytes.contains('\0')) {
        m_banner->showError(bytes.contains('\0') ? tr("file %1: byte %2 is zero, so it is not a text file").arg(QFileInfo(path).fileName()).arg(bytes.indexOf('\0'))
                                                 : tr("file %1: more than %L2 bytes, too large for a schedule here").arg(QFileInfo(path).fileName()).arg(mostScheduleBytes),
                            tr("choose a schedule CSV or a building block; stagewright validate reads larger ones"));
        return std::nullopt;
    }
    return bytes;
}

void MainWindow::openBlock(const QString& path)
{
    const auto text = readText(path);
    if (!text) return;
    auto block = parseBlock(text->toStdString());
    if (!block) {
        m_banner->showError(tr("file %1").arg(QFileInfo(path).fileName()), block.error());
        return;
    }
    remember(path);
    openBlockEditor()->setBlock(*block);
}

void MainWindow::openSchedule(const QString& path)
{
    const auto bytes = readText(path);
    if (!bytes) return;
    auto schedule = readScheduleCsv(bytes->toStdString(), {}, QFileInfo(path).completeBaseName().toStdString());
    if (!schedule) {
        m_banner->showError(tr("file %1").arg(QFileInfo(path).fileName()), schedule.error());
        return;
    }
    openOrder(*schedule, path);
}

void MainWindow::openOrder(const Schedule& schedule, const QString& path)
{
    auto run = simulatedRun(schedule, CostModel::uniform(schedule));
    if (!run) {
        if (m_edit->editIncomplete(schedule)) {
            remember(path);
            m_session->openedSchedule(path);
            return;
        }
        if (const auto stuck = explainDeadlock(schedule); stuck && stuck->hung()) {
            showDeadlock(std::make_shared<const Schedule>(schedule), {}, [this, path](const Schedule& fixed) { openOrder(fixed, path); });
            m_banner->showError(tr("file %1: this order never ends").arg(QFileInfo(path).fileName()), tr("apply the suggested change, or fix the file"));
            return;
        }
        m_banner->showError(tr("file %1").arg(QFileInfo(path).fileName()), run.error());
        return;
    }
    if (const std::string known = recognise(schedule); !known.empty()) run->info.scheduleName = known;
    remember(path);
    m_session->openedSchedule(path);
    showRun(m_library->addSimulated(std::move(*run)));
}

QStringList MainWindow::recentFiles() const
{
    QStringList files = QSettings().value(QStringLiteral("files/recent")).toStringList().mid(0, PreferenceStore::instance().value().recentFiles);
    files.erase(std::remove_if(files.begin(), files.end(), [](const QString& file) { return !QFileInfo::exists(file); }), files.end());
    return files;
}

void MainWindow::remember(const QString& path)
{
    QStringList files = recentFiles();
    files.removeAll(path);
    files.prepend(path);
    QSettings().setValue(QStringLiteral("files/recent"), QStringList(files.mid(0, PreferenceStore::instance().value().recentFiles)));
    refreshRecent();
}

void MainWindow::refreshRecent()
{
    const QStringList files = recentFiles();
    m_recentMenu->clear();
    m_recentMenu->setEnabled(!files.isEmpty());
    for (const QString& file : files) {
        QAction* action = m_recentMenu->addAction(QFileInfo(file).fileName(), this, [this, file] { openFiles({file}); });
        action->setToolTip(file);
        action->setStatusTip(file);
    }
    m_welcome->setRecent(files);
}

void MainWindow::saveCopyAsked()
{
    if (m_mode == Mode::Edit) {
        (*m_actions)[ActionId::ExportCsv]->trigger();
        return;
    }
    if (!m_shown) return;
    const QString from = m_shown->ref.file;
    QString path = QFileDialog::getSaveFileName(this, tr("Save a copy of %1").arg(QFileInfo(from).fileName()), {}, tr("Run files (*.stagewright)"));
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += QStringLiteral(".stagewright");
    if (RunLibrary::normalised(path) == from) {
        m_banner->showRefusal(tr("a copy can't replace its own original"), tr("choose another name"));
        return;
    }
    m_library->saveCopy(from, path, [this, path](Result<void> done) {
        if (!done)
            m_banner->showError(tr("could not save"), done.error());
        else
            statusBar()->showMessage(tr("Saved %1").arg(path), 6000);
    });
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    QStringList paths;
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) paths << url.toLocalFile();
    // Several files dropped at once are one job; files that are not traces are opened.
    QStringList traces;
    for (const QString& path : paths)
        if (isTrace(path) || path.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) traces << RunLibrary::normalised(path);
    paths.erase(std::remove_if(paths.begin(), paths.end(), [&](const QString& path) { return traces.contains(RunLibrary::normalised(path)); }), paths.end());
    if (!paths.isEmpty()) openFiles(paths);
    if (!traces.isEmpty()) m_import->open(traces);
    event->acceptProposedAction();
}

} // namespace stagewright
