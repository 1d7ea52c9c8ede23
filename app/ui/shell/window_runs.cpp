// Showing runs: one, two, their steps; finding ops, the menus of runs and ops.
#include <algorithm>
#include <utility>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QSpinBox>
#include <QSplitter>
#include <QStatusBar>
#include <QVBoxLayout>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/explain/steps_controller.h"
#include "app/ui/runs/run_lanes.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/window_set.h"
#include "widgets/background.h"
#include "widgets/style.h"
#include "widgets/tools/residual_panel.h"

namespace stagewright {

void MainWindow::showRun(const RunRef& ref, int step)
{
    if (!ref.valid()) return;
    m_library->cancelEveryStep();
    m_followLive = false;
    const quint64 generation = ++m_generation;
    m_pending = true;
    refreshStatus();
    m_library->request(ref, step, [this, generation](Result<std::shared_ptr<const RunView>> view) {
        if (!arrived(generation, view)) return;
        const bool same = m_mode == Mode::Run && m_shown && m_shown->ref == (*view)->ref && m_shown->step == (*view)->step && !m_shown->steps;
        present(*view, !same);
    });
}

void MainWindow::showSteps(const RunRef& ref, const ShownSteps& steps)
{
    if (!ref.valid()) return;
    if (m_library->isLarge(ref)) { // all of them, zoomed to the requested ones
        showEveryStep(ref, -1, [this, steps] { m_stepsController->fit(steps); });
        return;
    }
    m_followLive = false;
    const quint64 generation = ++m_generation;
    m_pending = true;
    refreshStatus();
    m_library->requestSteps(ref, steps, [this, generation](Result<std::shared_ptr<const RunView>> view) {
        if (arrived(generation, view)) present(*view, true);
    });
}

// Whether an answer is still wanted and good; a bad one is reported.
bool MainWindow::arrived(quint64 generation, const Result<std::shared_ptr<const RunView>>& view)
{
    if (generation != m_generation) return false;
    m_pending = false;
    const bool listed = view && runs()->files().contains((*view)->ref.file); // else it was closed while it was read
    if (listed) return true;
    if (!view) m_banner->showError(QString(), view.error());
    if (view && !m_shown) setMode(Mode::Empty);
    refreshStatus();
    return false;
}

void MainWindow::timesChanged()
{
    m_state->notifyUnits();
    if (m_mode == Mode::Run && m_shown) {
        const SpanRef selected = m_state->selected();
        m_side->setRun(m_shown->run, m_shown->figures);
        applyBudget();
        if (m_slack) m_side->setSlack(m_slack);
        m_side->setSelection(selected.valid() && selected.panel == 0 && !showsToolPicture() ? selected.span : noSpan);
        emit m_state->selectionChanged(); // the range, if one is selected
    } else if (m_mode == Mode::Compare && m_shown && m_other) {
        m_comparePanel->setComparison(m_shown->run, m_other->run, m_comparison);
    }
    refreshStatus();
}

void MainWindow::chooseSteps()
{
    if (m_mode != Mode::Run || !m_shown) return;
    const int all = m_shown->stepCount;
    const ShownSteps now = m_shown->steps.value_or(ShownSteps{m_shown->step, m_shown->step});
    auto* dialog = new QDialog(this);
    dialog->setObjectName(QStringLiteral("chooseSteps"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Steps on one axis"));
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    QSpinBox* boxes[2] = {};
    const QString names[2] = {tr("&From step"), tr("&To step")};
    for (int i = 0; i < 2; ++i) {
        boxes[i] = new QSpinBox(dialog);
        boxes[i]->setRange(1, all);
        boxes[i]->setValue((i == 0 ? now.first : now.last) + 1);
        auto* label = new QLabel(names[i], dialog);
        label->setBuddy(boxes[i]);
        layout->addWidget(label, i, 0);
        layout->addWidget(boxes[i], i, 1);
    }
    layout->addWidget(makeLabel(tr("Of %1 steps. The side panel keeps the figures of the median step.").arg(all), "secondary", dialog), 2, 0, 1, 2);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Show"));
    buttons->button(QDialogButtonBox::Ok)->setObjectName(QStringLiteral("primary"));
    layout->addWidget(buttons, 3, 0, 1, 2);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, ref = m_shown->ref, from = boxes[0], to = boxes[1]] {
        const int first = std::min(from->value(), to->value()) - 1, last = std::max(from->value(), to->value()) - 1;
        dialog->accept();
        if (first == last)
            showRun(ref, first);
        else
            showSteps(ref, {first, last});
    });
    connect(dialog, &QDialog::finished, this, &MainWindow::fillSteps); // the box shows what is shown
    dialog->open();
}

void MainWindow::showEveryStep(const RunRef& ref, int detail, std::function<void()> then)
{
    if (!ref.valid()) return;
    m_followLive = false;
    const quint64 generation = ++m_generation;
    m_pending = true;
    refreshStatus();
    auto show = [this, generation](const std::shared_ptr<const RunView>& view) {
        if (!runs()->files().contains(view->ref.file)) { // closed while it was read
            if (!m_shown) setMode(Mode::Empty);
            refreshStatus();
            return false;
        }
        const bool same = m_mode == Mode::Run && m_shown && m_shown->ref == view->ref && m_shown->panel->isPart();
        if (same) { // ids are those of another step
            m_state->setHovered({});
            m_state->select({});
        }
        present(view, !same);
        return true;
    };
    m_library->requestEveryStep(
        ref, detail,
        [this, generation, show](const std::shared_ptr<const RunView>& overview) {
            if (generation == m_generation) show(overview);
        },
        [this, generation, ref, detail, show, then = std::move(then)](Result<std::shared_ptr<const RunView>> view) {
            if (generation != m_generation) return;
            m_pending = false;
            if (!view && view.error().code == ErrorCode::Cancelled) {
                showRun(ref, detail); // a step instead of an overview that would never become exact
                return;
            }
            if (!view) {
                m_banner->showError(QString(), view.error());
                if (m_shown && m_shown->panel->overview) showRun(ref, detail);
                refreshStatus();
                return;
            }
            if (show(*view) && then) then();
        });
}

void MainWindow::present(const std::shared_ptr<const RunView>& view, bool fit)
{
    const bool first = m_mode == Mode::Empty;
    m_editor->stop();
    m_editSource.reset();
    m_shown = view;
    m_other.reset();
    m_comparison.reset();
    if (fit) m_state->clearSelection();
    m_state->setStep(view->steps ? -1 : view->step);
    m_timeline->setPanels({view->panel});
    m_memory->setPanels({view->panel});
    m_legend->setPanels({view->panel});
    applyBudget();
    m_side->setRun(view->run, view->figures);
    setMode(Mode::Run);
    if (m_tool != Tool::None) setTool(m_tool); // the same question of another run
    resetGaps();
    m_runsPanel->setCurrent(view->ref);
    if (fit) {
        splitViews();
        m_state->fitAll();
        m_state->clearHistory();
    }
    tellDamage({view.get()});
    if (view->partial && view->panel->isPart() && !view->panel->overview && !m_damageTold)
        m_banner->showNote(tr("A step of this run has more than %L1 ops: it is drawn without causes, arrows and op details. "
                              "stagewright report computes its figures.")
                               .arg(detailedSpans));
    if (m_selectLater != noSpan) selectOp(std::exchange(m_selectLater, noSpan));
    selectionChanged();
    if (first) m_timeline->setFocus();
    ready();
}

void MainWindow::showCompare(const RunRef& a, const RunRef& b) { m_compare->show({a, b}); }

// Skipped data is reported once, over the work area.
void MainWindow::tellDamage(std::initializer_list<const RunView*> views)
{
    QStringList damaged;
    for (const RunView* view : views) {
        const auto blocks = view->run->info.damagedBlocks;
        if (blocks > 0)
            damaged << (blocks == 1 ? tr("one damaged block of %1 was skipped").arg(runTitle(view->run->info))
                                    : tr("%2 damaged blocks of %1 were skipped").arg(runTitle(view->run->info), QString::number(blocks)));
    }
    if (damaged.isEmpty()) {
        if (m_damageTold) m_banner->clear();
        m_damageTold = false;
        return;
    }
    m_banner->showError(damaged.join(QStringLiteral("; ")), tr("pictures and figures cover only what could be read; use a backup of the file"));
    m_damageTold = true;
}

void MainWindow::fillSteps()
{
    m_steps->clear();
    const bool shown = m_mode == Mode::Run && m_shown && m_shown->stepCount > 1;
    m_steps->setEnabled(shown);
    if (!shown) {
        m_steps->addItem(m_mode == Mode::Run ? tr("One step") : tr("Step"));
        return;
    }
    const Run& run = *m_shown->run;
    const int steps = m_shown->stepCount;
    const int median = m_shown->median;
    for (int step = 0; step < steps; ++step) {
        QString text = tr("Step %1 of %2").arg(step + 1).arg(steps);
        if (step < run.info.warmupSteps)
            text += tr(", warm-up");
        else if (step == median)
            text += tr(", median");
        m_steps->addItem(text, step);
    }
    m_steps->insertSeparator(m_steps->count());
    const bool part = m_shown->steps && (m_shown->steps->first > 0 || m_shown->steps->last < steps - 1);
    if (part) m_steps->addItem(tr("Steps %1 to %2").arg(m_shown->steps->first + 1).arg(m_shown->steps->last + 1), -1);
    m_steps->addItem(tr("All %1 steps").arg(steps), -2);
    m_steps->addItem(tr("Choose steps…"), -3);
    m_steps->setCurrentIndex(m_shown->steps ? m_steps->findData(part ? -1 : -2) : m_shown->step);
}

void MainWindow::stepBy(int by)
{
    if (m_mode != Mode::Run || !m_shown) return;
    const int next = m_shown->step + by;
    if (next >= 0 && next < m_shown->stepCount) showRun(m_shown->ref, next);
}

void MainWindow::selectionChanged()
{
    const SpanRef selected = m_state->selected();
    if (m_mode == Mode::Run && !showsToolPicture() && (!selected.valid() || selected.panel == 0)) m_side->setSelection(selected.valid() ? selected.span : noSpan);
    if (m_tool == Tool::Residuals) m_residuals->setSelected(selected.valid() ? selected.span : noSpan);
    if (m_mode == Mode::Run) askSlack();
    refreshActions();
}

void MainWindow::find(const QString& text, bool backward) { m_search->find(text, backward); }

void MainWindow::runMenu(const QPoint& at, const RunRef& ref, const QString& file)
{
    QMenu menu(this);
    if (ref.valid()) {
        menu.addAction(tr("Show"), this, [this, ref] { showRun(ref); });
        QAction* compare = menu.addAction(tr("Compare with the run shown"), this, [this, ref] { showCompare(m_shown->ref, ref); });
        compare->setEnabled(m_shown && !(m_shown->ref == ref));
        menu.addAction(tr("Use as baseline"), this, [this, ref] { m_compare->setBaseline(ref); });
        menu.addSeparator();
        WindowSet::instance().addMenu(menu, *this, ref);
        const bool stored = !m_library->isSimulated(ref.file);
        menu.addAction(tr("Rename…"), this, [this, ref] {
                const RunInfo* info = runs()->info(ref);
                if (info == nullptr) return;
                bool ok = false;
                const QString name = QInputDialog::getText(this, tr("Rename the run"), tr("Name"), QLineEdit::Normal, QString::fromStdString(info->name), &ok);
                if (ok && !name.trimmed().isEmpty()) m_library->rename(ref, name.trimmed());
            })
            ->setEnabled(stored);
        menu.addAction(tr("Delete from the file"), this, [this, ref] {
                if (m_shown && m_shown->ref == ref) {
                    const auto refs = runs()->refs();
                    const auto other = std::find_if(refs.begin(), refs.end(), [&](const RunRef& one) { return !(one == ref); });
                    if (other != refs.end())
                        showRun(*other);
                    else
                        setMode(Mode::Empty);
                }
                m_library->remove(ref);
            })
            ->setEnabled(stored);
        menu.addSeparator();
    }
    if (!file.isEmpty()) {
        menu.addAction(tr("Read the file again"), this, [this, file] { m_library->reload(file); });
        menu.addAction(tr("Copy its path"), this, [file] { QApplication::clipboard()->setText(file); });
    }
    menu.addSeparator();
    addCopyActions(&menu, m_runsPanel, [this] { return m_runsPanel->table(); });
    menu.exec(at);
}

void MainWindow::spanMenu(const QPoint& at, SpanRef ref)
{
    QMenu menu(this);
    if (ref.valid()) {
        m_state->select(ref);
        menu.addAction(tr("Fit this op"), this, [this, ref] { m_timeline->fitSpan(ref); });
        menu.addAction(tr("Copy its details"), this, [this, ref] { QApplication::clipboard()->setText(m_timeline->cardOf(ref).plain()); });
        if (m_mode == Mode::Edit) {
            menu.addSeparator();
            for (const ActionId id : {ActionId::CutOps, ActionId::CopyOps, ActionId::PasteOps, ActionId::RemoveOps, ActionId::InsertDelay, ActionId::SplitBackward, ActionId::MergeBackward, ActionId::InsertRecompute,
                                      ActionId::FillGap, ActionId::SnapOps, ActionId::ChooseMicrobatch})
                menu.addAction((*m_actions)[id]);
        }
        menu.addSeparator();
    }
    for (const ActionId id : {ActionId::Fit, ActionId::EditMode, ActionId::Compare, ActionId::ExportPicture, ActionId::ExportChrome})
        menu.addAction((*m_actions)[id]);
    menu.exec(at);
}

} // namespace stagewright
