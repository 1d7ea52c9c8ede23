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

#include <fmt/core.h>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "app/version/version.h"
#include "schedules/base/step_number.h"
#include "traces/export/html_report.h"
#include "traces/format/atomic_file.h"
#include "traces/run/run_link.h"
#include "widgets/background.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/export_dialog.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/numbers.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

QString suggested(const RunView& view, const QString& suffix)
{
    QString name = QString::fromStdString(view.run->info.name);
    name.replace(u'/', u'-');
    const QString folder =
        view.ref.file.startsWith("sim:"_L1) ? QString() : QFileInfo(view.ref.file).absolutePath() + u'/';
    return folder + name + u'.' + suffix;
}

QString costsText(const Run& run)
{
    const QString origin = run.costs ? QString::fromStdString(run.costs->origin) : QString();
    if (run.info.provenance == Provenance::Simulated)
        return origin.isEmpty() ? u"costs from a cost model"_s : u"costs: %1"_s.arg(origin);
    return u"costs: as measured"_s;
}

QString sourceText(const RunView& view, bool withTime = false)
{
    const RunInfo& info = view.run->info;
    if (view.ref.file.startsWith("sim:"_L1)) return u"not stored"_s;
    QString text = u"%1, run %2"_s.arg(QFileInfo(view.ref.file).fileName()).arg(info.id);
    if (withTime && info.createdUnixMs > 0)
        text += u" of %1"_s.arg(
            QDateTime::fromMSecsSinceEpoch(info.createdUnixMs, Qt::UTC).toString(u"yyyy-MM-dd hh:mm 'UTC'"_s));
    return text;
}

} // namespace

std::vector<ActionEntry> ExportController::actionTable()
{
    return {
        item("exportPicture", ActionGroup::FileExport, u"Export &picture…"_s, "Ctrl+E",
             u"Timeline and memory with a caption, as PNG, SVG or PDF"_s,
             {.at = 0, .button = u"Export…"_s, .tool = 42}),
        item("exportReport", ActionGroup::FileExport, u"Export &report…"_s, "Ctrl+Alt+E",
             u"The run or the comparison as one self-contained HTML page"_s, {.at = 0}),
        item("copyTable", ActionGroup::EditCopy, u"&Copy table as CSV"_s, "Ctrl+C",
             u"Copies the focused table, or else the figures at the right, to the clipboard"_s),
        item("copyMarkdown", ActionGroup::EditCopy, u"Copy table as &Markdown"_s, "Ctrl+Shift+C",
             u"The same, as a Markdown table"_s),
        item("copyLink", ActionGroup::EditCopy, u"Copy &link"_s, "",
             u"A link to the run, the step, the selected op and the range in view, for notes and chats"_s),
    };
}

ExportController::ExportController(Workspace& workspace) : Feature(workspace)
{
    Actions& a = workspace.actions();
    connect(a["exportPicture"], &QAction::triggered, this, &ExportController::openDialog);
    connect(a["exportReport"], &QAction::triggered, this, &ExportController::exportReport);
    connect(a["copyTable"], &QAction::triggered, this, [this] { copy(TableFormat::Csv); });
    connect(a["copyLink"], &QAction::triggered, this, [this] {
        QApplication::clipboard()->setText(link());
        m_workspace.room().tell(u"The link is on the clipboard"_s, 6000);
    });
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
    m_workspace.actions()["copyLink"]->setEnabled(tables && shown && !shown->ref.file.startsWith("sim:"_L1));
    m_workspace.actions()["exportReport"]->setEnabled(tables && shown && !shown->partial && !shown->excerpt);
    if (m_dialog) m_dialog->close(); // its picture is of what was shown
}

QString ExportController::link() const
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return {};
    const Timeline& timeline = *shown->run->timeline;
    const ViewState& state = *m_workspace.viewState();
    RunLink link;
    link.file = shown->ref.file.toStdString();
    link.run = std::to_string(shown->run->info.id);
    link.step = stepNumber(shown->step);
    if (state.selected().panel == 0) {
        const SpanId span = state.selected().span;
        link.op = fmt::format("rank:{} {}", timeline.trackOf(span).rank, timeline.nameOf(timeline.spans()[span]));
    }
    const Nanos origin = shown->panel->origin;
    if (!state.isFitted()) link.range = {state.visible().begin + origin, state.visible().end + origin};
    return QString::fromStdString(toText(link));
}

