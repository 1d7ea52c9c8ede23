#include "widgets/edit/edit_panel.h"

#include <QHBoxLayout>
#include <QPushButton>

#include "widgets/numbers.h"
#include "widgets/panel/style.h"

namespace stagewright {
namespace {

QPushButton* button(const QString& text, const QString& tooltip, QWidget* parent)
{
    auto* made = new QPushButton(text, parent);
    made->setToolTip(tooltip);
    made->setAutoDefault(false);
    return made;
}

QWidget* row(std::initializer_list<QPushButton*> buttons)
{
    auto* widget = new QWidget;
    auto* layout = new QHBoxLayout(widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    for (QPushButton* one : buttons)
        layout->addWidget(one, 1);
    return widget;
}

} // namespace

EditPanel::EditPanel(ScheduleEditor* editor, QWidget* parent) : SectionColumn(parent), m_editor(editor)
{
    m_run = button(tr("Run it"), tr("Trains this order for real, as the original was, and compares the two."), this);
    m_run->setObjectName(QStringLiteral("primary"));
    m_done = button(tr("Leave edit mode"), tr("Back to the run (E). The order stays until another is edited."), this);
    m_undo = button(tr("Undo"), tr("Ctrl+Z"), this);
    m_redo = button(tr("Redo"), tr("Ctrl+Shift+Z"), this);
    m_revert = button(tr("Original"), tr("Back to the original order; can be undone."), this);
    m_left = button(tr("◂ Earlier"), tr("One place earlier on its rank (Ctrl+Left)."), this);
    m_right = button(tr("Later ▸"), tr("One place later on its rank (Ctrl+Right)."), this);
    m_delay = button(tr("Insert delay"), tr("A wanted wait before this op, as long as the op itself."), this);
    m_removeDelay = button(tr("Remove delay"), tr("Takes this delay out again."), this);

    m_deadlock = button(tr("Show the circle…"), tr("The waits drawn on the lists, and a change that removes them."), this);
    addWidget(row({m_run, m_done}));
    m_state = addSection(tr("Edited order"));
    addWidget(m_deadlock);
    m_figures = addSection(tr("Against the original"));
    addWidget(row({m_undo, m_redo, m_revert}));
    m_op = addSection(tr("Selected op"));
    addWidget(row({m_left, m_right}));
    addWidget(row({m_delay, m_removeDelay}));
    m_text = addSection(tr("Schedule text"));
    finish();

    connect(m_editor, &ScheduleEditor::edited, this, &EditPanel::refresh);
    connect(m_undo, &QPushButton::clicked, m_editor->undoStack(), &QUndoStack::undo);
    connect(m_redo, &QPushButton::clicked, m_editor->undoStack(), &QUndoStack::redo);
    connect(m_editor->undoStack(), &QUndoStack::indexChanged, this, &EditPanel::refresh);
    connect(m_revert, &QPushButton::clicked, m_editor, &ScheduleEditor::revert);
    connect(m_run, &QPushButton::clicked, this, &EditPanel::runAsked);
    connect(m_done, &QPushButton::clicked, this, &EditPanel::doneAsked);
    connect(m_delay, &QPushButton::clicked, this, &EditPanel::delayAsked);
    connect(m_deadlock, &QPushButton::clicked, this, &EditPanel::deadlockAsked);
    connect(m_left, &QPushButton::clicked, this, [this] { m_editor->nudge(m_selected, -1); });
    connect(m_right, &QPushButton::clicked, this, [this] { m_editor->nudge(m_selected, 1); });
    connect(m_removeDelay, &QPushButton::clicked, this, [this] { m_editor->removeDelay(m_selected); });
    refresh();
}

void EditPanel::setSource(const QString& name, const QString& costs)
{
    m_source = name;
    m_costs = costs;
    refresh();
}

void EditPanel::setSelected(OpPosition position)
{
    m_selected = position;
    refresh();
}

void EditPanel::setCanRun(bool can, const QString& whyNot)
{
    m_canRun = can;
    m_whyNot = whyNot;
    refresh();
}

void EditPanel::refresh()
{
    for (PanelSection* section : {m_state, m_figures, m_op, m_text})
        section->clear();
    if (!m_editor->active()) return;
    const Schedule& shown = m_editor->shown();
    const Units units{m_editor->costs().timeUnit, m_editor->costs().memoryUnit};

    m_state->addRow(tr("Schedule"), m_source);
    m_state->addRow(tr("Timed with"), m_costs, tr("Durations the order is simulated with."));
    m_state->addRow(tr("Changes"), m_editor->undoStack()->count() == 0 ? tr("none") : tr("%1 of %2").arg(m_editor->undoStack()->index()).arg(m_editor->undoStack()->count()));
    if (m_editor->valid()) {
        m_state->addRow(tr("Valid"), tr("yes"), tr("Counts, order on each rank, and no rank waits in a circle."), PanelSection::Tone::Better);
    } else {
        m_state->addRow(tr("Valid"), m_editor->validation().faults.size() == 1 ? tr("no, one fault") : tr("no, %1 faults").arg(m_editor->validation().faults.size()), {}, PanelSection::Tone::Worse);
        QString message = QString::fromStdString(m_editor->validation().faults.front().message);
        if (!message.isEmpty()) message[0] = message[0].toUpper();
        m_state->addText(message, "worse");
        m_state->addText(tr("Both ops are outlined. Move one of them back, or undo."), "secondary");
    }

    const EditFigures& now = m_editor->figures();
    const EditFigures& was = m_editor->originalFigures();
    auto tone = [](double delta) {
        return delta == 0 ? PanelSection::Tone::Plain : (delta < 0 ? PanelSection::Tone::Better : PanelSection::Tone::Worse);
    };
    const Nanos time = now.makespan - was.makespan;
    m_figures->addRow(tr("Time of a step"), durationText(now.makespan, units), definition::makespan());
    m_figures->addRow(tr("change"), tr("%1 (%2 %)").arg(signedDurationText(time, units), was.makespan > 0 ? signedFixed(100.0 * static_cast<double>(time) / static_cast<double>(was.makespan), 1) : QStringLiteral("0")),
                      tr("Against the original order with the same costs, %1.").arg(durationText(was.makespan, units)), tone(static_cast<double>(time)));
    const double points = 100 * (now.bubbleFraction - was.bubbleFraction);
    m_figures->addRow(tr("Bubble ratio"), percentText(now.bubbleFraction), definition::bubbleRatio());
    m_figures->addRow(tr("change"), tr("%1 points").arg(signedFixed(points, 1)), tr("Original: %1.").arg(percentText(was.bubbleFraction)), tone(std::abs(points) < 0.05 ? 0 : points));
    if (was.peakActivation > 0) {
        const Bytes bytes = now.peakActivation - was.peakActivation;
        m_figures->addRow(tr("Peak activation (rank %1)").arg(now.peakRank), bytesText(now.peakActivation, units), definition::peakActivation());
        m_figures->addRow(tr("change"), bytes == 0 ? QStringLiteral("0") : (bytes < 0 ? QString(QChar(0x2212)) : QStringLiteral("+")) + bytesText(std::abs(bytes), units),
                          tr("Original: %1 on rank %2.").arg(bytesText(was.peakActivation, units)).arg(was.peakRank), tone(static_cast<double>(bytes)));
    }
    if (!m_editor->valid()) m_figures->addText(tr("An order that can't run is timed as if what it waits for in vain were there."), "faint");

    const auto& order = shown.order;
    const bool onOp = m_selected.valid() && m_selected.rank < static_cast<int>(order.size()) &&
                      m_selected.position < static_cast<int>(order[static_cast<std::size_t>(m_selected.rank)].size());
    bool filler = false;
    if (onOp) {
        const Op& op = order[static_cast<std::size_t>(m_selected.rank)][static_cast<std::size_t>(m_selected.position)];
        filler = op.kind == OpKind::Filler;
        m_op->addRow(QString::fromStdString(toText(op)), tr("rank %1, place %2").arg(m_selected.rank).arg(m_selected.position));
    } else {
        m_op->addText(tr("Drag an op along its rank, or click one and use the buttons."), "faint");
    }
    m_left->setEnabled(onOp);
    m_right->setEnabled(onOp);
    m_delay->setEnabled(onOp);
    m_removeDelay->setVisible(onOp && filler);
    for (std::size_t r = 0; r < order.size() && r < 16; ++r) {
        QStringList cells;
        for (const Op& op : order[r])
            cells << QString::fromStdString(toText(op));
        m_text->addText(cells.join(QLatin1Char(' ')), "code");
    }
    m_deadlock->setVisible(!m_editor->validation().cycle.empty());
    m_undo->setEnabled(m_editor->undoStack()->canUndo());
    m_redo->setEnabled(m_editor->undoStack()->canRedo());
    m_revert->setEnabled(m_editor->changed());
    m_run->setEnabled(m_editor->valid() && m_canRun);
    m_run->setToolTip(!m_editor->valid() ? tr("An order with a fault can't run.")
                                         : (m_canRun ? tr("Trains this order for real, as the original was, and compares the two.") : m_whyNot));
}

} // namespace stagewright
