#include "widgets/edit/edit_panel.h"

#include <algorithm>

#include <QAction>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QToolButton>

#include "schedules/base/op_number.h"
#include "schedules/library/registry.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr std::size_t mostRanks = 32;
constexpr std::size_t faultsTold = 3;

QPushButton* button(const QString& text, const QString& tooltip, QWidget* parent)
{
    auto* made = new QPushButton(text, parent);
    made->setToolTip(tooltip);
    made->setAutoDefault(false);
    made->setFocusPolicy(Qt::TabFocus); // one that its own click disables would hand the keys to its neighbour
    made->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    return made;
}

QWidget* row(std::initializer_list<QWidget*> parts)
{
    auto* widget = new QWidget;
    auto* layout = new QHBoxLayout(widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    for (QWidget* one : parts) layout->addWidget(one, one->sizeHint().width()); // each as its text needs
    return widget;
}

document::Tone toneOf(double delta)
{
    return delta == 0 ? document::Tone::Plain : (delta < 0 ? document::Tone::Good : document::Tone::Bad);
}

QString signedBytes(Bytes bytes, const Units& units)
{
    if (bytes == 0) return u"0"_s;
    return (bytes < 0 ? QString(QChar(0x2212)) : u"+"_s) + bytesText(std::abs(bytes), units);
}

} // namespace

EditPanel::EditPanel(ScheduleEditor* editor, QWidget* parent) : SectionColumn(parent), m_editor(editor)
{
    m_run = button(u"Run it"_s, u"Trains this order for real with the original's setup and compares the two."_s, this);
    m_run->setObjectName(u"primary"_s);
    m_done = button(u"Leave edit mode"_s,
                    u"Back to the run (E). A changed, valid order stays in the list as a simulated run."_s, this);
    m_undo = button(u"Undo"_s, u"Ctrl+Z"_s, this);
    m_redo = button(u"Redo"_s, u"Ctrl+Shift+Z"_s, this);
    m_revert = button(u"Original"_s, u"Back to the original order; can be undone."_s, this);
    m_deadlock = button(u"Show the cycle…"_s, u"Shows the waits on the lists, and a change that removes them."_s, this);
    m_reference = new QComboBox(this);
    m_reference->setAccessibleName(u"Compare with a library schedule"_s);
    m_reference->setToolTip(u"A library schedule for the same ranks, microbatches and costs: its figures below, its "
                            "ops as outlines on the canvas."_s);
    m_reference->addItem(u"Compare with the library…"_s, QString());
    for (const ScheduleInfo& info : allSchedules())
        m_reference->addItem(QString::fromUtf8(info.title.data(), static_cast<qsizetype>(info.title.size())),
                             QString::fromUtf8(info.name.data(), static_cast<qsizetype>(info.name.size())));
    m_reference->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_reference->setMinimumContentsLength(12);
    m_reference->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);

    addWidget(row({m_run, m_done}));
    m_state = addSection(u"Edited order"_s);
    addWidget(m_deadlock);
    addWidget(row({m_undo, m_redo, m_revert}));
    m_figures = addSection(u"Figures"_s);
    addWidget(m_reference);
    m_op = addSection(u"Selected ops"_s);
    m_opButtons = new QWidget;
    m_opButtons->setLayout(new QGridLayout);
    m_opButtons->layout()->setContentsMargins(0, 0, 0, 0);
    static_cast<QGridLayout*>(m_opButtons->layout())->setSpacing(6);
    addWidget(m_opButtons);
    m_ranks = addSection(u"By rank"_s);
    finish();

    m_soon.setSingleShot(true);
    m_soon.setInterval(60);
    connect(&m_soon, &QTimer::timeout, this, &EditPanel::refreshFigures);
    connect(m_editor, &ScheduleEditor::edited, this, &EditPanel::refresh);
    connect(m_editor, &ScheduleEditor::previewed, this, [this] {
        if (!m_soon.isActive()) m_soon.start();
    });
    connect(m_undo, &QPushButton::clicked, m_editor->undoStack(), &QUndoStack::undo);
    connect(m_redo, &QPushButton::clicked, m_editor->undoStack(), &QUndoStack::redo);
    connect(m_editor->undoStack(), &QUndoStack::indexChanged, this, &EditPanel::refresh);
    connect(m_revert, &QPushButton::clicked, m_editor, &ScheduleEditor::revert);
    connect(m_run, &QPushButton::clicked, this, &EditPanel::runAsked);
    connect(m_done, &QPushButton::clicked, this, &EditPanel::doneAsked);
    connect(m_deadlock, &QPushButton::clicked, this, &EditPanel::deadlockAsked);
    connect(m_reference, &QComboBox::activated, this,
            [this](int index) { emit referenceChosen(m_reference->itemData(index).toString()); });
    refresh();
}

