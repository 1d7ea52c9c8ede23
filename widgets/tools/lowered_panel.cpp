#include "widgets/tools/lowered_panel.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QPushButton>

#include "widgets/numbers.h"
#include "widgets/panel/side_panel.h"
#include "widgets/tools/tool_form.h"

namespace stagewright {

LoweredPanel::LoweredPanel(QWidget* parent) : SectionColumn(parent)
{
    setObjectName(QStringLiteral("loweredPanel"));
    m_form = addSection(tr("Lowered schedule"));
    auto* form = new ToolForm;
    const auto combo = [&](const char* name, std::initializer_list<std::pair<QString, int>> items) {
        auto* box = new QComboBox(form);
        box->setObjectName(QString::fromLatin1(name));
        for (const auto& [text, value] : items) box->addItem(text, value);
        connect(box, &QComboBox::currentIndexChanged, this, &LoweredPanel::changed);
        return box;
    };
    const auto ruleValue = [](LoweringRule rule) { return static_cast<int>(rule); };
    m_rule = combo("rule", {{tr("Just in time"), ruleValue(LoweringRule::JustInTime)},
                            {tr("PyTorch"), ruleValue(LoweringRule::PyTorch)},
                            {tr("Eager post"), ruleValue(LoweringRule::EagerPost)},
                            {tr("Rank parity"), ruleValue(LoweringRule::RankParity)},
                            {tr("Grouped"), ruleValue(LoweringRule::Grouped)},
                            {tr("Batched"), ruleValue(LoweringRule::Batched)}});
    m_sends = combo("sends", {{tr("Buffered"), 0}, {tr("Rendezvous"), 1}});
    m_receives = combo("receives", {{tr("Blocking"), 0}, {tr("Posted"), 1}});
    m_ahead = new QSpinBox(form);
    m_ahead->setObjectName(QStringLiteral("ahead"));
    m_ahead->setRange(0, 64);
    m_ahead->setSpecialValueText(tr("all at the start"));
    m_perDirection = new QSpinBox(form);
    m_perDirection->setObjectName(QStringLiteral("perDirection"));
    m_perDirection->setRange(0, 64);
    m_perDirection->setSpecialValueText(tr("unlimited"));
    m_oneStream = new QCheckBox(tr("one a rank"), form);
    m_oneStream->setObjectName(QStringLiteral("oneStream"));
    connect(m_oneStream, &QCheckBox::toggled, this, &LoweredPanel::changed);
    m_latency = new QDoubleSpinBox(form);
    m_latency->setObjectName(QStringLiteral("latency"));
    m_latency->setRange(-0.05, 20);
    m_latency->setSingleStep(0.05);
    m_latency->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_latency->setSpecialValueText(tr("as in the run"));
    m_latency->setValue(-0.05);
    m_latency->setSuffix(tr(" forwards"));
    for (QSpinBox* box : {m_ahead, m_perDirection}) connect(box, &QSpinBox::valueChanged, this, &LoweredPanel::changed);
    connect(m_latency, &QDoubleSpinBox::valueChanged, this, &LoweredPanel::changed);
    form->add(tr("Rule"), m_rule,
              tr("Where receives go in the lists; a send follows the op that produced the message."));
    form->add(tr("Posted ahead"), m_ahead,
              tr("For the eager rule: compute ops between a receive and the op that needs it."));
    form->add(tr("Sends"), m_sends,
              tr("Buffered: a send ends at once. Rendezvous: no buffers, it waits until its receive is posted."));
    form->add(tr("Receives"), m_receives,
              tr("For rendezvous: the rank blocks at the receive, or only posts its buffer."));
    form->add(tr("Channels"), m_perDirection,
              tr("Messages in flight at once from one rank to another; further messages queue in send order."));
    form->add(tr("Streams"), m_oneStream,
              tr("One communication stream for each rank: its sends and receives run one after the other in list "
                 "order. A receive whose message is not sent yet holds up those behind it; compute goes on."));
    form->add(tr("Link latency"), m_latency, tr("Message time, in forwards of a rank."));
    m_form->addWidget(form);
    m_deadlock = new QPushButton(tr("Show the cycle…"));
    m_deadlock->setToolTip(tr("Shows the waits on the lists, and a change that removes them."));
    connect(m_deadlock, &QPushButton::clicked, this, &LoweredPanel::deadlockAsked);
    m_close = new QPushButton(tr("Back to the run"));
    connect(m_close, &QPushButton::clicked, this, &LoweredPanel::closeAsked);
    addWidget(m_deadlock);
    m_deadlock->hide();
    m_figures = addSection(tr("Result"));
    m_channels = addSection(tr("Occupancy of channels"));
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
        QString text = picture.hangs ? tr("These lists hang: %1").arg(QString::fromStdString(picture.fault->message))
                                     : QString::fromStdString(picture.fault->message);
        if (!text.isEmpty()) text[0] = text[0].toUpper();
        m_figures->addText(text, "worse");
        if (!picture.fault->remedy.empty()) m_figures->addText(QString::fromStdString(picture.fault->remedy));
        return;
    }
    m_figures->addRow(tr("Sends and receives"), QStringLiteral("%L1 + %L1").arg(picture.sends));
    m_figures->addRow(tr("Step time"), durationText(picture.makespan, units), definition::makespan());
    const Nanos change = picture.makespan - picture.makespanBefore;
    m_figures->addRow(
        tr("compared with non-blocking messages"), signedDurationText(change, units),
        tr("The same order and costs, with each message sent when its op ends and received on arrival: %1.")
            .arg(durationText(picture.makespanBefore, units)),
        change > 0 ? PanelSection::Tone::Worse : PanelSection::Tone::Plain);
    m_figures->addRow(tr("Bubble ratio"), percentText(picture.bubbleFraction), definition::bubbleRatio());
    const auto makespan = static_cast<double>(std::max<Nanos>(1, picture.makespan));
    constexpr std::size_t most = 24;
    for (std::size_t i = 0; i < std::min(most, picture.channels.size()); ++i) {
        const ChannelUse& use = picture.channels[i];
        auto* bar = new ShareBar;
        const double share = static_cast<double>(use.busy) / makespan;
        bar->setParts({{Paint::Communication, std::min(1.0, share)}});
        m_channels->addBar(
            tr("%1 → %2").arg(use.from).arg(use.to), bar, percentText(share, 0),
            tr("%1, %2 in transfer; %3 queued behind other messages; %4 not yet posted on the other side")
                .arg(countText(static_cast<qint64>(use.messages), tr("1 message"), tr("%L1 messages")))
                .arg(durationText(use.busy, units), durationText(use.queued, units),
                     durationText(use.unposted, units)));
    }
    if (picture.channels.size() > most)
        m_channels->addText(tr("and %1 more").arg(picture.channels.size() - most), "faint");
}

} // namespace stagewright
