#include "app/ui/edit/planner_panel.h"

#include <algorithm>

#include <QCheckBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QStyle>
#include <QVBoxLayout>

#include "widgets/explore/miniature.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

PlannerPanel::PlannerPanel(const Theme& theme, QWidget* parent) : QDialog(parent)
{
    setObjectName(u"planner"_s);
    setWindowTitle(u"Plan a better order"_s);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 16, 20, 14);
    column->setSpacing(9);
    m_what = makeLabel({}, "value", this);
    m_what->setWordWrap(true);
    column->addWidget(m_what);
    auto* fields = new QGridLayout;
    fields->setHorizontalSpacing(10);
    fields->setVerticalSpacing(6);
    const auto add = [&](int row, const QString& title, QWidget* field, const QString& tip) {
        auto* label = makeLabel(title, "secondary", this);
        label->setBuddy(field);
        field->setToolTip(tip);
        label->setToolTip(tip);
        field->setAccessibleName(title);
        fields->addWidget(label, row, 0);
        fields->addWidget(field, row, 1);
    };
    m_memory = new QLineEdit(this);
    m_memory->setObjectName(u"planCap"_s);
    m_time = new QSpinBox(this);
    m_time->setObjectName(u"planSeconds"_s);
    m_time->setRange(1, 3600);
    m_time->setValue(5);
    m_time->setSuffix(u" s"_s);
    m_split = new QCheckBox(u"may split backwards into I and W"_s, this);
    m_split->setObjectName(u"planSplit"_s);
    m_split->setToolTip(u"A full backward may become an input gradient and a later weight gradient, which fills idle "
                        "time. Otherwise every backward stays whole."_s);
    add(0, u"Memory cap"_s, m_memory, u"Activations that a rank may hold. Empty: no cap."_s);
    add(1, u"Search for at most"_s, m_time, u"It ends sooner where the best order is proven."_s);
    fields->addWidget(m_split, 2, 1);
    fields->setColumnStretch(1, 1);
    column->addLayout(fields);
    auto* pictures = new QHBoxLayout;
    pictures->setSpacing(12);
    for (Miniature** one : {&m_old, &m_new}) {
        *one = new Miniature(this);
        (*one)->setTheme(theme);
        (*one)->setMinimumSize(270, 150);
        pictures->addWidget(*one, 1);
    }
    column->addLayout(pictures, 1);
    m_figures = new PanelSection({}, this);
    m_figures->setRuled(false);
    column->addWidget(m_figures);
    m_state = makeLabel({}, "secondary", this);
    m_state->setWordWrap(true);
    m_bar = new QProgressBar(this);
    m_bar->setTextVisible(false);
    m_bar->setAccessibleName(u"Progress of the search"_s);
    m_fault = makeLabel({}, "worse", this);
    m_fault->setWordWrap(true);
    column->addWidget(m_state);
    column->addWidget(m_bar);
    column->addWidget(m_fault);
    auto* buttons = new QHBoxLayout;
    auto* close = new QPushButton(u"Close"_s, this);
    m_stop = new QPushButton(u"Stop"_s, this);
    m_stop->setToolTip(u"Ends the search with the best order so far"_s);
    m_search = new QPushButton(u"Search"_s, this);
    m_use = new QPushButton(u"Edit with this order"_s, this);
    m_use->setToolTip(u"Opens it as one change of an edit, with the order before as outlines; Undo takes it back"_s);
    for (QPushButton* button : {close, m_stop, m_search, m_use}) button->setAutoDefault(false);
    buttons->addStretch(1);
    for (QPushButton* button : {close, m_stop, m_search, m_use}) buttons->addWidget(button);
    column->addLayout(buttons);
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_stop, &QPushButton::clicked, this, &PlannerPanel::stopAsked);
    connect(m_search, &QPushButton::clicked, this, [this] {
        if (const auto good = cap(); !good) return setFault(good.error());
        emit searchAsked();
    });
    connect(m_use, &QPushButton::clicked, this, &PlannerPanel::useAsked);
    connect(m_memory, &QLineEdit::returnPressed, m_search, &QPushButton::click);
    resize(640, 470);
    refresh();
}

void PlannerPanel::setSubject(const QString& name, const QString& costs, const Units& units, const PlannedOrder& before,
                              std::optional<Bytes> cap, bool splits, bool canSplit)
{
    m_units = units;
    m_before = before;
    m_found = false;
    m_what->setText(u"The shortest order in place of %1, with its own costs (%2): the same ops on the same ranks, in "
                    "another order."_s.arg(name, costs));
    m_memory->setPlaceholderText(units.memory == 1 ? u"none, such as 26 MiB"_s : u"none, such as 4 microbatches"_s);
    m_cap = {};
    if (cap && units.memory == 1) m_cap.bytes = *cap;
    if (cap && units.memory != 1) m_cap.units = static_cast<double>(*cap) / static_cast<double>(units.memory);
    m_memory->setText(m_cap.text(units));
    m_split->setChecked(splits);
    m_split->setEnabled(canSplit && !splits);
    if (!canSplit && !splits) m_split->setToolTip(u"The costs don't say how long I and W take on their own."_s);
    m_old->setPanel(before.panel, name, durationText(before.step, units));
    m_new->setPanel(nullptr, u"Planned"_s, u"not searched yet"_s);
    m_figures->clear();
    m_fault->clear();
    m_state->clear();
    refresh();
}