void EditPanel::setOpActions(const QList<QAction*>& actions)
{
    auto* grid = static_cast<QGridLayout*>(m_opButtons->layout());
    int at = 0;
    for (QAction* action : actions) {
        auto* made = button({}, {}, m_opButtons);
        auto follow = [made, action] {
            made->setText(action->iconText());
            made->setToolTip(action->toolTip());
            made->setEnabled(action->isEnabled());
        };
        follow();
        connect(action, &QAction::changed, made, follow);
        connect(made, &QPushButton::clicked, action, &QAction::trigger);
        made->setMinimumWidth(40); // the panel is as wide as the user wants it
        made->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        grid->addWidget(made, at / 2, at % 2);
        ++at;
    }
}

void EditPanel::setSource(const QString& name, const QString& costs, const StepSample& steps)
{
    m_steps = steps;
    m_source = name;
    m_costs = costs;
    refresh();
}

void EditPanel::setSplitNote(const QString& text)
{
    if (text == m_splitNote) return;
    m_splitNote = text;
    refresh();
}

void EditPanel::setChosen(const std::vector<OpPosition>& positions)
{
    if (positions == m_chosen) return;
    m_chosen = positions;
    refresh();
}

void EditPanel::setCanRun(bool can, const QString& whyNot)
{
    if (can == m_canRun && whyNot == m_whyNot) return;
    m_canRun = can;
    m_whyNot = whyNot;
    refresh();
}

void EditPanel::setRecognised(const QString& text, const QString& tooltip)
{
    m_recognised = text;
    m_recognisedTip = tooltip;
    refresh();
}

void EditPanel::setReference(const Reference& reference)
{
    m_against = reference;
    const int at = m_reference->findData(reference.name);
    m_reference->setCurrentIndex(std::max(0, at));
    refreshFigures();
}

