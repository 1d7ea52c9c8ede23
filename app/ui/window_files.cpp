// Files: opening, remembering, saving, exporting.
#include <cmath>

#include <QBuffer>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QImage>
#include <QMenu>
#include <QMimeData>
#include <QPainter>
#include <QPdfWriter>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QSvgGenerator>

#include "widgets/background.h"
#include "app/ui/banner.h"
#include "app/ui/main_window.h"
#include "app/ui/welcome_page.h"
#include "schedules/csv.h"
#include "schedules/deadlock.h"
#include "schedules/registry.h"
#include "traces/formats/atomic_file.h"
#include "traces/formats/chrome_json.h"

namespace stagewright {
namespace {

constexpr int recentCount = 10;
constexpr qint64 mostScheduleBytes = 8 << 20; // read and simulated at once

QString suggested(const RunView& view, const char* suffix)
{
    QString name = QString::fromStdString(view.run->info.name);
    name.replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString folder = view.ref.file.startsWith(QLatin1String("sim:")) ? QString() : QFileInfo(view.ref.file).absolutePath() + QLatin1Char('/');
    return folder + name + QLatin1String(suffix);
}

} // namespace

void MainWindow::openAsked()
{
    const QSettings settings;
    const QString folder = recentFiles().isEmpty() ? QString() : QFileInfo(recentFiles().first()).absolutePath();
    const QStringList paths = QFileDialog::getOpenFileNames(this, tr("Open"), folder, tr("Runs and schedules (*.stagewright *.csv);;All files (*)"));
    if (!paths.isEmpty()) openFiles(paths);
}

void MainWindow::openFiles(const QStringList& paths)
{
    m_banner->clear();
    for (const QString& given : paths) {
        const QString path = RunLibrary::normalised(given);
        if (path.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) {
            openSchedule(path);
            continue;
        }
        if (!m_openFirst.contains(path)) m_openFirst << path;
        m_pending = m_pending || m_mode == Mode::Empty;
        m_library->open(path);
    }
    refreshStatus();
}

void MainWindow::fileListed(const QString& path, const std::vector<RunRef>& refs)
{
    const bool wanted = m_openFirst.removeAll(path) > 0;
    if (wanted) remember(path);
    m_runsPanel->setVisible((*m_actions)[ActionId::RunsList]->isChecked() && runs()->rowCount() > 0);
    refreshActions();
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

void MainWindow::openSchedule(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        m_banner->showError(tr("file %1: %2").arg(path, file.errorString()), tr("choose a schedule CSV that can be read"));
        return;
    }
    const QByteArray bytes = file.read(mostScheduleBytes + 1);
    if (bytes.size() > mostScheduleBytes || bytes.contains('\0')) {
        m_banner->showError(bytes.contains('\0') ? tr("file %1: byte %2 is zero, which no text holds").arg(QFileInfo(path).fileName()).arg(bytes.indexOf('\0'))
                                                 : tr("file %1: more than %L2 bytes, which is too large for a schedule CSV here").arg(QFileInfo(path).fileName()).arg(mostScheduleBytes),
                            tr("choose a schedule CSV; stagewright validate reads larger ones"));
        return;
    }
    auto schedule = readScheduleCsv(bytes.toStdString(), {}, QFileInfo(path).completeBaseName().toStdString());
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
        if (const auto stuck = explainDeadlock(schedule); stuck && stuck->hung()) {
            showDeadlock(std::make_shared<const Schedule>(schedule), {}, [this, path](const Schedule& fixed) { openOrder(fixed, path); });
            m_banner->showError(tr("file %1: this order never ends").arg(QFileInfo(path).fileName()), tr("apply the change on offer, or mend the file"));
            return;
        }
        m_banner->showError(tr("file %1").arg(QFileInfo(path).fileName()), run.error());
        return;
    }
    if (const std::string known = recognise(schedule); !known.empty()) run->info.scheduleName = known;
    remember(path);
    showRun(m_library->addSimulated(std::move(*run)));
}