Result<std::optional<Bytes>> PlannerPanel::cap() const
{
    MemoryBudget asked;
    STAGEWRIGHT_CHECK(asked.set(m_memory->text(), m_units));
    return asked.of(m_units);
}

bool PlannerPanel::split() const { return m_split->isChecked(); }
int PlannerPanel::seconds() const { return m_time->value(); }

void PlannerPanel::setSearching()
{
    m_searching = true;
    m_found = false;
    m_fault->clear();
    m_figures->clear();
    m_state->setText(u"Searching…"_s);
    m_bar->setRange(0, 0);
    m_new->setPanel(nullptr, u"Planned"_s, u"searching…"_s);
    refresh();
}

void PlannerPanel::setProgress(Nanos best, Nanos bound, qint64 done, qint64 total)
{
    if (!m_searching) return;
    m_bar->setRange(0, static_cast<int>(std::max<qint64>(1, total)));
    m_bar->setValue(static_cast<int>(done));
    const QString none = u"No order is shorter than %1."_s.arg(durationText(bound, m_units));
    m_state->setText(best > 0 ? u"Best so far: %1. %2"_s.arg(durationText(best, m_units), none) : none);
}

void PlannerPanel::setAnswer(const Plan& plan, const PlannedOrder& after)
{
    m_searching = false;
    m_found = true;
    m_new->setPanel(after.panel, u"Planned"_s, durationText(after.step, m_units));
    m_figures->clear();
    const auto row = [this](const QString& name, const QString& before, const QString& now, double change,
                            const QString& text) {
        m_figures->addRow(name, before == now ? u"%1, as before"_s.arg(now) : u"%1 → %2"_s.arg(before, now), {},
                          document::Tone::Plain);
        if (before != now) m_figures->addChange(text, {}, change < 0 ? document::Tone::Good : document::Tone::Bad);
    };
    row(u"Step time"_s, durationText(m_before.step, m_units), durationText(after.step, m_units),
        static_cast<double>(after.step - m_before.step),
        changeText(static_cast<double>(m_before.step), static_cast<double>(after.step)));
    row(u"Bubble ratio"_s, percentText(m_before.bubble), percentText(after.bubble), after.bubble - m_before.bubble,
        u"%1 points"_s.arg(signedFixed(100 * (after.bubble - m_before.bubble), 1)));
    if (m_before.peak > 0 && after.peak > 0)
        row(u"Peak activation"_s, bytesText(m_before.peak, m_units), bytesText(after.peak, m_units),
            static_cast<double>(after.peak - m_before.peak),
            changeText(static_cast<double>(m_before.peak), static_cast<double>(after.peak)));
    QString proof = plan.optimal ? u"Proven: no order within the cap is shorter (%1)."_s.arg(qtText(plan.provenBy))
                                 : u"No order within the cap is shorter than %1 (%2): this one is at most %3 away from "
                                   "the best."_s.arg(durationText(plan.bound, m_units), qtText(plan.provenBy),
                                                     percentText(plan.gap));
    if (plan.interrupted) proof += u" The search was stopped."_s;
    for (const CostLeftOut& one : plan.leftOut)
        proof += u" Planned without %1: %2."_s.arg(qtText(one.what), qtText(one.reason));
    m_state->setText(proof);
    if (after.step >= m_before.step) m_fault->setText(u"The order before is as short: nothing is gained."_s);
    refresh();
}

void PlannerPanel::setFault(const Error& error)
{
    m_searching = false;
    m_found = false;
    m_state->clear();
    m_new->setPanel(nullptr, u"Planned"_s, u"none"_s);
    m_fault->setText(sentence(error.message) + (error.remedy.empty() ? u"."_s : u"; "_s + qtText(error.remedy)));
    refresh();
}

void PlannerPanel::refresh()
{
    m_bar->setVisible(m_searching);
    m_stop->setVisible(m_searching);
    m_search->setEnabled(!m_searching);
    m_use->setEnabled(m_found);
    for (QWidget* label : {m_fault, m_state}) label->setVisible(!static_cast<QLabel*>(label)->text().isEmpty());
    for (QPushButton* button : {m_search, m_use}) { // the next step is the marked one
        button->setObjectName((button == m_use) == m_found ? u"primary"_s : QString());
        button->style()->unpolish(button);
        button->style()->polish(button);
    }
}

QString PlannerPanel::plainText() const
{
    return QStringList{m_what->text(), m_figures->plainText(), m_state->text(), m_fault->text()}.join(u'\n');
}

} // namespace stagewright
