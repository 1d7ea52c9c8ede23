#include "widgets/tools/lowered_panel.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QPushButton>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
#include "widgets/tools/tool_form.h"

namespace stagewright {

LoweredPanel::LoweredPanel(QWidget* parent) : SectionColumn(parent)
{
    setObjectName(u"loweredPanel"_s);
    m_form = addSection(u"Lowered schedule"_s);
    auto* form = new ToolForm;
    const auto combo = [&](const char* name, std::initializer_list<std::pair<QString, int>> items) {
        auto* box = new QComboBox(form);
        box->setObjectName(QString::fromLatin1(name));
        for (const auto& [text, value] : items) box->addItem(text, value);
        connect(box, &QComboBox::currentIndexChanged, this, &LoweredPanel::changed);
        return box;
    };
    const auto ruleValue = [](LoweringRule rule) { return static_cast<int>(rule); };
    m_rule = combo("rule", {{u"Just in time"_s, ruleValue(LoweringRule::JustInTime)},
                            {u"PyTorch"_s, ruleValue(LoweringRule::PyTorch)},
                            {u"Eager post"_s, ruleValue(LoweringRule::EagerPost)},
                            {u"Rank parity"_s, ruleValue(LoweringRule::RankParity)},
                            {u"Grouped"_s, ruleValue(LoweringRule::Grouped)},
                            {u"Batched"_s, ruleValue(LoweringRule::Batched)}});
    m_sends = combo("sends", {{u"Buffered"_s, 0}, {u"Rendezvous"_s, 1}});
    m_receives = combo("receives", {{u"Blocking"_s, 0}, {u"Posted"_s, 1}});
    m_ahead = new QSpinBox(form);
    m_ahead->setObjectName(u"ahead"_s);
    m_ahead->setRange(0, 64);
    m_ahead->setSpecialValueText(u"all at the start"_s);
    m_perDirection = new QSpinBox(form);
    m_perDirection->setObjectName(u"perDirection"_s);
    m_perDirection->setRange(0, 64);
    m_perDirection->setSpecialValueText(u"unlimited"_s);
    m_oneStream = new QCheckBox(u"one a rank"_s, form);
    m_oneStream->setObjectName(u"oneStream"_s);
    connect(m_oneStream, &QCheckBox::toggled, this, &LoweredPanel::changed);
    m_latency = new QDoubleSpinBox(form);
    m_latency->setObjectName(u"latency"_s);
    m_latency->setRange(-0.05, 20);
    m_latency->setSingleStep(0.05);
    m_latency->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_latency->setSpecialValueText(u"as in the run"_s);
    m_latency->setValue(-0.05);
    m_latency->setSuffix(u" forwards"_s);
    for (QSpinBox* box : {m_ahead, m_perDirection}) connect(box, &QSpinBox::valueChanged, this, &LoweredPanel::changed);
    connect(m_latency, &QDoubleSpinBox::valueChanged, this, &LoweredPanel::changed);
    form->add(u"Rule"_s, m_rule, u"Where receives go in the lists; a send follows the op that produced the message."_s);
    form->add(u"Posted ahead"_s, m_ahead,
              u"For the eager rule: compute ops between a receive and the op that needs it."_s);
    form->add(u"Sends"_s, m_sends,
              u"Buffered: a send ends at once. Rendezvous: no buffers, it waits until its receive is posted."_s);
    form->add(u"Receives"_s, m_receives,
              u"For rendezvous: the rank blocks at the receive, or only posts its buffer."_s);
    form->add(u"Channels"_s, m_perDirection,
              u"Messages in flight at once from one rank to another; further messages queue in send order."_s);
    form->add(u"Streams"_s, m_oneStream,
              u"One communication stream for each rank: its sends and receives run one after the other in list "
              "order. A receive whose message is not sent yet holds up those behind it; compute goes on."_s);
    form->add(u"Link latency"_s, m_latency, u"Message time, in forwards of a rank."_s);
    m_form->addWidget(form);
    m_deadlock = new QPushButton(u"Show the cycle…"_s);
    m_deadlock->setToolTip(u"Shows the waits on the lists, and a change that removes them."_s);
    connect(m_deadlock, &QPushButton::clicked, this, &LoweredPanel::deadlockAsked);
    m_close = new QPushButton(u"Back to the run"_s);
    connect(m_close, &QPushButton::clicked, this, &LoweredPanel::closeAsked);
    addWidget(m_deadlock);
    m_deadlock->hide();
    m_figures = addSection(u"Result"_s);
    m_channels = addSection(u"Occupancy of channels"_s);
    addWidget(m_close);
    finish();
    const auto enable = [this] {
        m_ahead->setEnabled(lowering().rule == LoweringRule::EagerPost);
        m_perDirection->setEnabled(!m_oneStream->isChecked());
        m_receives->setEnabled(channels().sends == SendMode::Rendezvous);
    };
    connect(this, &LoweredPanel::changed, this, enable);
    connect(m_rule, &QComboBox::currentIndexChanged, this, [this] {
        const QSignalBlocker quiet(m_receives); // the rule's intended setting
        m_receives->setCurrentIndex(receivesOf(lowering().rule) == ReceiveMode::Posted ? 1 : 0);
    });
    enable();
}

Lowering LoweredPanel::lowering() const
{
    Lowering out;
    out.rule = static_cast<LoweringRule>(m_rule->currentData().toInt());
    if (out.rule == LoweringRule::EagerPost) out.ahead = m_ahead->value();
    return out;
}

Channels LoweredPanel::channels() const
{
    Channels out;
    out.sends = m_sends->currentData().toInt() == 1 ? SendMode::Rendezvous : SendMode::Buffered;
    out.receives = m_receives->currentData().toInt() == 1 ? ReceiveMode::Posted : ReceiveMode::Blocking;
    out.oneStream = m_oneStream->isChecked();
    if (!out.oneStream) out.perDirection = m_perDirection->value();
    return out;
}

double LoweredPanel::latency() const { return m_latency->value() < 0 ? -1 : m_latency->value(); }

void LoweredPanel::setPicture(const LoweredPicture& picture, const Units& units)
{
    m_figures->clear();
    m_channels->clear();
    m_deadlock->setVisible(picture.hangs);
    m_channels->setVisible(!picture.channels.empty());
    if (picture.fault) {
        m_figures->addText(picture.hangs ? u"These lists hang: %1"_s.arg(QString::fromStdString(picture.fault->message))
                                         : sentence(picture.fault->message),
                           "worse");
        if (!picture.fault->remedy.empty()) m_figures->addText(QString::fromStdString(picture.fault->remedy));
        return;
    }
    m_figures->addRow(u"Sends and receives"_s, u"%L1 + %L1"_s.arg(picture.sends));
    m_figures->addRow(u"Step time"_s, durationText(picture.makespan, units), figureMeaning("makespan"));
    const Nanos change = picture.makespan - picture.makespanBefore;
    m_figures->addRow(
        u"compared with non-blocking messages"_s, signedDurationText(change, units),
        u"The same order and costs, with each message sent when its op ends and received on arrival: %1."_s.arg(
            durationText(picture.makespanBefore, units)),
        change > 0 ? document::Tone::Bad : document::Tone::Plain);
    m_figures->addRow(u"Bubble ratio"_s, percentText(picture.bubbleFraction), figureMeaning("bubble_fraction"));
    const auto makespan = static_cast<double>(std::max<Nanos>(1, picture.makespan));
    constexpr std::size_t most = 24;
    for (std::size_t i = 0; i < std::min(most, picture.channels.size()); ++i) {
        const ChannelUse& use = picture.channels[i];
        auto* bar = new ShareBar;
        const double share = static_cast<double>(use.busy) / makespan;
        bar->setParts({{Paint::Communication, std::min(1.0, share)}});
        m_channels->addBar(u"%1 → %2"_s.arg(use.from).arg(use.to), bar, percentText(share, 0),
                           u"%1, %2 in transfer; %3 queued behind other messages; %4 not yet posted on the other side"_s
                               .arg(countText(static_cast<qint64>(use.messages), u"1 message"_s, u"%L1 messages"_s))
                               .arg(durationText(use.busy, units), durationText(use.queued, units),
                                    durationText(use.unposted, units)));
    }
    if (picture.channels.size() > most)
        m_channels->addText(u"and %1 more"_s.arg(picture.channels.size() - most), "faint");
}

} // namespace stagewright
