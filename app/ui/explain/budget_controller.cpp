#include "app/ui/explain/budget_controller.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"
#include "widgets/style.h"

namespace stagewright {

std::vector<ActionEntry> BudgetController::actionTable()
{
    return {
        item("memoryBudget", ActionGroup::AnalyseStep, u"Memory &budget…"_s, "Ctrl+M",
             u"How much activation memory a rank may use: the dashed line, the headroom, and idle time caused "
             "by memory"_s,
             {.at = 10}),
    };
}

BudgetController::BudgetController(Workspace& workspace) : Feature(workspace)
{
    const QSettings settings;
    MemoryBudget budget;
    if (const qlonglong bytes = settings.value(u"memory/budgetBytes"_s).toLongLong(); bytes > 0) budget.bytes = bytes;
    if (const double units = settings.value(u"memory/budgetUnits"_s).toDouble(); units > 0) budget.units = units;
    workspace.library()->setBudget(budget);
    connect(workspace.actions()["memoryBudget"], &QAction::triggered, this, &BudgetController::askBudget);
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        m_workspace.actions()["memoryBudget"]->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty);
    });
    connect(workspace.views().side, &SidePanel::budgetAsked, this, &BudgetController::askBudget);
}

Result<void> BudgetController::setMemoryBudget(const QString& text)
{
    MemoryBudget budget = m_workspace.library()->budget();
    if (auto done = budget.set(text, m_workspace.shown().units()); !done) return done;
    QSettings settings;
    settings.setValue(u"memory/budgetBytes"_s, static_cast<qlonglong>(budget.bytes.value_or(0)));
    settings.setValue(u"memory/budgetUnits"_s, budget.units.value_or(0));
    m_workspace.library()->setBudget(budget);
    m_workspace.shown().applyBudget();
    if (m_workspace.shown().mode() == Shown::Mode::Edit)
        m_workspace.feature<OrderEditing>()->redraw();
    else
        m_workspace.shown().showAgain();
    return {};
}

void BudgetController::askBudget()
{
    auto* dialog = new QDialog(m_workspace.window());
    dialog->setObjectName(u"memoryBudget"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"Memory budget"_s);
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    const Units units = m_workspace.shown().units();
    auto* label = makeLabel(u"Activation memory per rank"_s, "secondary", dialog);
    auto* field = new QLineEdit(m_workspace.library()->budget().text(units), dialog);
    field->setPlaceholderText(units.memory == 1 ? u"none, e.g. 6 MiB"_s : u"none, e.g. 3 microbatches"_s);
    field->setMinimumWidth(180);
    field->selectAll();
    label->setBuddy(field);
    auto* fault = makeLabel({}, "worse", dialog);
    fault->setWordWrap(true);
    fault->hide();
    auto* note = makeLabel(
        u"Drawn as a dashed line in the memory charts. Idle time that only more memory would have filled counts as "
        "memory, not as order. Empty: no budget."_s,
        "secondary", dialog);
    note->setWordWrap(true);
    layout->addWidget(label, 0, 0);
    layout->addWidget(field, 0, 1);
    layout->addWidget(note, 1, 0, 1, 2);
    layout->addWidget(fault, 2, 0, 1, 2);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Set"_s);
    buttons->button(QDialogButtonBox::Ok)->setObjectName(u"primary"_s);
    layout->addWidget(buttons, 3, 0, 1, 2);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, field, fault] {
        if (auto done = setMemoryBudget(field->text()); !done) {
            fault->setText(QString::fromStdString(done.error().message + "; " + done.error().remedy));
            fault->show();
            return;
        }
        dialog->accept();
    });
    dialog->open();
}

FeatureEntry budgetFeature() { return featureEntry<BudgetController>(); }

} // namespace stagewright