QStringList MainWindow::recentFiles() const
{
    QStringList files = QSettings().value(QStringLiteral("files/recent")).toStringList();
    files.erase(std::remove_if(files.begin(), files.end(), [](const QString& file) { return !QFileInfo::exists(file); }), files.end());
    return files;
}

void MainWindow::remember(const QString& path)
{
    QStringList files = recentFiles();
    files.removeAll(path);
    files.prepend(path);
    QSettings().setValue(QStringLiteral("files/recent"), QStringList(files.mid(0, recentCount)));
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
        exportCsvAsked();
        return;
    }
    if (!m_shown) return;
    const QString from = m_shown->ref.file;
    QString path = QFileDialog::getSaveFileName(this, tr("Save a copy of %1").arg(QFileInfo(from).fileName()), {}, tr("Run files (*.stagewright)"));
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += QStringLiteral(".stagewright");
    if (RunLibrary::normalised(path) == from) {
        m_banner->showError(tr("a copy can't replace the file it is made of"), tr("choose another name"));
        return;
    }
    m_library->saveCopy(from, path, [this, path](Result<void> done) {
        if (!done)
            m_banner->showError(tr("could not save"), done.error());
        else
            statusBar()->showMessage(tr("Saved %1").arg(path), 6000);
    });
}

void MainWindow::exportPictureAsked()
{
    if (!m_shown) return;
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the picture"), suggested(*m_shown, ".png"), tr("Pictures (*.png *.svg *.pdf)"));
    if (path.isEmpty()) return;
    auto done = exportPicture(path);
    if (!done)
        m_banner->showError(tr("could not export"), done.error());
    else
        statusBar()->showMessage(tr("Wrote %1").arg(path), 6000);
}

void MainWindow::exportChromeAsked()
{
    if (!m_shown) return;
    const QString path = QFileDialog::getSaveFileName(this, tr("Export Chrome JSON"), suggested(*m_shown, ".json"), tr("Chrome JSON (*.json)"));
    if (path.isEmpty()) return;
    inBackground(
        this, [run = m_shown->run, path] { return writeChromeJsonFile(*run, path.toStdString()); },
        [this, path](Result<ChromeCounts> counts) {
            if (!counts)
                m_banner->showError(tr("could not export"), counts.error());
            else
                statusBar()->showMessage(tr("Wrote %1: %2 spans, %3 flows, %4 counter samples").arg(path).arg(counts->spans).arg(counts->flows).arg(counts->counterSamples), 8000);
        });
}

void MainWindow::exportCsvAsked()
{
    if (!m_shown) return;
    Result<Schedule> schedule = m_mode == Mode::Edit ? Result<Schedule>(m_editor->schedule()) : scheduleOfRun(*m_shown->run);
    Result<std::string> text = schedule ? writeScheduleCsv(*schedule) : Result<std::string>(tl::unexpected(schedule.error()));
    if (!text) {
        m_banner->showError(tr("could not export"), text.error());
        return;
    }
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the schedule"), suggested(*m_shown, m_mode == Mode::Edit ? "-edited.csv" : ".csv"), tr("Schedule CSV (*.csv)"));
    if (path.isEmpty()) return;
    if (auto done = writeFileAtomically(path.toStdString(), *text); !done)
        m_banner->showError(tr("could not export"), done.error());
    else
        statusBar()->showMessage(tr("Wrote %1").arg(path), 6000);
}

QString MainWindow::captionText() const
{
    if (!m_shown) return {};
    auto one = [](const RunView& view) {
        const RunInfo& info = view.run->info;
        return tr("%1, %2 ranks × %3 microbatches, step %4 of %5: %6, bubble %7; %8")
            .arg(scheduleTitle(info.scheduleName)).arg(info.ranks).arg(info.microbatches).arg(view.step + 1).arg(std::max(1, info.steps))
            .arg(durationText(view.figures->bubbles.makespan(), view.panel->units), percentText(view.figures->bubbles.bubbleFraction), provenanceText(info));
    };
    if (m_mode == Mode::Compare && m_other) return tr("A: %1\nB: %2").arg(one(*m_shown), one(*m_other));
    if (m_mode == Mode::Edit)
        return tr("%1, edited: %2, bubble %3; simulated with the costs of the run").arg(scheduleTitle(m_shown->run->info.scheduleName),
                   durationText(m_editor->figures().makespan, {m_editor->costs().timeUnit, m_editor->costs().memoryUnit}), percentText(m_editor->figures().bubbleFraction));
    return one(*m_shown);
}