QString ExportController::titleOf(const RunView& view, const QString& name) const
{
    const RunInfo& info = view.run->info;
    const QString schedule = scheduleTitle(info.scheduleName);
    // a trace whose ops, and so its schedule, are not known, or whose other ranks are missing
    if (!view.figures->noOps.empty() || info.stages == 0)
        return u"%1, %2"_s.arg(name, countText(info.ranks, u"1 rank"_s, u"%L1 ranks"_s));
    const QString shape = u"%1 × %2"_s.arg(countText(info.ranks, u"1 rank"_s, u"%L1 ranks"_s),
                                           countText(info.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s));
    return name == schedule || schedule.isEmpty() ? u"%1, %2"_s.arg(name, shape)
                                                  : u"%1 (%2), %3"_s.arg(name, schedule, shape);
}

QStringList ExportController::captionOf(const RunView& view, const QString& mark) const
{
    const RunInfo& info = view.run->info;
    const Units& units = view.panel->units;
    const std::string unknown = view.figures->noOps;
    QString figures = !unknown.empty()
                          ? u"step %1 of %2; step time and bubble ratio are unknown: %3"_s.arg(view.step + 1)
                                .arg(std::max(1, info.steps))
                                .arg(QString::fromStdString(unknown))
                          : u"step %1 of %2: %3, bubble ratio %4, peak activation %5; %6"_s.arg(view.step + 1)
                                .arg(std::max(1, info.steps))
                                .arg(durationText(view.figures->bubbles.stepTime(), units),
                                     percentText(view.figures->bubbles.bubbleFraction),
                                     bytesText(view.panel->peak, units), costsText(*view.run));
    if (mark.isEmpty()) figures[0] = figures[0].toUpper();
    QString source = u"%1; %2"_s.arg(provenanceText(info), sourceText(view, true));
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
        const auto& views = m_workspace.feature<RunComparing>()->shown();
        const QStringList names = distinctTitles(views);
        QStringList titles, shortTitles;
        for (std::size_t i = 0; i < views.size(); ++i) {
            const RunView& view = *views[i];
            const QString mark = QChar(static_cast<char16_t>(u'A' + i)) + u": "_s,
                          name = names[static_cast<qsizetype>(i)];
            titles << mark + titleOf(view, name);
            content.caption << captionOf(view, mark);
            shortTitles << mark + name; // shapes and figures are in the picture
            content.shortCaption
                << mark + u"step %1, %2; %3"_s.arg(view.step + 1).arg(costsText(*view.run), sourceText(view));
        }
        content.title = titles.join(u"; "_s);
        content.shortTitle = shortTitles.join(u"; "_s);
    } else if (m_workspace.shown().mode() == Shown::Mode::Edit) {
        const ScheduleEditor& editor = m_workspace.feature<OrderEditing>()->editor();
        content.title = u"%1 (edited)"_s.arg(titleOf(*shown, runTitle(shown->run->info)));
        content.caption << u"%1, bubble ratio %2; simulated with costs: %3"_s.arg(
            durationText(editor.figures().makespan, {editor.costs().timeUnit, editor.costs().memoryUnit}),
            percentText(editor.figures().bubbleFraction),
            editor.costs().origin.empty() ? u"of the run"_s : QString::fromStdString(editor.costs().origin));
    } else {
        content.title = titleOf(*shown, runTitle(shown->run->info));
        content.caption = captionOf(*shown, {});
        if (const QString tool = m_workspace.shown().toolText(); !tool.isEmpty()) content.caption.insert(1, tool);
    }
    const TimeRange visible = m_workspace.viewState()->visible(), full = m_workspace.viewState()->extent();
    if (!full.empty() && (visible.begin > full.begin || visible.end < full.end)) {
        const double perPixel = static_cast<double>(visible.duration()) / std::max(1, timeline->width());
        const Units& units = timeline->panels().empty() ? shown->panel->units : timeline->panels().front()->units;
        content.caption << u"In view: %1 to %2"_s.arg(momentText(visible.begin, perPixel, units),
                                                      momentText(visible.end, perPixel, units));
        if (!content.shortCaption.isEmpty()) content.shortCaption << content.caption.last();
    }
    for (QStringList* lines : {&content.caption, &content.shortCaption})
        if (!lines->isEmpty()) lines->last() += u"; Stagewright %1"_s.arg(QString::fromStdString(versionText()));

    const bool withMemory = memory->known() && m_workspace.actions()["memory"]->isChecked();
    PicturePart upper{
        PicturePart::Role::View,
        u"Timeline"_s,
        [timeline](double width) { return std::clamp(timeline->paintedHeight(width), 60.0, 4000.0); },
        !withMemory,
        [timeline](QPainter& painter, const QRectF& rect, const PaintRequest& request) {
            timeline->paintTo(painter, rect, request.theme, PaintedMarks{false, request.selection, request.notes});
        },
        timeline->scene().visibleSlices()};
    const auto ranks = static_cast<double>(
        std::max<std::size_t>(1, timeline->panels().empty() ? 1 : timeline->panels().back()->ranks.size()));
    const double charts = memory->paintedHeight();
    // in one column: of the fullest rank, if two runs are above
    const double few = timeline->panels().size() > 1 ? 80 : 36 + std::min(4.0, ranks) * 44;
    PicturePart lower{PicturePart::Role::View,
                      u"Memory"_s,
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
    content.parts = {std::move(upper)};
    if (memory->known()) content.parts.push_back(std::move(lower));
    content.parts.push_back(std::move(line));
    return content;
}

