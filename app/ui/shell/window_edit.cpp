// Edit mode: edits the schedule of the run shown and times it as it changes.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStatusBar>

#include "app/costs/split_sources.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "schedules/text/csv.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "widgets/deadlock/deadlock_dialog.h"

namespace stagewright {

void MainWindow::refreshEdit()
{
    refreshTitle();
    refreshActions();
    refreshStatus();
}

void MainWindow::showEditedDeadlock()
{
    showDeadlock(std::make_shared<const Schedule>(m_editor->schedule()), {}, [this](const Schedule& fixed) {
        if (m_mode == Mode::Edit) m_editor->replace(tr("remove the deadlock"), fixed);
    });
}

void MainWindow::editRun(Run run, const QString& change, Schedule order)
{
    m_followLive = false;
    const RunRef ref = m_library->addSimulated(std::move(run));
    const quint64 generation = ++m_generation;
    m_pending = true;
    refreshStatus();
    m_library->request(ref, -1, [this, generation, change, order = std::move(order)](Result<std::shared_ptr<const RunView>> view) {
        if (generation != m_generation) return; // superseded by another request
        m_pending = false;
        if (!view) {
            m_banner->showError(QString(), view.error());
            refreshStatus();
            return;
        }
        present(*view, true);
        if (change.isEmpty()) {
            startEdit(order);
            return;
        }
        startEdit(std::nullopt);
        if (m_mode == Mode::Edit) m_editor->replace(change, order);
    });
}

void MainWindow::editRunAgain(const RunRef& ref, const Schedule& original, const QString& change, const Schedule& order, std::function<void(bool)> done)
{
    auto begin = [=, this] {
        m_followLive = false;
        const quint64 generation = ++m_generation;
        m_pending = true;
        refreshStatus();
        m_library->request(ref, -1, [=, this](const Result<std::shared_ptr<const RunView>>& view) {
            if (generation != m_generation) return; // superseded by another request
            m_pending = false;
            const auto schedule = view ? scheduleOfRun(*(*view)->run) : Result<Schedule>(tl::unexpected(view.error()));
            if (!schedule || schedule->order != original.order || schedule->placement != original.placement) {
                refreshStatus();
                done(false);
                return;
            }
            present(*view, true);
            startEdit(std::nullopt);
            if (m_mode == Mode::Edit) m_editor->replace(change, order);
            done(m_mode == Mode::Edit);
        });
    };
    if (runs()->info(ref) != nullptr) return begin();
    if (m_library->isSimulated(ref.file) || !QFileInfo::exists(ref.file)) return done(false);
    auto once = std::make_shared<std::vector<QMetaObject::Connection>>();
    auto answered = [=, this](const QString& path) {
        if (path != ref.file) return;
        for (const QMetaObject::Connection& one : *once) disconnect(one);
        if (runs()->info(ref) != nullptr)
            begin();
        else
            done(false);
    };
    once->push_back(connect(m_library, &RunLibrary::listed, this, answered));
    once->push_back(connect(m_library, &RunLibrary::failed, this, answered));
    m_library->open(ref.file);
}

void MainWindow::enterEdit() { startEdit(std::nullopt); }

void MainWindow::startEdit(std::optional<Schedule> beginWith)
{
    if (m_mode == Mode::Edit) return;
    refreshActions(); // the button stays unchecked until it succeeds
    setTool(Tool::None);
    const std::shared_ptr<const RunView> source = m_mode == Mode::Compare ? m_other : m_shown;
    if (!source) return;
    m_followLive = false;
    auto schedule = beginWith ? Result<Schedule>(std::move(*beginWith)) : scheduleOfRun(*source->run);
    if (!schedule) {
        m_banner->showRefusal(tr("this run can't be edited"), schedule.error());
        return;
    }
    auto costs = costsOf(*source->run);
    if (!costs) {
        m_banner->showRefusal(tr("this run can't be edited"), costs.error());
        return;
    }
    const CostModel measured = *costs;
    BackwardCosts complete = withBackward(measured, *source->run, schedule->ranks, {});
    complete.costs.origin = costs->origin;
    *costs = complete.costs;
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
    m_edit->begun(source, *schedule, *costs, {rank, position});
    m_edit->completeSplit(measured, complete);
    m_state->fitAll();
    m_state->clearHistory();
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

void MainWindow::showDeadlock(std::shared_ptr<const Schedule> schedule, const Channels& channels, std::function<void(const Schedule&)> apply)
{
    auto* dialog = new DeadlockDialog(*m_theme, std::move(schedule), channels, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &DeadlockDialog::fixAsked, this, [apply = std::move(apply)](const Schedule& fixed) { apply(fixed); });
    dialog->open();
}

void MainWindow::runEdited()
{
    if (m_mode != Mode::Edit || !m_editSource || m_process->running()) return;
    if (!m_editor->valid()) {
        m_banner->showRefusal(QString::fromStdString(m_editor->validation().faults.front().message), tr("an order with a fault can't run; move the op back, or undo"));
        return;
    }
    auto text = writeScheduleCsv(m_editor->schedule());
    if (!text) {
        m_banner->showRefusal(tr("this order can't be written"), text.error());
        return;
    }
    QString base = QString::fromStdString(m_editSource->run->info.scheduleName).section(QLatin1Char('/'), -1);
    if (base.endsWith(QLatin1String(".csv"))) base.chop(4);
    if (base.isEmpty()) base = QStringLiteral("schedule");
    const QString mark = QStringLiteral(" (edited)");
    const QString name = base.endsWith(mark) ? base : base + mark; // the run has the file's name
    const QString folder = m_scratch.filePath(QString::number(++m_recordCount));
    QDir().mkpath(folder);
    QFile file(folder + QLatin1Char('/') + name);
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
        keepPrediction();
        return;
    }
    // A schedule that never ran has no measured run to compare with: the original is recorded too, alternating by step.
    m_compareAfter = {};
    if (m_editor->changed()) {
        auto original = scheduleOfRun(*m_editSource->run);
        auto originalText = original ? writeScheduleCsv(*original) : Result<std::string>(tl::unexpected(original.error()));
        QFile baseline(folder + QLatin1Char('/') + name.chopped(mark.size()));
        if (originalText && baseline.open(QIODevice::WriteOnly) && baseline.write(originalText->data(), static_cast<qint64>(originalText->size())) >= 0)
            settings.baselineFile = baseline.fileName();
    }
    startRecording(settings, newRecordingPath(name.chopped(mark.size()) + QStringLiteral("-edited")), true);
    keepPrediction();
}

// Of the order being recorded: the original and, with measured costs, the prediction.
void MainWindow::keepPrediction()
{
    if (!m_process->running()) return;
    m_recorded = m_editor->schedule();
    if (m_editor->costs().source != CostSource::Fitted) return;
    auto run = simulatedRun(m_editor->schedule(), m_editor->costs());
    if (run) m_predicted = std::move(*run);
}

} // namespace stagewright