void EditPanel::refresh()
{
    m_state->clear();
    m_op->clear();
    if (!m_editor->active()) {
        m_figures->clear();
        m_ranks->clear();
        return;
    }
    const Schedule& shown = m_editor->shown();
    const QUndoStack& undo = *m_editor->undoStack();
    m_state->addRow(u"Schedule"_s, m_source);
    m_state->addRow(u"Timed with"_s, m_costs, u"The costs used to simulate the order."_s);
    const auto isSplit = [](const auto& row) {
        return std::any_of(row.begin(), row.end(), [](const Op& op) { return isSplitBackward(op.kind); });
    };
    if (!m_splitNote.isEmpty() && std::any_of(shown.order.begin(), shown.order.end(), isSplit))
        m_state->addText(m_splitNote, "secondary");
    m_state->addRow(u"Recognised as"_s, m_recognised.isEmpty() ? u"…"_s : m_recognised, m_recognisedTip);
    m_state->addRow(u"Changes"_s, undo.count() == 0 ? u"none"_s : u"%1 of %2"_s.arg(undo.index()).arg(undo.count()),
                    u"How many of the changes you made can be undone."_s);
    if (undo.canUndo()) m_state->addRow(u"Last"_s, undo.undoText(), u"Ctrl+Z undoes it."_s);
    if (!m_editor->complete())
        m_state->addRow(u"To place"_s,
                        countText(static_cast<qint64>(m_editor->unplaced().size()), u"1 op"_s, u"%L1 ops"_s),
                        u"Ops that the shape needs but no rank has yet; they are in the tray under the canvas."_s,
                        document::Tone::Strong);
    const auto& found = m_editor->validation().faults;
    const bool onlyMissing = !m_editor->complete() && std::all_of(found.begin(), found.end(), [](const Fault& fault) {
        return fault.kind == FaultKind::Count || fault.kind == FaultKind::Deadlock;
    });
    if (onlyMissing) {
        m_state->addRow(u"Valid"_s, u"so far"_s, u"The ops placed so far fit together; some are still missing."_s,
                        document::Tone::Faint);
    } else if (m_editor->valid()) {
        m_state->addRow(u"Valid"_s, u"yes"_s,
                        u"The number of ops and their order on each rank are right, and there is no deadlock."_s,
                        document::Tone::Good);
    } else {
        const auto& faults = m_editor->validation().faults;
        m_state->addRow(u"Valid"_s, faults.size() == 1 ? u"no, one fault"_s : u"no, %L1 faults"_s.arg(faults.size()),
                        {}, document::Tone::Bad);
        for (std::size_t i = 0; i < faults.size() && i < faultsTold; ++i) {
            m_state->addText(sentence(QString::fromStdString(faults[i].message)), "worse");
            if (!faults[i].remedy.empty())
                m_state->addText(sentence(QString::fromStdString(faults[i].remedy)), "secondary");
        }
    }

    const Op* first = m_chosen.empty() ? nullptr : opAt(shown, m_chosen.front());
    if (first != nullptr && m_chosen.size() == 1)
        m_op->addRow(QString::fromStdString(toText(*first)),
                     u"rank %1, op %2 of %3"_s.arg(m_chosen.front().rank)
                         .arg(opNumber(m_chosen.front().position))
                         .arg(shown.order[static_cast<std::size_t>(m_chosen.front().rank)].size()));
    else if (first != nullptr)
        m_op->addRow(countText(static_cast<qint64>(m_chosen.size()), u"1 op"_s, u"%L1 ops"_s),
                     QString::fromStdString(toText(*first)) + u" …"_s,
                     u"They move, copy, split and are removed together."_s);
    else
        m_op->addText(u"Drag an op along its rank. To select ops, click, Ctrl+click or drag over an area; then use "
                      "the buttons or the menu Schedule."_s,
                      "faint");
    m_deadlock->setVisible(!m_editor->validation().cycle.empty());
    m_undo->setEnabled(undo.canUndo());
    m_undo->setToolTip(undo.canUndo() ? u"%1 (Ctrl+Z)"_s.arg(undo.undoText()) : u"Ctrl+Z"_s);
    m_redo->setEnabled(undo.canRedo());
    m_redo->setToolTip(undo.canRedo() ? u"%1 (Ctrl+Shift+Z)"_s.arg(undo.redoText()) : u"Ctrl+Shift+Z"_s);
    m_revert->setEnabled(m_editor->changed());
    m_run->setEnabled(m_editor->valid() && m_canRun);
    m_run->setToolTip(
        !m_editor->valid()
            ? u"An order with a fault can't run."_s
            : (m_canRun ? u"Trains this order for real with the original's setup and compares the two (Ctrl+Return)."_s
                        : m_whyNot));
    refreshFigures();
}

