#include "app/ui/exchange/export_controller.h"

#include <cmath>

#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QStackedWidget>
#include <QStatusBar>

#include "app/ui/version.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/export/html_report.h"
#include "traces/format/atomic_file.h"
#include "widgets/background.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/export_dialog.h"
#include "widgets/memory/memory_view.h"
#include "widgets/numbers.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr double chartHeight = 84, chartsHeader = 40; // of the memory, at most

QString suggested(const RunView& view, const QString& suffix)
{
    QString name = QString::fromStdString(view.run->info.name);
    name.replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString folder = view.ref.file.startsWith(QLatin1String("sim:"))
                               ? QString()
                               : QFileInfo(view.ref.file).absolutePath() + QLatin1Char('/');
    return folder + name + QLatin1Char('.') + suffix;
}

QString costsText(const Run& run)
{
    const QString origin = run.costs ? QString::fromStdString(run.costs->origin) : QString();
    if (run.info.provenance == Provenance::Simulated)
        return origin.isEmpty() ? ExportController::tr("costs from a cost model")
                                : ExportController::tr("costs: %1").arg(origin);
    return ExportController::tr("costs: as measured");
}

QString sourceText(const RunView& view, bool withTime = false)
{
    const RunInfo& info = view.run->info;
    if (view.ref.file.startsWith(QLatin1String("sim:"))) return ExportController::tr("not stored");
    QString text = ExportController::tr("%1, run %2").arg(QFileInfo(view.ref.file).fileName()).arg(info.id);
    if (withTime && info.createdUnixMs > 0)
        text += ExportController::tr(" of %1").arg(QDateTime::fromMSecsSinceEpoch(info.createdUnixMs, Qt::UTC)
                                                       .toString(QStringLiteral("yyyy-MM-dd hh:mm 'UTC'")));
    return text;
}

} // namespace

std::vector<ActionEntry> ExportController::actionTable()
{
    return {
        {.id = "exportPicture",
         .group = ActionGroup::FileExport,
         .at = 0,
         .text = tr("Export &picture…"),
         .button = tr("Export…"),
         .keys = "Ctrl+E",
         .tool = 42,
         .tooltip = tr("Timeline and memory with a caption, as PNG, SVG or PDF")},
        {.id = "exportReport",
         .group = ActionGroup::FileExport,
         .at = 0,
         .text = tr("Export &report…"),
         .keys = "Ctrl+Alt+E",
         .tooltip = tr("The run or the comparison as one self-contained HTML page")},
        {.id = "copyTable",
         .group = ActionGroup::EditCopy,
         .text = tr("&Copy table as CSV"),
         .keys = "Ctrl+C",
         .tooltip = tr("Copies the focused table, or else the figures at the right, to the clipboard")},
        {.id = "copyMarkdown",
         .group = ActionGroup::EditCopy,
         .text = tr("Copy table as &Markdown"),
         .keys = "Ctrl+Shift+C",
         .tooltip = tr("The same, as a Markdown table")},
    };
}

ExportController::ExportController(Workspace& workspace) : Feature(workspace)
{
    Actions& a = workspace.actions();
    connect(a["exportPicture"], &QAction::triggered, this, &ExportController::openDialog);
    connect(a["exportReport"], &QAction::triggered, this, &ExportController::exportReport);
    connect(a["copyTable"], &QAction::triggered, this, [this] { copy(TableFormat::Csv); });
    connect(a["copyMarkdown"], &QAction::triggered, this, [this] { copy(TableFormat::Markdown); });
    connect(&workspace.shown(), &Shown::modeChanged, this, &ExportController::refresh);
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        m_workspace.actions()["exportPicture"]->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty);
    });
    refresh();
}

// In edit mode Ctrl+C copies ops.
void ExportController::refresh()
{
    const bool tables =
        m_workspace.shown().mode() != Shown::Mode::Empty && m_workspace.shown().mode() != Shown::Mode::Edit;
    for (const ActionId id : {"copyTable", "copyMarkdown"}) m_workspace.actions()[id]->setEnabled(tables);
    const auto shown = m_workspace.shown().view();
    m_workspace.actions()["exportReport"]->setEnabled(tables && shown && !shown->partial && !shown->excerpt);
    if (m_dialog) m_dialog->close(); // its picture is of what was shown
}

