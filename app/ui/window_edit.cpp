// Edit mode: the schedule of the run shown, dragged about and timed as it changes.
#include <QDir>
#include <QFile>
#include <QStatusBar>

#include "app/ui/banner.h"
#include "app/ui/main_window.h"
#include "schedules/csv.h"
#include "widgets/deadlock/deadlock_dialog.h"

namespace stagewright {

void MainWindow::connectEditor()
{
    connect(m_editor, &ScheduleEditor::edited, this, &MainWindow::editorChanged);
    connect(m_editor->undoStack(), &QUndoStack::indexChanged, this, [this] { refreshActions(); });
    connect(m_timeline, &TimelineView::opDragged, this, &MainWindow::opDragged);
    connect(m_timeline, &TimelineView::opDropped, this, [this](SpanRef, int rank, int from, int toRank, int to) {
        m_timeline->setDragFeedback(std::nullopt);
        if (toRank != rank) {
            m_editor->cancelPreview();
            statusBar()->showMessage(tr("Stage and rank belong together: an op moves along its own rank"), 6000);
            return;
        }
        m_selectAfterEdit = OpPosition{rank, to};
        m_editor->move({rank, from}, to);
        m_selectAfterEdit.reset();
    });
    connect(m_timeline, &TimelineView::opDragCancelled, this, [this] {
        m_timeline->setDragFeedback(std::nullopt);
        m_editor->cancelPreview();
    });
    connect(m_timeline, &TimelineView::opNudged, this, [this](SpanRef, int rank, int position, int by) {
        m_selectAfterEdit = OpPosition{rank, position + by};
        m_editor->nudge({rank, position}, by);
        m_selectAfterEdit.reset();
    });
    connect(m_editPanel, &EditPanel::runAsked, this, &MainWindow::runEdited);
    connect(m_editPanel, &EditPanel::doneAsked, this, &MainWindow::leaveEdit);
    connect(m_editPanel, &EditPanel::deadlockAsked, this, [this] {
        showDeadlock(std::make_shared<const Schedule>(m_editor->schedule()), {}, [this](const Schedule& fixed) {
            if (m_mode == Mode::Edit) m_editor->replace(tr("removed the deadlock"), fixed);
        });
    });
    connect(m_editPanel, &EditPanel::delayAsked, this, &MainWindow::insertDelayAtSelection);
}

void MainWindow::enterEdit()
{
    if (m_mode == Mode::Edit) return;
    refreshActions(); // the button stays up until it worked
    setTool(Tool::None);
    const std::shared_ptr<const RunView> source = m_mode == Mode::Compare ? m_other : m_shown;
    if (!source) return;
    m_followLive = false;
    auto schedule = scheduleOfRun(*source->run);
    if (!schedule) {
        m_banner->showError(tr("this run can't be edited"), schedule.error());
        return;
    }
    auto costs = costsOf(*source->run);
    if (!costs) {
        m_banner->showError(tr("this run can't be edited"), costs.error());
        return;
    }
    completeCosts(*costs, schedule->ranks);
    if (costs->origin.empty())
        costs->origin = costs->source == CostSource::Fitted ? tr("fitted from %1").arg(runTitle(source->run->info)).toStdString()
                                                            : tr("unit costs").toStdString();
    const SpanRef selected = m_state->selected();
    int rank = -1;
    int position = -1;
    if (selected.valid() && selected.span < source->run->timeline->spans().size() && m_mode == Mode::Run) {
        rank = source->run->timeline->trackOf(selected.span).rank;
        position = source->panel->positionOf(selected.span);
    }
    ++m_generation;
    m_pending = false;
    m_shown = source;
    m_other.reset();
    m_editSource = source;
    m_state->clearSelection();
    setMode(Mode::Edit);
    m_runsPanel->setCurrent(source->ref);
    m_editPanel->setSource(runTitle(source->run->info), QString::fromStdString(costs->origin));
    if (position >= 0) m_selectAfterEdit = OpPosition{rank, position};
    m_editor->start(*schedule, *costs);
    m_selectAfterEdit.reset();
    m_state->fitAll();
    m_state->clearHistory();
    splitViews();
    m_timeline->setFocus();
    ready();
}

void MainWindow::leaveEdit()
{
    if (m_mode != Mode::Edit) return;
    const auto source = m_editSource;
    m_editor->stop();
    if (source)
        present(source, true);
    else
        setMode(Mode::Empty);
}

void MainWindow::editorChanged()
{
    if (m_mode != Mode::Edit || !m_editor->active() || m_editor->previewing() || !m_editor->timeline()) return;
    PanelOptions options;
    options.step = 0;
    options.name = QString::fromStdString(m_editor->schedule().name);
    options.memoryCap = m_library->budget().of(shownUnits());
    const auto panel = makePanel(m_editor->timeline(), options);
    const bool keep = !m_timeline->panels().empty() && m_state->extent().duration() > 0 && !m_state->isFitted();
    m_timeline->setPanels({panel});
    m_memory->setPanels({panel});
    m_legend->setPanels({panel});
    if (!keep) m_state->fitAll();
    m_overlay->setFaults(m_editor->faultSpans());
    if (m_selectAfterEdit) {
        const SpanId span = m_editor->spanAt(*m_selectAfterEdit);
        if (span != noSpan) m_state->select({0, span});
    }
    m_editPanel->setSelected(selectedPosition());
    refreshTitle();
    refreshActions();
    refreshStatus();
}

void MainWindow::opDragged(SpanRef ref, int rank, int from, int toRank, int to)
{
    DragFeedback feedback;
    feedback.span = ref;
    feedback.toRank = toRank;
    const auto& panels = m_timeline->panels();
    if (panels.empty()) return;
    const TimelinePanel& panel = *panels.front();
    if (toRank != rank) {
        m_editor->cancelPreview();
        feedback.valid = false;
        feedback.message = tr("an op moves along its own rank");
        const Span& span = panel.timeline->spans()[ref.span];
        feedback.begin = panel.toAxis(span.start);
        feedback.end = panel.toAxis(span.end);
        m_timeline->setDragFeedback(feedback);
        return;
    }
    const Nanos before = m_editor->originalFigures().makespan;
    m_editor->preview({rank, from}, to);
    feedback.valid = m_editor->valid();
    const Nanos change = m_editor->figures().makespan - before;
    const Units units{m_editor->costs().timeUnit, m_editor->costs().memoryUnit};
    if (!feedback.valid)
        feedback.message = QString::fromStdString(m_editor->validation().faults.front().message);
    else
        feedback.message = change == 0 ? tr("same time as the original") : tr("%1 against the original").arg(signedDurationText(change, units));
    const SpanId span = m_editor->spanAt({rank, to});
    if (span != noSpan && m_editor->timeline()) {
        const Span& placed = m_editor->timeline()->spans()[span];
        feedback.begin = placed.start - m_editor->timeline()->begin();
        feedback.end = placed.end - m_editor->timeline()->begin();
    }
    // The bar stands before the op that would follow, in the picture on screen.
    if (const Track* track = panel.timeline->trackOf(rank, Lane::Compute)) {
        const auto spans = panel.timeline->spansOf(*track);
        const std::size_t follows = static_cast<std::size_t>(to >= from ? to + 1 : to);
        if (follows < spans.size())
            feedback.insertAt = panel.toAxis(spans[follows].start);
        else if (!spans.empty())
            feedback.insertAt = panel.toAxis(spans.back().end);
    }
    m_timeline->setDragFeedback(feedback);
}

OpPosition MainWindow::selectedPosition() const
{
    if (m_mode != Mode::Edit || !m_editor->active()) return {};
    const SpanRef selected = m_state->selected();
    return selected.valid() && selected.panel == 0 ? m_editor->positionOf(selected.span) : OpPosition{};
}

void MainWindow::showDeadlock(std::shared_ptr<const Schedule> schedule, const Channels& channels, std::function<void(const Schedule&)> apply)
{
    auto* dialog = new DeadlockDialog(*m_theme, std::move(schedule), channels, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &DeadlockDialog::fixAsked, this, [apply = std::move(apply)](const Schedule& fixed) { apply(fixed); });
    dialog->open();
}

void MainWindow::insertDelayAtSelection()
{
    const OpPosition at = selectedPosition();
    if (!at.valid()) return;
    const SpanId span = m_editor->spanAt(at);
    const Nanos length = span == noSpan ? rankShare : m_editor->timeline()->spans()[span].duration();
    m_selectAfterEdit = at;
    m_editor->insertDelay(at.rank, at.position, std::max<Nanos>(1, length));
    m_selectAfterEdit.reset();
}

void MainWindow::runEdited()
{
    if (m_mode != Mode::Edit || !m_editSource || m_process->running()) return;
    if (!m_editor->valid()) {
        m_banner->showError(QString::fromStdString(m_editor->validation().faults.front().message), tr("an order with a fault can't run; move an op back, or undo"));
        return;
    }
    auto text = writeScheduleCsv(m_editor->schedule());
    if (!text) {
        m_banner->showError(tr("this order can't be written"), text.error());
        return;
    }
    QString base = QString::fromStdString(m_editSource->run->info.scheduleName).section(QLatin1Char('/'), -1);
    if (base.isEmpty()) base = QStringLiteral("schedule");
    if (!base.endsWith(QLatin1String("-edited"))) base += QStringLiteral("-edited");
    const QString folder = m_scratch.filePath(QString::number(++m_recordCount));
    QDir().mkpath(folder);
    QFile file(folder + QLatin1Char('/') + base + QStringLiteral(".csv"));
    if (!file.open(QIODevice::WriteOnly) || file.write(text->data(), static_cast<qint64>(text->size())) < 0) {
        m_banner->showError(tr("file %1: %2").arg(file.fileName(), file.errorString()), tr("free some space in the temporary folder"));
        return;
    }
    file.close();
    RecordSettings settings = settingsOf(*m_editSource->run);
    settings.scheduleFile = file.fileName();
    if (settings.layers < m_editor->schedule().stages) { // of a schedule that never ran
        settings.layers = m_editor->schedule().stages;
        settings.stageLayers.clear();
    }
    const bool stored = !m_library->isSimulated(m_editSource->ref.file);
    if (stored) {
        m_compareAfter = m_editSource->ref;
        startRecording(settings, m_editSource->ref.file, false);
        return;
    }
    // What never ran has no measured run to be compared with: the original is recorded too, step by step in turn.
    m_compareAfter = {};
    if (m_editor->changed()) {
        auto original = scheduleOfRun(*m_editSource->run);
        auto originalText = original ? writeScheduleCsv(*original) : Result<std::string>(tl::unexpected(original.error()));
        QFile baseline(folder + QLatin1Char('/') + base.chopped(7) + QStringLiteral(".csv"));
        if (originalText && baseline.open(QIODevice::WriteOnly) && baseline.write(originalText->data(), static_cast<qint64>(originalText->size())) >= 0)
            settings.baselineFile = baseline.fileName();
    }
    startRecording(settings, newRecordingPath(base), true);
}

} // namespace stagewright
