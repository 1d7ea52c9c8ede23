// The lesson's real runs, predicted against measured, and the figure that the learner saves.
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/fit/executed_run.h"
#include "traces/run/simulated_run.h"
#include "widgets/literals.h"
#include "widgets/record/record_process.h"

#include <QBuffer>
#include <QFileDialog>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QStandardPaths>
#include <QSvgRenderer>
#include <QTimer>

namespace stagewright {

void LessonController::runAsked(const QString& id)
{
    for (const lessons::Block* block : m_session->page().blocks)
        if (const auto* run = std::get_if<lessons::RunBlock>(block); run != nullptr && qs(run->id) == id) {
            m_notes.erase(run->id);
            if (auto started = m_runs->start(*m_session, *run); !started)
                m_workspace.banner()->showError(QString(), started.error());
            m_panel->setReading(m_last, state());
        }
}

// The last run of the block, in the timeline with its figures in Details.
void LessonController::openRun(const QString& block)
{
    const auto found = m_outcomes.find(block.toStdString());
    if (found == m_outcomes.end() || found->second.runs.empty()) return;
    const RunRef ref{RunLibrary::normalised(found->second.file), found->second.runs.back().second->info.id};
    showTab(false);
    if (m_workspace.runs()->info(ref) != nullptr) return m_workspace.shown().showRun(ref);
    m_workspace.library()->setAside(ref.file);
    auto once = std::make_shared<QMetaObject::Connection>();
    *once = connect(m_workspace.library(), &RunLibrary::listed, this, [this, once, ref](const QString& path) {
        if (path != ref.file) return;
        disconnect(*once);
        if (m_session && m_workspace.runs()->info(ref) != nullptr) m_workspace.shown().showRun(ref);
    });
    m_workspace.library()->open(ref.file);
}

void LessonController::runQueued()
{
    if (!m_queue.isEmpty() && m_session) runAsked(m_queue.takeFirst());
    if (m_runs->running().isEmpty()) m_queue.clear(); // it did not start, and said why
}

void LessonController::runFinished(const LessonRuns::Outcome& outcome)
{
    if (!m_session) return;
    if (m_runs->running().isEmpty() && !m_queue.isEmpty()) QTimer::singleShot(0, this, &LessonController::runQueued);
    const std::string id = outcome.block.toStdString();
    const lessons::RunBlock* block = nullptr;
    for (const lessons::RunBlock* one : m_session->lesson().all<lessons::RunBlock>())
        if (one->id == id) block = one;
    if (block == nullptr) return;
    const bool fresh = m_workspace.feature<Recording>()->process()->outputFile() == outcome.file;
    if (outcome.runs.empty() && !outcome.failure) return;
    if (outcome.failure && outcome.failure->skipped) return; // cancelled: no result
    m_outcomes[id] = outcome;
    m_notes[id] = outcome.note;
    m_session->adopt(id, outcome.runs, outcome.failure);
    if (!fresh || outcome.runs.empty() || !m_queue.isEmpty()) return; // of several, the last is compared
    // Predicted above measured: the learner's own order, or the last schedule of the block.
    const std::shared_ptr<const Run>& measured = outcome.runs.back().second;
    if (const auto again = executedRun(*measured); again && measured->costs)
        if (auto predicted = simulatedRun(again->schedule, again->costs, again->channels, again->lowering)) {
            predicted->info.name = u"%1, simulated with fitted costs"_s.arg(runTitle(measured->info)).toStdString();
            const RunRef model = m_workspace.library()->addAside(std::move(*predicted));
            const RunRef real{RunLibrary::normalised(outcome.file), measured->info.id};
            // The window shows the recording first; compare follows when it has settled.
            auto* timer = new QTimer(this);
            timer->setInterval(50);
            connect(timer, &QTimer::timeout, this, [this, timer, model, real] {
                if (!m_workspace.settled()) return;
                timer->deleteLater();
                if (m_session && m_workspace.runs()->info(real) != nullptr)
                    m_workspace.feature<RunComparing>()->show({model, real});
            });
            timer->start();
        }
    m_runs->prove(outcome.block, measured->info.ranks, measured->info.microbatches);
}

// The lesson's figure with the learner's numbers; if it can't be drawn yet, the screen content.
Result<QByteArray> LessonController::figureBytes(const QString& name, PictureKind kind, const QString& caption)
{
    std::shared_ptr<const lessons::FigureData> data;
    for (std::size_t i = 0; i < m_last.blocks.size() && i < m_session->page().blocks.size(); ++i)
        if (const auto* figure = std::get_if<lessons::Figure>(m_session->page().blocks[i]);
            figure != nullptr && qs(figure->file) == name)
            data = m_last.blocks[i].figure;
    if (!data) {
        PictureContent content = m_workspace.feature<PictureMaking>()->picture();
        if (!caption.isEmpty()) content.caption.prepend(caption);
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        return pictureBytes(content, style, kind);
    }
    lessons::FigureData captioned = *data;
    captioned.caption = caption.toStdString();
    const QByteArray svg = QByteArray::fromStdString(lessons::figureSvg(captioned));
    if (kind == PictureKind::Svg) return svg;
    QSvgRenderer drawn(svg);
    const QSize size = drawn.defaultSize();
    if (size.isEmpty())
        return tl::unexpected(Error{ErrorCode::Failed, "the figure can't be drawn as an image", "save it as SVG"});
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (kind == PictureKind::Pdf) {
        QPdfWriter writer(&buffer);
        writer.setPageSize(QPageSize(QSizeF(size) * 72.0 / 96.0, QPageSize::Point));
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        QPainter painter(&writer);
        drawn.render(&painter);
    } else {
        QImage image(size * 2, QImage::Format_RGB32);
        image.fill(Qt::white);
        QPainter painter(&image);
        drawn.render(&painter);
        painter.end();
        image.save(&buffer, "PNG");
    }
    buffer.close();
    return bytes;
}

void LessonController::keepFigure(const QString& name, const QString& format, const QString& caption)
{
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::PicturesLocation);
    const QString suggested = folder + u"/lesson-%1.%2"_s.arg(qs(m_session->lesson().id), format);
    auto* dialog = new QFileDialog(m_workspace.window(), u"Save the figure"_s, suggested,
                                   u"%1 (*.%2)"_s.arg(format.toUpper(), format));
    dialog->setObjectName(u"keepFigure"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(format);
    dialog->selectFile(suggested);
    connect(dialog, &QFileDialog::fileSelected, this, [this, name, caption](const QString& path) {
        if (!m_session) return;
        const auto kind = pictureKindOf(path);
        const auto bytes =
            kind ? figureBytes(name, *kind, caption.trimmed()) : Result<QByteArray>(tl::unexpected(kind.error()));
        if (!bytes) {
            m_workspace.banner()->showError(QString(), bytes.error());
            return;
        }
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(*bytes) != bytes->size() || !file.commit()) {
            m_workspace.banner()->showError(u"file %1: %2"_s.arg(path, file.errorString()),
                                            u"choose a writable folder"_s);
            return;
        }
        m_session->keepFigure(path.toStdString());
        m_workspace.banner()->showNote(u"Saved to %1"_s.arg(path));
    });
    dialog->open();
}

} // namespace stagewright