namespace {

constexpr double legendHeight = 28;

double captionHeight(const QString& caption)
{
    return 14 + 16.0 * (1 + caption.count(QLatin1Char('\n')));
}

} // namespace

// As in the window; without the memory no higher than the rows are.
QSizeF MainWindow::pictureSize(bool captioned) const
{
    const double room = std::max(240, m_pages->height());
    if ((*m_actions)[ActionId::Memory]->isChecked()) return {static_cast<double>(m_timeline->width()), room};
    const double rows = m_timeline->contentHeight() + legendHeight + (captioned ? captionHeight(captionText()) : 0);
    return {static_cast<double>(m_timeline->width()), std::ceil(std::min(room, rows))};
}

void MainWindow::paintPicture(QPainter& painter, const QRectF& rect, bool captioned) const
{
    const Theme& t = *m_theme;
    painter.fillRect(rect, t.canvas);
    double top = rect.top();
    if (captioned) {
        const QString caption = captionText();
        const double height = captionHeight(caption);
        painter.setFont(fontOf(FontRole::Body));
        painter.setPen(t.secondary);
        painter.drawText(QRectF(rect.left() + 14, top, rect.width() - 28, height), Qt::AlignVCenter | Qt::AlignLeft, caption);
        top += height;
    }
    const double below = rect.bottom() - legendHeight - top;
    const bool memory = (*m_actions)[ActionId::Memory]->isChecked();
    const double timeline = memory ? std::min<double>(m_timeline->height(), below * 0.62) : below;
    m_timeline->paintTo(painter, QRectF(rect.left(), top, rect.width(), timeline), t);
    if (memory) {
        painter.fillRect(QRectF(rect.left(), top + timeline, rect.width(), 1), t.separator);
        m_memory->paintTo(painter, QRectF(rect.left(), top + timeline + 1, rect.width(), below - timeline - 1), t);
    }
    m_legend->paintTo(painter, QRectF(rect.left(), rect.bottom() - legendHeight, rect.width(), legendHeight), t);
}

QImage MainWindow::renderPicture(double scale, bool captioned) const
{
    const QSizeF size = pictureSize(captioned);
    QImage image((size * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(scale);
    image.fill(m_theme->canvas);
    QPainter painter(&image);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    paintPicture(painter, QRectF(QPointF(), size), captioned);
    return image;
}

Result<void> MainWindow::exportPicture(const QString& path, bool captioned)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    const QSizeF size = pictureSize(captioned);
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (suffix == QLatin1String("svg")) {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setSize(size.toSize());
        generator.setViewBox(QRectF(QPointF(), size));
        generator.setTitle(captionText());
        QPainter painter(&generator);
        paintPicture(painter, QRectF(QPointF(), size), captioned);
    } else if (suffix == QLatin1String("pdf")) {
        QPdfWriter writer(&buffer);
        writer.setTitle(captionText());
        writer.setResolution(96);
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        writer.setPageSize(QPageSize(size * 72.0 / 96.0, QPageSize::Point, QString(), QPageSize::ExactMatch));
        QPainter painter(&writer);
        paintPicture(painter, QRectF(QPointF(), size), captioned);
    } else if (suffix == QLatin1String("png")) {
        if (!renderPicture(2, captioned).save(&buffer, "PNG"))
            return fail(ErrorCode::Failed, "file " + path.toStdString() + ": the picture could not be encoded");
    } else {
        return fail(ErrorCode::Usage, "file " + path.toStdString() + ": unknown kind of picture", "use the suffix .png, .svg or .pdf");
    }
    buffer.close();
    return writeFileAtomically(path.toStdString(), std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
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
    if (!paths.isEmpty()) openFiles(paths);
    event->acceptProposedAction();
}

} // namespace stagewright