void EditPanel::refreshFigures()
{
    m_figures->clear();
    m_ranks->clear();
    if (!m_editor->active()) return;
    const Units units{m_editor->costs().timeUnit, m_editor->costs().memoryUnit};
    const EditFigures& now = m_editor->figures();
    struct Against {
        QString name;
        const EditFigures* figures;
    };
    const bool counts = m_editor->complete(); // figures of a partial order can't be compared
    std::vector<Against> others;
    // started from an empty canvas: none
    if (counts && m_editor->original().opCount() > 0)
        others.push_back({u"the original"_s, &m_editor->originalFigures()});
    if (counts && !m_against.name.isEmpty() && m_against.fault.isEmpty())
        others.push_back({m_against.title, &m_against.figures});
    auto share = [](Nanos before, Nanos after) {
        return before > 0 ? u" (%1)"_s.arg(changeText(static_cast<double>(before), static_cast<double>(after)))
                          : QString();
    };
    m_figures->addRow(counts ? u"Step time"_s : u"Time so far"_s, durationText(now.makespan, units),
                      figureMeaning("makespan"), document::Tone::Strong);
    for (const auto& [name, was] : others) {
        const Nanos change = now.makespan - was->makespan;
        const NoiseVerdict noise = verdictOn(change, m_steps, m_steps);
        QString tip = u"%1: %2, with the same costs."_s.arg(sentence(name), durationText(was->makespan, units));
        if (change != 0 && !noise.shows)
            tip +=
                u'\n' + (noise.spread ? u"Within the noise of the run's steps, ±%1: a recording may not show it."_s.arg(
                                            durationText(*noise.spread, units))
                                      : u"The noise of the run is unknown: it has too few steps."_s);
        m_figures->addRow(u"against %1"_s.arg(name),
                          signedDurationText(change, units) + share(was->makespan, now.makespan), tip,
                          noise.shows ? toneOf(static_cast<double>(change)) : document::Tone::Plain);
    }
    m_figures->addRow(u"Bubble ratio"_s, percentText(now.bubbleFraction), figureMeaning("bubble_fraction"),
                      document::Tone::Strong);
    for (const auto& [name, was] : others) {
        const double points = 100 * (now.bubbleFraction - was->bubbleFraction);
        m_figures->addRow(u"against %1"_s.arg(name), u"%1 points"_s.arg(signedFixed(points, 1)),
                          u"%1: %2."_s.arg(sentence(name), percentText(was->bubbleFraction)),
                          std::abs(points) < 0.05 || !verdictOn(now.makespan - was->makespan, m_steps, m_steps).shows
                              ? document::Tone::Plain
                              : toneOf(points));
    }
    if (now.peakActivation > 0 || m_editor->originalFigures().peakActivation > 0) {
        m_figures->addRow(u"Peak activation (rank %1)"_s.arg(now.peakRank), bytesText(now.peakActivation, units),
                          figureMeaning("peak_activation"), document::Tone::Strong);
        for (const auto& [name, was] : others)
            m_figures->addRow(
                u"against %1"_s.arg(name), signedBytes(now.peakActivation - was->peakActivation, units),
                u"%1: %2 on rank %3."_s.arg(sentence(name), bytesText(was->peakActivation, units)).arg(was->peakRank),
                toneOf(static_cast<double>(now.peakActivation - was->peakActivation)));
    }
    if (!m_against.fault.isEmpty()) m_figures->addText(sentence(m_against.fault), "worse");
    if (!m_editor->valid())
        m_figures->addText(u"An order that can't run is timed as if the missing inputs were there."_s, "faint");

    const EditFigures& was = m_editor->originalFigures();
    for (std::size_t r = 0; r < now.busy.size() && r < mostRanks; ++r) {
        const double busy = now.window > 0 ? static_cast<double>(now.busy[r]) / static_cast<double>(now.window) : 0;
        const double before = was.window > 0 && r < was.busy.size()
                                  ? static_cast<double>(was.busy[r]) / static_cast<double>(was.window)
                                  : 0;
        const Bytes peak = r < now.peaks.size() ? now.peaks[r] : 0;
        const Bytes peakBefore = r < was.peaks.size() ? was.peaks[r] : 0;
        QString text = u"busy %1"_s.arg(percentText(busy, 0));
        if (peak > 0 || peakBefore > 0) text += u"  peak %1"_s.arg(bytesText(peak, units));
        if (peak != peakBefore) text += u" (%1)"_s.arg(signedBytes(peak - peakBefore, units));
        m_ranks->addRow(
            u"Rank %1"_s.arg(r), text,
            u"Share of the step in which the rank computes, and its peak of activations. Original: busy %1, peak %2."_s
                .arg(percentText(before, 0), bytesText(peakBefore, units)),
            toneOf(static_cast<double>(peak - peakBefore)));
    }
    if (now.busy.size() > mostRanks)
        m_ranks->addText(u"and %1 more; see the gutter of the canvas"_s.arg(now.busy.size() - mostRanks), "faint");
    // Shown at once: figures that follow a drag must not blink.
    for (PanelSection* section : {m_figures, m_ranks}) {
        for (QWidget* child : section->findChildren<QWidget*>()) child->show();
        if (section->layout() != nullptr) section->layout()->activate();
    }
}

} // namespace stagewright