PictureStyle ExportController::screenStyle() const
{
    PictureStyle style;
    style.pixels = {m_workspace.views().timeline->width(), 0};
    if (!m_workspace.actions()["memory"]->isChecked()) style.without << u"Memory"_s;
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
    const QString path = QFileDialog::getSaveFileName(dialog, u"Export the picture"_s, suggested(*shown, suffix),
                                                      u"%1 pictures (*.%2)"_s.arg(suffix.toUpper(), suffix));
    if (path.isEmpty()) return;
    savePicture(dialog, path);
}

// The chosen format decides and the suffix follows; a failed write leaves the dialog open.
void ExportController::savePicture(ExportDialog* dialog, const QString& chosen)
{
    const QString path = pathOfKind(chosen, dialog->kind());
    if (path != chosen && QFileInfo::exists(path) &&
        QMessageBox::question(dialog, u"Export the picture"_s,
                              u"The format is %1, so the file is %2, which exists. Replace it?"_s.arg(
                                  suffixOf(dialog->kind()).toUpper(), QFileInfo(path).fileName())) != QMessageBox::Yes)
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
                m_workspace.banner()->showError(u"could not export"_s, done.error());
            else
                m_workspace.room().tell(u"Wrote %1"_s.arg(path), 6000);
        });
}

void ExportController::copyAsked(const ExportDialog& dialog)
{
    const PictureStyle style = dialog.style();
    QApplication::clipboard()->setImage(
        pictureImage(picture(), style, style.look == PictureStyle::Look::Screen ? style.scale : 2));
    m_workspace.room().tell(u"The picture is on the clipboard"_s, 6000);
}

void ExportController::exportReport()
{
    const auto shown = m_workspace.shown().view();
    const auto other = m_workspace.shown().mode() == Shown::Mode::Compare ? m_workspace.shown().other() : nullptr;
    if (!shown) return;
    QString path = QFileDialog::getSaveFileName(
        m_workspace.window(), other ? u"Export a report of the comparison"_s : u"Export a report of the run"_s,
        suggested(*shown, u"html"_s), u"HTML pages (*.html)"_s);
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += u".html"_s;
    HtmlOptions options;
    options.step = shown->step;
    options.program = "Stagewright " + versionText();
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
                m_workspace.banner()->showError(u"could not export"_s, done.error());
            else
                m_workspace.room().tell(u"Wrote %1"_s.arg(path), 6000);
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
    m_workspace.room().tell(countText(table.rows.size(), u"Copied 1 row"_s, u"Copied %L1 rows"_s), 4000);
}

namespace {

ShownDialog showExport(const ShowRequest& request)
{
    ExportDialog* dialog = request.workspace.feature<ExportController>()->openDialog();
    if (dialog == nullptr || !request.wait([&] { return dialog->settled(); }, 60000))
        return {nullptr, u"there is nothing to export"_s};
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