QString ExportController::titleOf(const RunView& view) const
{
    const RunInfo& info = view.run->info;
    const QString schedule = scheduleTitle(info.scheduleName), name = runTitle(info);
    const QString shape = tr("%1 × %2").arg(countText(info.ranks, tr("1 rank"), tr("%L1 ranks")),
                                            countText(info.microbatches, tr("1 microbatch"), tr("%L1 microbatches")));
    return name == schedule ? tr("%1, %2").arg(schedule, shape) : tr("%1 (%2), %3").arg(name, schedule, shape);
}

QStringList ExportController::captionOf(const RunView& view, const QString& mark) const
{
    const RunInfo& info = view.run->info;
    const Units& units = view.panel->units;
    QString figures = tr("step %1 of %2: %3, bubble ratio %4, peak activation %5; %6")
                          .arg(view.step + 1)
                          .arg(std::max(1, info.steps))
                          .arg(durationText(view.figures->bubbles.stepTime(), units),
                               percentText(view.figures->bubbles.bubbleFraction), bytesText(view.panel->peak, units),
                               costsText(*view.run));
    if (mark.isEmpty()) figures[0] = figures[0].toUpper();
    QString source = tr("%1; %2").arg(provenanceText(info), sourceText(view, true));
    source[0] = source[0].toUpper();
    return {mark + figures, source};
}

PictureContent ExportController::picture() const
{
    PictureContent content;
    content.theme = &m_workspace.theme();
    const auto shown = m_workspace.shown().view(), other = m_workspace.shown().other();
    if (m_workspace.shown().mode() == Shown::Mode::Empty || !shown) return content;
    TimelineView* timeline = m_workspace.views().timeline;
    MemoryView* memory = m_workspace.views().memory;
    if (m_workspace.shown().mode() == Shown::Mode::Compare && other) {
        content.title = tr("A: %1; B: %2").arg(titleOf(*shown), titleOf(*other));
        content.caption << captionOf(*shown, tr("A: ")) << captionOf(*other, tr("B: "));
        // shapes and figures are in the picture
        const QString nameA = runTitle(shown->run->info), nameB = runTitle(other->run->info);
        content.shortTitle = tr("A: %1; B: %2").arg(nameA, nameB);
        content.shortCaption
            << tr("A: step %1, %2; %3").arg(shown->step + 1).arg(costsText(*shown->run), sourceText(*shown))
            << tr("B: step %1, %2; %3").arg(other->step + 1).arg(costsText(*other->run), sourceText(*other));
    } else if (m_workspace.shown().mode() == Shown::Mode::Edit) {
        const ScheduleEditor& editor = m_workspace.feature<OrderEditing>()->editor();
        content.title = tr("%1 (edited)").arg(titleOf(*shown));
        content.caption << tr("%1, bubble ratio %2; simulated with costs: %3")
                               .arg(durationText(editor.figures().makespan,
                                                 {editor.costs().timeUnit, editor.costs().memoryUnit}),
                                    percentText(editor.figures().bubbleFraction),
                                    editor.costs().origin.empty() ? tr("of the run")
                                                                  : QString::fromStdString(editor.costs().origin));
    } else {
        content.title = titleOf(*shown);
        content.caption = captionOf(*shown, {});
        if (const QString tool = m_workspace.shown().toolText(); !tool.isEmpty()) content.caption.insert(1, tool);
    }
    const TimeRange visible = m_workspace.viewState()->visible(), full = m_workspace.viewState()->extent();
    if (!full.empty() && (visible.begin > full.begin || visible.end < full.end)) {
        const double perPixel = static_cast<double>(visible.duration()) / std::max(1, timeline->width());
        const Units& units = timeline->panels().empty() ? shown->panel->units : timeline->panels().front()->units;
        content.caption << tr("In view: %1 to %2")
                               .arg(momentText(visible.begin, perPixel, units),
                                    momentText(visible.end, perPixel, units));
        if (!content.shortCaption.isEmpty()) content.shortCaption << content.caption.last();
    }
    for (QStringList* lines : {&content.caption, &content.shortCaption})
        if (!lines->isEmpty()) lines->last() += tr("; Stagewright %1").arg(QString::fromLatin1(stagewrightVersion));

    const bool withMemory = m_workspace.actions()["memory"]->isChecked();
    PicturePart upper{
        PicturePart::Role::View,
        tr("Timeline"),
        [timeline](double width) { return std::clamp(timeline->paintedHeight(width), 60.0, 4000.0); },
        !withMemory,
        [timeline](QPainter& painter, const QRectF& rect, const PaintRequest& request) {
            timeline->paintTo(painter, rect, request.theme, PaintedMarks{false, request.selection, request.notes});
        },
        timeline->visibleSlices()};
    const auto ranks = static_cast<double>(
        std::max<std::size_t>(1, timeline->panels().empty() ? 1 : timeline->panels().back()->ranks.size()));
    const double charts = std::min<double>(withMemory ? memory->height() : memory->sizeHint().height(),
                                           chartsHeader + ranks * chartHeight);
    // in one column: of the fullest rank, if two runs are above
    const double few = timeline->panels().size() > 1 ? 80 : 36 + std::min(4.0, ranks) * 44;
    PicturePart lower{PicturePart::Role::View,
                      tr("Memory"),
                      [charts, few](double width) { return width < narrowView ? few : charts; },
                      true,
                      [memory](QPainter& painter, const QRectF& rect, const PaintRequest& request) {
                          memory->paintTo(painter, rect, request.theme);
                      },
                      0};
    Legend* legend = m_workspace.views().legend;
    PicturePart line{PicturePart::Role::Legend,
                     {},
                     [legend](double width) { return legend->heightFor(width); },
                     false,
                     [legend](QPainter& painter, const QRectF& rect, const PaintRequest& request) {
                         legend->paintTo(painter, rect, request.theme);
                     },
                     0};
    content.parts = {std::move(upper), std::move(lower), std::move(line)};
    return content;
}

