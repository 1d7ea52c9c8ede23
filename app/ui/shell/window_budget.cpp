// The memory budget of a rank: its dialog, its storage, and passing it to everything that draws or counts with it.
#include <QDialog>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/shell/main_window.h"
#include "widgets/style.h"

namespace stagewright {

Units MainWindow::shownUnits() const
{
    return m_shown ? m_shown->panel->units : Units{};
}

void MainWindow::restoreBudget()
{
    const QSettings settings;
    MemoryBudget budget;
    if (const qlonglong bytes = settings.value(QStringLiteral("memory/budgetBytes")).toLongLong(); bytes > 0) budget.bytes = bytes;
    if (const double units = settings.value(QStringLiteral("memory/budgetUnits")).toDouble(); units > 0) budget.units = units;
    m_library->setBudget(budget);
}

Result<void> MainWindow::setMemoryBudget(const QString& text)
{
    MemoryBudget budget = m_library->budget();
    if (auto done = budget.set(text, shownUnits()); !done) return done;
    QSettings settings;
    settings.setValue(QStringLiteral("memory/budgetBytes"), static_cast<qlonglong>(budget.bytes.value_or(0)));
    settings.setValue(QStringLiteral("memory/budgetUnits"), budget.units.value_or(0));
    m_library->setBudget(budget);
    applyBudget();
    if (m_mode == Mode::Edit) {
        m_edit->redraw();
    } else if (m_mode == Mode::Run && m_shown && !m_shown->partial) {
        // The same step again, with its causes recounted.
        if (m_shown->panel->isPart()) {
            showEveryStep(m_shown->ref, m_shown->step);
            return {};
        }
        const quint64 generation = ++m_generation;
        m_pending = true;
        const auto answer = [this, generation](Result<std::shared_ptr<const RunView>> view) {
            if (generation != m_generation) return;
            m_pending = false;
            if (view) present(*view, false);
        };
        if (m_shown->steps)
            m_library->requestSteps(m_shown->ref, *m_shown->steps, answer);
        else
            m_library->request(m_shown->ref, m_shown->step, answer);
    }
    return {};
}

std::optional<Bytes> MainWindow::budgetOfRank() const { return m_library->budget().of(shownUnits()); }

void MainWindow::applyBudget()
{
    const auto budget = m_library->budget().of(shownUnits());
    m_memory->setBudget(budget);
    m_side->setBudget(budget);
}

void MainWindow::askBudget()
{
    auto* dialog = new QDialog(this);
    dialog->setObjectName(QStringLiteral("memoryBudget"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Memory budget"));
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    const Units units = shownUnits();
    auto* label = makeLabel(tr("Activation memory per rank"), "secondary", dialog);
    auto* field = new QLineEdit(m_library->budget().text(units), dialog);
    field->setPlaceholderText(units.memory == 1 ? tr("none, e.g. 6 MiB") : tr("none, e.g. 3 u"));
    field->setMinimumWidth(180);
    field->selectAll();
    label->setBuddy(field);
    auto* fault = makeLabel({}, "worse", dialog);
    fault->setWordWrap(true);
    fault->hide();
    auto* note = makeLabel(tr("Drawn as a dashed line in the memory charts. Idle time that only more memory would have filled counts as "
                              "memory, not as order. Empty: no budget."),
                           "secondary", dialog);
    note->setWordWrap(true);
    layout->addWidget(label, 0, 0);
    layout->addWidget(field, 0, 1);
    layout->addWidget(note, 1, 0, 1, 2);
    layout->addWidget(fault, 2, 0, 1, 2);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Set"));
    buttons->button(QDialogButtonBox::Ok)->setObjectName(QStringLiteral("primary"));
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

} // namespace stagewright
