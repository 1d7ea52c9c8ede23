#include "widgets/tools/residual_panel.h"

#include <algorithm>
#include <numeric>

#include <QComboBox>
#include <QPushButton>
#include <QSignalBlocker>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/selection_column.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/sentence.h"
#include "widgets/tools/tool_form.h"

namespace stagewright {
namespace {

constexpr std::size_t worstShown = 8;
constexpr std::size_t groupsShown = 16;

QPushButton* link(const QString& text, const QString& tooltip) { return new LinkButton(text, tooltip); }

QString share(Nanos part, Nanos of, bool sign)
{
    if (of <= 0) return u"–"_s;
    const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(of);
    return (sign ? signedFixed(percent, 1) : fixed(percent, 1)) + u" %"_s;
}

} // namespace

ResidualPanel::ResidualPanel(QWidget* parent) : SectionColumn(parent)
{
    setObjectName(u"residualPanel"_s);
    m_form = addSection(u"Predicted against measured"_s);
    auto* form = new ToolForm;
    m_source = new QComboBox(form);
    m_source->setObjectName(u"source"_s);
    m_source->addItem(u"this run"_s);
    connect(m_source, &QComboBox::currentIndexChanged, this, &ResidualPanel::changed);
    form->add(u"Costs of"_s, m_source,
              u"Costs for the prediction: the run's own, or those of another run with the same number of stages."_s);
    m_form->addWidget(form);
    m_step = addSection(u"The step"_s);
    auto* plot = addSection(u"Ops of this step"_s);
    m_plot = new PlotWidget(u"residualPlot"_s, u"Residuals of the ops of the step"_s);
    m_plot->setUsualSize({284, 210});
    m_plot->setOnPanel();
    m_plot->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_plot->setTexts([this](int item) {
        const OpResidual& of = m_picture->dots[static_cast<std::size_t>(item)].of;
        return u"%1: predicted %2, measured %3, %4"_s.arg(
            opOnRank(*m_timeline, of.span), durationText(of.predicted, m_units), durationText(of.measured, m_units),
            signedDurationText(of.residual(), m_units));
    });
    plot->addWidget(m_plot);
    connect(m_plot, &PlotWidget::itemChosen, this,
            [this](int item) { emit opChosen(m_picture->dots[static_cast<std::size_t>(item)].of.span); });
    m_selectedSection = addSection(u"Selected op"_s);
    m_worst = addSection(u"Largest errors in this step"_s);
    m_groups = addSection(u"All measured steps: 95 % lie within"_s);
    auto* close = new QPushButton(u"Back to the run"_s);
    close->setAutoDefault(true);
    connect(close, &QPushButton::clicked, this, &ResidualPanel::closeAsked);
    addWidget(close);
    finish();
}

void ResidualPanel::setTheme(const Theme& theme)
{
    SectionColumn::setTheme(theme);
    m_plot->setTheme(theme);
}

void ResidualPanel::setSources(const std::vector<Source>& others)
{
    const RunRef chosen = source();
    const QSignalBlocker quiet(m_source);
    m_others = others;
    m_source->clear();
    m_source->addItem(u"this run"_s);
    for (const Source& other : m_others) {
        m_source->addItem(other.name);
        if (other.run == chosen) m_source->setCurrentIndex(m_source->count() - 1);
    }
}

RunRef ResidualPanel::source() const
{
    const int index = m_source->currentIndex() - 1;
    return index >= 0 && index < static_cast<int>(m_others.size()) ? m_others[static_cast<std::size_t>(index)].run
                                                                   : RunRef{};
}

void ResidualPanel::setFault(const Error& error)
{
    m_picture.reset();
    m_plot->setPlot({});
    for (PanelSection* section : {m_step, m_selectedSection, m_worst, m_groups}) section->clear();
    for (PanelSection* section : {m_selectedSection, m_worst, m_groups}) section->hide();
    m_step->addText(sentence(error.message), "worse");
    if (!error.remedy.empty()) m_step->addText(QString::fromStdString(error.remedy));
}

void ResidualPanel::setPicture(std::shared_ptr<const ResidualPicture> picture, std::shared_ptr<const Timeline> timeline,
                               int step, const Units& units)
{
    m_units = units;
    if (picture->fault) return setFault(*picture->fault);
    m_picture = std::move(picture);
    m_timeline = std::move(timeline);
    const Residuals& of = m_picture->residuals;
    m_step->clear();
    m_step->addRow(u"Predicted"_s, durationText(of.predictedStep, units),
                   u"Step time of the schedule simulated with these costs."_s);
    m_step->addRow(u"Measured"_s, durationText(of.measuredStep, units),
                   of.steps == 1 ? u"The one measured step."_s : u"Median of the %1 measured steps."_s.arg(of.steps));
    m_step->addRow(u"Error"_s, signedFixed(100 * of.error, 1) + u" %"_s, u"(Predicted − measured) / measured"_s,
                   document::Tone::Strong);
    m_plot->setPlot(residualPlot(*m_picture, units));
    m_plot->setChosen(selectedItem());
    m_plot->setAccessibleDescription(
        u"%1 of step %2"_s.arg(countText(static_cast<qint64>(m_picture->dots.size()), u"1 op"_s, u"%L1 ops"_s))
            .arg(step + 1));
    fillWorst();
    fillGroups();
    fillSelected();
}

int ResidualPanel::selectedItem() const
{
    if (!m_picture || m_selected == noSpan) return -1;
    const auto at = std::find_if(m_picture->dots.begin(), m_picture->dots.end(),
                                 [this](const ResidualDot& dot) { return dot.of.span == m_selected; });
    return at == m_picture->dots.end() ? -1 : static_cast<int>(at - m_picture->dots.begin());
}

void ResidualPanel::setSelected(SpanId span)
{
    m_selected = span;
    m_plot->setChosen(selectedItem());
    fillSelected();
}

void ResidualPanel::fillSelected()
{
    m_selectedSection->clear();
    const auto* dots = m_picture ? &m_picture->dots : nullptr;
    const auto at = dots == nullptr ? std::vector<ResidualDot>::const_iterator()
                                    : std::find_if(dots->begin(), dots->end(), [this](const ResidualDot& dot) {
                                          return dot.of.span == m_selected;
                                      });
    const bool any = dots != nullptr && m_selected != noSpan && at != dots->end();
    m_selectedSection->setVisible(any);
    if (!any) return;
    m_selectedSection->addRow(u"Op"_s, opOnRank(*m_timeline, m_selected));
    m_selectedSection->addRow(u"Predicted"_s, durationText(at->of.predicted, m_units));
    m_selectedSection->addRow(u"Measured"_s, durationText(at->of.measured, m_units));
    m_selectedSection->addRow(u"Residual"_s,
                              u"%1 (%2)"_s.arg(signedDurationText(at->of.residual(), m_units),
                                               share(at->of.residual(), at->of.predicted, true)),
                              u"Measured − predicted"_s);
}

void ResidualPanel::fillWorst()
{
    m_worst->clear();
    const std::size_t count = std::min(worstShown, m_picture->worst.size());
    m_worst->setVisible(count > 0);
    for (std::size_t i = 0; i < count; ++i) {
        const OpResidual& of = m_picture->dots[m_picture->worst[i]].of;
        if (of.residual() == 0) {
            if (i == 0) m_worst->addText(u"Every op took exactly the predicted time, to the nanosecond."_s, "faint");
            break;
        }
        auto* button = link(opOnRank(*m_timeline, of.span), u"Selects this op"_s);
        connect(
            button, &QPushButton::clicked, this, [this, span = of.span] { emit opChosen(span); }, Qt::QueuedConnection);
        m_worst->addRow(
            button,
            u"%1 (%2)"_s.arg(signedDurationText(of.residual(), m_units), share(of.residual(), of.predicted, true)),
            u"Predicted %1, measured %2"_s.arg(durationText(of.predicted, m_units),
                                               durationText(of.measured, m_units)));
    }
}

void ResidualPanel::fillGroups()
{
    m_groups->clear();
    const auto& groups = m_picture->residuals.ops;
    m_groups->setVisible(!groups.empty());
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    const auto spread = [&](std::size_t i) {
        return static_cast<double>(groups[i].percentile95) /
               static_cast<double>(std::max<Nanos>(1, groups[i].predicted));
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return spread(a) > spread(b); });
    const double most = groups.empty() ? 1 : std::max(1e-12, spread(order.front()));
    for (std::size_t i = 0; i < std::min(groupsShown, order.size()); ++i) {
        const OpResiduals& of = groups[order[i]];
        auto* button =
            link(u"%1 of stage %2"_s
                     .arg(QString::fromUtf8(ruleOf(of.kind).text.data(),
                                            static_cast<qsizetype>(ruleOf(of.kind).text.size())))
                     .arg(of.stage),
                 of.worst == noSpan ? QString()
                                    : u"Shows the largest error: %1 of step %2"_s.arg(opOnRank(*m_timeline, of.worst))
                                          .arg(m_timeline->spans()[of.worst].step + 1));
        if (of.worst != noSpan)
            connect(
                button, &QPushButton::clicked, this, [this, span = of.worst] { emit opChosen(span); },
                Qt::QueuedConnection);
        auto* bar = new ShareBar;
        bar->setPlain(spread(order[i]) / most);
        m_groups->addBar(button, bar, u"± %1"_s.arg(share(of.percentile95, of.predicted, false)),
                         u"Rank %1, %2: predicted %3, median %4, 95 % within ± %5, worst %6"_s.arg(of.rank)
                             .arg(countText(static_cast<qint64>(of.count), u"1 op"_s, u"%L1 ops"_s))
                             .arg(durationText(of.predicted, m_units), durationText(of.measured, m_units),
                                  durationText(of.percentile95, m_units),
                                  signedDurationText(of.worstResidual, m_units)));
    }
    if (order.size() > groupsShown)
        m_groups->addText(u"and %1 more with smaller errors"_s.arg(order.size() - groupsShown), "faint");
}

} // namespace stagewright