PictureStyle ExportController::screenStyle() const
{
    PictureStyle style;
    style.pixels = {m_workspace.views().timeline->width(), 0};
    if (!m_workspace.actions()["memory"]->isChecked()) style.without << tr("Memory");
    return style;
}

Result<void> ExportController::write(const QString& path, const PictureStyle& style, std::optional<PictureKind> kind)
{
    STAGEWRIGHT_TRY(const auto chosen, pictureKindOf(path, kind));
    STAGEWRIGHT_TRY(auto bytes, pictureBytes(picture(), style, chosen));
    return writeFileAtomically(path.toStdString(),
                               std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

ExportDialog* ExportController::openDialog()
{
    if (m_dialog) {
        m_dialog->raise();
        m_dialog->activateWindow();
        return m_dialog;
    }
    PictureContent content = picture();
    if (content.parts.empty()) return nullptr;
    const PictureStyle screen = screenStyle();
    m_dialog = new ExportDialog(std::move(content), screen.pixels, m_workspace.window());
    m_dialog->setAttribute(Qt::WA_DeleteOnClose);
    PictureStyle style = m_dialog->style();
    style.without = screen.without;
    m_dialog->setStyle(style);
    connect(m_dialog, &ExportDialog::saveAsked, this, [this] { saveAsked(m_dialog); });
    connect(m_dialog, &ExportDialog::copyAsked, this, [this] { copyAsked(*m_dialog); });
    m_dialog->open(); // window modal: the view stays as in the picture
    return m_dialog;
}

void ExportController::saveAsked(ExportDialog* dialog)
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    const QString suffix = suffixOf(dialog->kind());
    const QString path = QFileDialog::getSaveFileName(dialog, tr("Export the picture"), suggested(*shown, suffix),
                                                      tr("%1 pictures (*.%2)").arg(suffix.toUpper(), suffix));
    if (path.isEmpty()) return;
    savePicture(dialog, path);
}

// The chosen format decides and the suffix follows; a failed write leaves the dialog open.
void ExportController::savePicture(ExportDialog* dialog, const QString& chosen)
{
    const QString path = pathOfKind(chosen, dialog->kind());
    if (path != chosen && QFileInfo::exists(path) &&
        QMessageBox::question(dialog, tr("Export the picture"),
                              tr("The format is %1, so the file is %2, which exists. Replace it?")
                                  .arg(suffixOf(dialog->kind()).toUpper(), QFileInfo(path).fileName())) !=
            QMessageBox::Yes)
        return;
    auto bytes = pictureBytes(picture(), dialog->style(), dialog->kind());
    if (!bytes) return dialog->showFault(bytes.error());
    dialog->close();
    inBackground(
        this,
        [path, bytes = std::move(*bytes)] {
            return writeFileAtomically(path.toStdString(),
                                       std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
        },
        [this, path](Result<void> done) {
            if (!done)
                m_workspace.banner()->showError(tr("could not export"), done.error());
            else
                m_workspace.room().tell(tr("Wrote %1").arg(path), 6000);
        });
}

void ExportController::copyAsked(const ExportDialog& dialog)
{
    const PictureStyle style = dialog.style();
    QApplication::clipboard()->setImage(
        pictureImage(picture(), style, style.look == PictureStyle::Look::Screen ? style.scale : 2));
    m_workspace.room().tell(tr("The picture is on the clipboard"), 6000);
}

void ExportController::exportReport()
{
    const auto shown = m_workspace.shown().view();
    const auto other = m_workspace.shown().mode() == Shown::Mode::Compare ? m_workspace.shown().other() : nullptr;
    if (!shown) return;
    QString path = QFileDialog::getSaveFileName(
        m_workspace.window(), other ? tr("Export a report of the comparison") : tr("Export a report of the run"),
        suggested(*shown, QStringLiteral("html")), tr("HTML pages (*.html)"));
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += QStringLiteral(".html");
    HtmlOptions options;
    options.step = shown->step;
    options.program = "Stagewright " + std::string(stagewrightVersion);
    options.source = sourceText(*shown).toStdString();
    if (other) options.otherSource = sourceText(*other).toStdString();
    inBackground(
        this,
        [a = shown->run, b = other ? other->run : nullptr, options, path]() -> Result<void> {
            STAGEWRIGHT_TRY(const auto page, b ? htmlComparison(*a, *b, options) : htmlReport(*a, options));
            return writeFileAtomically(path.toStdString(), page);
        },
        [this, path](Result<void> done) {
            if (!done)
                m_workspace.banner()->showError(tr("could not export"), done.error());
            else
                m_workspace.room().tell(tr("Wrote %1").arg(path), 6000);
        });
}

TableText ExportController::focusedTable() const
{
    if (TableText table = copyableTable(QApplication::focusWidget()); !table.isEmpty()) return table;
    return copyableTable(m_workspace.room().panels()->currentWidget());
}

void ExportController::copy(TableFormat format)
{
    const TableText table = focusedTable();
    if (table.isEmpty()) return;
    copyTable(table, format);
    m_workspace.room().tell(countText(table.rows.size(), tr("Copied 1 row"), tr("Copied %L1 rows")), 4000);
}

namespace {

ShownDialog showExport(const ShowRequest& request)
{
    ExportDialog* dialog = request.workspace.feature<ExportController>()->openDialog();
    if (dialog == nullptr || !request.wait([&] { return dialog->settled(); }, 60000))
        return {nullptr, ExportController::tr("there is nothing to export")};
    return {dialog};
}

} // namespace

std::vector<ShowEntry> ExportController::showTable()
{
    return {
        {.name = "export", .at = 220, .dialog = &showExport},
    };
}

FeatureEntry exportFeature() { return featureEntry<ExportController>(); }

} // namespace stagewright
