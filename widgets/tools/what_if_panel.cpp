#include "widgets/tools/what_if_panel.h"

#include <algorithm>
#include <array>

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
#include "widgets/tools/factor_field.h"
#include "widgets/tools/tool_form.h"

namespace stagewright {
namespace {

QString nameOf(const KindTraits& rule) { return isFullBackward(rule.kind) ? u"Backward (B)"_s : kindName(rule); }

Bytes largest(const std::vector<Bytes>& peaks)
{
    return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

} // namespace

WhatIfPanel::WhatIfPanel(QWidget* parent) : SectionColumn(parent)
{
    setObjectName(u"whatIfPanel"_s);
    const auto combo = [this](const char* name) {
        auto* box = new QComboBox;
        box->setObjectName(QString::fromLatin1(name));
        connect(box, &QComboBox::currentIndexChanged, this, &WhatIfPanel::tell);
        return box;
    };
    const auto number = [this](const char* name, int least, const QString& special) {
        auto* box = new QSpinBox;
        box->setObjectName(QString::fromLatin1(name));
        box->setRange(least, least);
        box->setSpecialValueText(special);
        box->setKeyboardTracking(false);
        connect(box, &QSpinBox::valueChanged, this, &WhatIfPanel::tell);
        return box;
    };
    const auto factor = [this](const char* name) {
        auto* field = new FactorField;
        field->slider()->setObjectName(QString::fromLatin1(name));
        connect(field, &FactorField::changed, this, &WhatIfPanel::tell);
        return field;
    };

    m_costs = addSection(u"What if ops took longer or shorter"_s);
    auto* form = new ToolForm;
    m_kind = combo("kind");
    m_stage = number("stage", -1, u"every stage"_s);
    m_rank = number("rank", -1, u"every rank"_s);
    m_ops = factor("opsFactor");
    form->add(u"Ops"_s, m_kind, u"Which ops take longer or shorter."_s);
    form->add(u"Of stage"_s, m_stage, u"Only ops of this stage."_s);
    form->add(u"On rank"_s, m_rank, u"Only ops on this rank: a slower or faster device."_s);
    form->add(u"Time factor"_s, m_ops, u"Factor on their durations; 0: they take no time."_s);
    m_ops->field()->setAccessibleName(u"Time factor of the ops"_s);
    m_costs->addWidget(form);

    m_messages = addSection(u"What if communication changed"_s);
    form = new ToolForm;
    m_link = combo("link");
    m_links = factor("linkFactor");
    m_latency = new QDoubleSpinBox;
    m_latency->setObjectName(u"latency"_s);
    m_latency->setRange(-0.05, 20);
    m_latency->setSingleStep(0.05);
    m_latency->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_latency->setSpecialValueText(u"unchanged"_s);
    m_latency->setSuffix(u" forwards"_s);
    m_latency->setKeyboardTracking(false);
    connect(m_latency, &QDoubleSpinBox::valueChanged, this, &WhatIfPanel::tell);
    m_rule = combo("lowering");
    m_rule->addItem(u"leave at once"_s, -1);
    for (const auto& [text, rule] :
         std::initializer_list<std::pair<QString, LoweringRule>>{{u"just in time"_s, LoweringRule::JustInTime},
                                                                 {u"as PyTorch"_s, LoweringRule::PyTorch},
                                                                 {u"eager post"_s, LoweringRule::EagerPost},
                                                                 {u"rank parity"_s, LoweringRule::RankParity},
                                                                 {u"grouped"_s, LoweringRule::Grouped},
                                                                 {u"batched"_s, LoweringRule::Batched}})
        m_rule->addItem(text, static_cast<int>(rule));
    m_sends = combo("sends");
    m_sends->addItem(u"buffered"_s);
    m_sends->addItem(u"rendezvous"_s);
    m_channels = number("channels", 0, u"unlimited"_s);
    m_channels->setMaximum(64);
    form->add(u"Link"_s, m_link, u"Both directions between two ranks."_s);
    form->add(u"Link factor"_s, m_links, u"Factor on latency and time per byte; 0: free."_s);
    m_links->field()->setAccessibleName(u"Time factor of the link"_s);
    form->add(u"Latency"_s, m_latency,
              u"Latency of every link, in forwards of a rank, with unlimited bandwidth; before the factor."_s);
    form->add(u"Messages"_s, m_rule,
              u"At once: each message leaves when its op ends. Otherwise this rule inserts sends and receives into "
              "the lists."_s);
    form->add(u"Sends"_s, m_sends, u"Rendezvous: a send waits until its receive is posted."_s);
    form->add(u"Channels"_s, m_channels, u"Messages in flight at once from one rank to another."_s);
    m_messages->addWidget(form);

    m_more = addSection(u"Further changes"_s);
    form = new ToolForm;
    m_microbatches = number("microbatches", 1, QString());
    m_further = new QLineEdit;
    m_further->setObjectName(u"further"_s);
    m_further->setPlaceholderText(u"B@stage2*0.8, launch*0"_s);
    m_further->setClearButtonEnabled(true);
    connect(m_further, &QLineEdit::textChanged, this, &WhatIfPanel::tell);
    form->add(u"Microbatches"_s, m_microbatches, u"Only library schedules can be generated for another number."_s);
    form->add(u"Also"_s, m_further,
              u"As in simulate --what-if: F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, jitter*0, m+8 …"_s);
    m_more->addWidget(form);
    auto* buttons = new QWidget;
    auto* row = new QHBoxLayout(buttons);
    row->setContentsMargins(0, 0, 0, 0);
    m_reset = new QPushButton(u"Reset"_s);
    m_reset->setObjectName(u"reset"_s);
    m_reset->setToolTip(u"Undoes all changes"_s);
    m_close = new QPushButton(u"Back to the run"_s);
    connect(m_reset, &QPushButton::clicked, this, [this] {
        reset();
        emit changed();
    });
    connect(m_close, &QPushButton::clicked, this, &WhatIfPanel::closeAsked);
    for (QPushButton* button : {m_reset, m_close}) {
        button->setAutoDefault(true);
        row->addWidget(button, 1);
    }

    m_figures = addSection(u"Result"_s);
    m_peaks = addSection(u"Peak activation by rank"_s);
    addWidget(buttons);
    finish();
}

void WhatIfPanel::setSchedule(const Schedule& schedule, const CostModel& costs)
{
    const bool other =
        schedule.ranks != m_ranks || schedule.stages != m_stages || schedule.microbatches != m_microbatchesNow;
    m_quiet = true;
    const QVariant kind = m_kind->currentData();
    m_kind->clear();
    m_kind->addItem(u"every kind"_s, -1);
    for (const KindTraits& candidate : allKinds()) {
        if (!candidate.busy) continue;
        const bool occurs = std::any_of(schedule.order.begin(), schedule.order.end(), [&](const auto& list) {
            return std::any_of(list.begin(), list.end(), [&](const Op& op) { return op.kind == candidate.kind; });
        });
        if (occurs) m_kind->addItem(nameOf(candidate), static_cast<int>(candidate.kind));
    }
    m_kind->setCurrentIndex(std::max(0, m_kind->findData(kind)));
    if (other) {
        m_ranks = schedule.ranks;
        m_stages = schedule.stages;
        m_microbatchesNow = schedule.microbatches;
        m_stage->setMaximum(m_stages - 1);
        m_rank->setMaximum(m_ranks - 1);
        m_microbatches->setMaximum(std::max(4096, 4 * m_microbatchesNow));
        m_link->clear();
        m_link->addItem(u"every link"_s, -1);
        for (int rank = 0; rank + 1 < m_ranks; ++rank)
            m_link->addItem(u"ranks %1 and %2"_s.arg(rank).arg(rank + 1), rank);
        if (m_ranks > 2) m_link->addItem(u"ranks %1 and 0"_s.arg(m_ranks - 1), m_ranks - 1);
        reset();
    }
    m_quiet = true;
    m_latency->setToolTip(
        u"Latency of every link, in forwards of a rank, with unlimited bandwidth; before the factor. Unchanged: %1."_s
            .arg(durationText(costs.links.all.latency, Units{costs.timeUnit, costs.memoryUnit})));
    m_quiet = false;
}

void WhatIfPanel::reset()
{
    m_quiet = true;
    for (QComboBox* box : {m_kind, m_link, m_rule, m_sends}) box->setCurrentIndex(0);
    for (QSpinBox* box : {m_stage, m_rank, m_channels}) box->setValue(box->minimum());
    m_microbatches->setValue(m_microbatchesNow);
    m_ops->setFactor(1);
    m_links->setFactor(1);
    m_latency->setValue(m_latency->minimum());
    m_further->clear();
    m_quiet = false;
}

void WhatIfPanel::setFurther(const QString& changes) { m_further->setText(changes); }

void WhatIfPanel::tell()
{
    if (!m_quiet) emit changed();
}

Result<WhatIfQuestion> WhatIfPanel::question() const
{
    using What = WhatIfChange::What;
    WhatIfQuestion out;
    const auto add = [&](What what) -> WhatIfChange& {
        out.changes.emplace_back().what = what;
        return out.changes.back();
    };
    if (m_microbatches->value() != m_microbatchesNow) add(What::Microbatches).microbatches = m_microbatches->value();
    if (m_ops->factor() != 1) {
        WhatIfChange& change = add(What::Ops);
        change.kind = m_kind->currentData().toInt();
        change.stage = m_stage->value();
        change.rank = m_rank->value();
        change.factor = m_ops->factor();
    }
    if (m_latency->value() >= 0) out.latency = m_latency->value();
    if (m_links->factor() != 1) {
        WhatIfChange& change = add(What::Links);
        const int from = m_link->currentData().toInt();
        if (from >= 0) {
            change.rank = from;
            change.toRank = (from + 1) % std::max(1, m_ranks);
        }
        change.factor = m_links->factor();
    }
    if (m_rule->currentData().toInt() >= 0)
        add(What::Lower).lowering.rule = static_cast<LoweringRule>(m_rule->currentData().toInt());
    if (m_sends->currentIndex() == 1) add(What::Sends).sends = SendMode::Rendezvous;
    if (m_channels->value() > 0) add(What::Channels).channels.perDirection = m_channels->value();
    QString further = m_further->text();
    further.remove(u' ');
    if (!further.isEmpty()) {
        STAGEWRIGHT_TRY(auto changes, parseWhatIf(further.toStdString()));
        out.changes.insert(out.changes.end(), changes.begin(), changes.end());
    }
    return out;
}

void WhatIfPanel::setFault(const Error& error)
{
    m_figures->clear();
    m_peaks->clear();
    m_peaks->hide();
    m_figures->addText(sentence(error.message), "worse");
    if (!error.remedy.empty()) m_figures->addText(sentence(error.remedy));
}

void WhatIfPanel::setPicture(const WhatIfPicture& picture, const WhatIfQuestion& question, const Units& units)
{
    m_reset->setEnabled(!question.empty());
    if (picture.fault) return setFault(*picture.fault);
    const WhatIfAnswer& answer = picture.answer;
    m_figures->clear();
    m_peaks->clear();
    if (question.empty())
        m_figures->addText(u"Nothing is changed. Both timelines are simulated with the run's costs."_s, "faint");
    const auto tone = [](auto change) {
        return change < 0 ? document::Tone::Good : change > 0 ? document::Tone::Bad : document::Tone::Plain;
    };
    const auto row = [&](const QString& name, const QString& before, const QString& after, const QString& difference,
                         document::Tone of, const QString& tooltip) {
        m_figures->addRow(name, before == after ? after : u"%1 → %2"_s.arg(before, after), tooltip);
        if (before != after) m_figures->addRow(QString(), difference, tooltip, of);
    };
    const Nanos change = answer.makespanAfter - answer.makespanBefore;
    row(u"Step time"_s, durationText(answer.makespanBefore, units), durationText(answer.makespanAfter, units),
        u"%1 (%2)"_s.arg(signedDurationText(change, units), changeText(static_cast<double>(answer.makespanBefore),
                                                                       static_cast<double>(answer.makespanAfter))),
        tone(change), figureMeaning("makespan"));
    if (answer.microbatchesBefore != answer.microbatchesAfter) {
        const Nanos before = answer.makespanBefore / std::max(1, answer.microbatchesBefore),
                    after = answer.makespanAfter / std::max(1, answer.microbatchesAfter);
        row(u"Time per microbatch"_s, durationText(before, units), durationText(after, units),
            signedDurationText(after - before, units), tone(after - before),
            u"Step time ÷ number of microbatches, %1 and %2"_s.arg(answer.microbatchesBefore)
                .arg(answer.microbatchesAfter));
    }
    row(u"Bubble ratio"_s, percentText(answer.bubbleBefore), percentText(answer.bubbleAfter),
        u"%1 points"_s.arg(signedFixed(100 * (answer.bubbleAfter - answer.bubbleBefore), 1)),
        tone(answer.bubbleAfter - answer.bubbleBefore), figureMeaning("bubble_fraction"));
    if (!answer.peakBefore.empty())
        row(u"Peak activation"_s, bytesText(largest(answer.peakBefore), units),
            bytesText(largest(answer.peakAfter), units),
            changeText(static_cast<double>(largest(answer.peakBefore)), static_cast<double>(largest(answer.peakAfter))),
            tone(largest(answer.peakAfter) - largest(answer.peakBefore)), figureMeaning("peak_activation"));
    if (const std::string text = toText(question); !text.empty())
        m_figures->addText(u"--what-if %1"_s.arg(QString::fromStdString(text)), "code");

    constexpr std::size_t most = 32;
    const std::size_t count = std::min({most, answer.peakBefore.size(), answer.peakAfter.size()});
    m_peaks->setVisible(answer.peakBefore != answer.peakAfter && count > 0);
    for (std::size_t rank = 0; rank < count; ++rank)
        m_peaks->addRow(
            u"Rank %1"_s.arg(rank),
            u"%1 → %2"_s.arg(bytesText(answer.peakBefore[rank], units), bytesText(answer.peakAfter[rank], units)),
            figureMeaning("peak_activation"));
}

} // namespace stagewright
