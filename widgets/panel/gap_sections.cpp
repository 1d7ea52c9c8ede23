#include "widgets/panel/gap_sections.h"

#include <algorithm>
#include <numeric>

#include <QHBoxLayout>
#include <QPushButton>

#include "traces/analysis/explain_gap.h"
#include "widgets/literals.h"
#include "widgets/panel/figure_measure.h"
#include "widgets/panel/section_column.h"
#include "widgets/panel/section_rows.h"
#include "widgets/panel/selection_column.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr std::size_t longestShown = 6;
constexpr std::size_t chainShown = 8;

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

QPushButton* link(const QString& text, const QString& tooltip) { return new LinkButton(text, tooltip); }

} // namespace

std::vector<int> gapsByLength(const BubbleReport& report, std::optional<IdleCause> cause)
{
    std::vector<int> order;
    for (std::size_t i = 0; i < report.gaps.size(); ++i)
        if ((!cause || report.gaps[i].cause == *cause) && report.gaps[i].end > report.gaps[i].start)
            order.push_back(static_cast<int>(i));
    const auto length = [&](int i) {
        return report.gaps[static_cast<std::size_t>(i)].end - report.gaps[static_cast<std::size_t>(i)].start;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
    return order;
}

GapSections::GapSections(SectionColumn* summary, PanelSection* selected) : QObject(summary), m_selected(selected)
{
    m_causes = summary->addSection(u"Idle time by cause, all ranks"_s);
    m_longest = summary->addSection(u"Longest gaps"_s);
}

void GapSections::setReport(std::shared_ptr<const Timeline> timeline, const std::shared_ptr<const RunReport>& figures,
                            std::shared_ptr<const LeverTable> levers)
{
    m_levers = std::move(levers);
    m_timeline = std::move(timeline);
    m_measure.reset();
    m_units = figures ? figures->units : Units{};
    m_figures = figures ? figures->figures() : std::vector<document::Figure>();
    m_report = figures ? std::shared_ptr<const BubbleReport>(figures, &figures->bubbles) : nullptr;
    m_cause.reset();
    fillCauses();
    fillLongest();
    setSelected(-1, std::nullopt);
}

void GapSections::setMeasure(std::shared_ptr<const FigureMeasure> measure)
{
    m_measure = std::move(measure);
    fillCauses();
}

void GapSections::setCause(std::optional<IdleCause> cause)
{
    m_cause = cause;
    for (const CauseRow& row : m_rows) { // not recreated: one of them may have the focus
        row.button->setChecked(cause == row.cause);
        row.bar->setPlain(row.share, cause == row.cause);
    }
    fillLongest();
}

void GapSections::fillCauses()
{
    m_causes->clear();
    m_rows.clear();
    std::vector<IdleCause> causes;
    QStringList none, unknown;
    const auto figureOf = [this](IdleCause cause) -> const document::Figure& {
        return *document::findFigure(m_figures, "idle_by_cause." + std::string(toText(cause)));
    };
    for (std::size_t c = 0; m_report != nullptr && c < idleCauseCount; ++c) {
        const document::Figure& figure = figureOf(static_cast<IdleCause>(c));
        if (figure.unknown.empty() && figure.value != 0) continue;
        (figure.unknown.empty() ? none : unknown) << words(titleOf(static_cast<IdleCause>(c))).toLower();
    }
    if (m_report != nullptr && m_report->partial) {
        m_causes->show();
        m_causes->addText(
            u"Bubbles and causes need the other ranks: %1. Import the traces of all ranks together."_s.arg(
                words(m_report->noArrivals)));
        return;
    }
    if (m_report != nullptr) causes = causesByGain(m_report->byCause, m_levers.get());
    m_causes->setVisible(!causes.empty());
    if (causes.empty()) return;
    const auto most = static_cast<double>(*std::max_element(m_report->byCause.begin(), m_report->byCause.end()));
    for (const IdleCause cause : causes) {
        const auto c = static_cast<std::size_t>(cause);
        auto* bar = new ShareBar;
        const double share = static_cast<double>(m_report->byCause[c]) / most;
        bar->setPlain(share, m_cause == cause);
        auto* button =
            link(words(titleOf(cause)),
                 m_acts ? u"Marks these gaps on the timeline; again: clears the marks"_s : words(meaningOf(cause)));
        button->setEnabled(m_acts);
        button->setCheckable(true);
        button->setChecked(m_cause == cause);
        connect(
            button, &QPushButton::clicked, this,
            [this, cause](bool on) { emit causeChosen(on ? std::optional(cause) : std::nullopt); },
            Qt::QueuedConnection);
        m_rows.push_back({cause, button, bar, share});
        const Nanos gain =
            m_levers ? m_levers->gainOf(cause).value_or(-1) : -1; // −1: it counts for another cause, or no lever
        const Lever* lever = m_levers ? m_levers->leverAgainst(cause) : nullptr;
        const QString what = lever != nullptr ? words(lever->title).section(u" ("_s, 0, 0) : QString();
        const QString without =
            gain < 0    ? QString()
            : gain == 0 ? u"\nNo change that is simulated against it shortens the step."_s
                        : u"\n%1: the step would be shorter by %2."_s.arg(sentence(what), durationText(gain, m_units));
        const QString value = shownFigure(figureOf(cause), m_units);
        m_causes->addBar(button, bar, value,
                         u"%1%2\nAll causes add up to the idle time, %3, to the nanosecond."_s.arg(
                             words(meaningOf(cause)), without, durationText(m_report->idle, m_units)));
        m_causes->setFigure(QString::fromStdString(figureOf(cause).key), value);
        if (!m_measure && gain > 0) { // In units the number is enough: the amount beside it has the word.
            const QString saved = m_units.time != 1 ? signedDurationText(-gain, m_units).section(u' ', 0, 0)
                                                    : signedDurationText(-gain, m_units);
            m_causes->addChange(saved,
                                u"%1: the gain of this change, simulated. It is the same as under “What would help”; a "
                                "change that removes several causes counts for the largest. The causes are sorted "
                                "by it."_s.arg(sentence(what)),
                                document::Tone::Good);
        }
        if (m_measure) m_measure->tell(*m_causes, figureOf(cause));
    }
    if (!unknown.isEmpty()) m_causes->addText(u"Unknown: %1"_s.arg(unknown.join(", "_L1)), "faint");
    if (none.isEmpty()) return;
    if (m_absent || none.size() < 4) {
        m_causes->addText(u"No idle time from: %1"_s.arg(none.join(", "_L1)), "faint");
        return;
    }
    auto* more =
        link(u"%1 other causes: no idle time…"_s.arg(none.size()), u"No idle time from: %1"_s.arg(none.join(", "_L1)));
    connect(
        more, &QPushButton::clicked, this,
        [this] {
            m_absent = true;
            fillCauses();
        },
        Qt::QueuedConnection);
    m_causes->addWidget(more);
}

void GapSections::fillLongest()
{
    m_longest->clear();
    const std::vector<int> order = m_report != nullptr ? gapsByLength(*m_report, m_cause) : std::vector<int>();
    const bool shown = !order.empty() && m_acts && !m_report->partial;
    m_longest->setVisible(shown);
    if (!shown) return;
    m_longest->setTitle(m_cause ? u"Longest gaps: %1"_s.arg(words(titleOf(*m_cause)).toLower()) : u"Longest gaps"_s);
    for (std::size_t i = 0; i < std::min(longestShown, order.size()); ++i) {
        const int index = order[i];
        const Gap& gap = m_report->gaps[static_cast<std::size_t>(index)];
        QString text = u"Rank %1"_s.arg(gap.rank);
        if (gap.next != noSpan)
            text += u", before %1"_s.arg(shownName(m_timeline->nameOf(m_timeline->spans()[gap.next])));
        else
            text += u", at the end"_s;
        auto* button = link(text, u"Explains this gap and scrolls to it"_s);
        connect(
            button, &QPushButton::clicked, this, [this, index] { emit gapChosen(index); }, Qt::QueuedConnection);
        m_longest->addRow(button, durationText(gap.end - gap.start, m_units), words(titleOf(gap.cause)));
    }
}

void GapSections::setSelected(int index, const std::optional<GapExplanation>& explanation)
{
    const auto focused = [this](const QPushButton* button) {
        return button != nullptr && (button->hasFocus() || button == m_toFocus);
    };
    const bool longerHad = focused(m_longer), shorterHad = focused(m_shorter);
    m_selected->clear();
    const bool any = m_report != nullptr && index >= 0 && static_cast<std::size_t>(index) < m_report->gaps.size();
    m_gap = any ? index : -1;
    m_selected->setVisible(any);
    emit selectedChanged();
    if (!any) return;
    const Gap& gap = m_report->gaps[static_cast<std::size_t>(index)];
    auto* walk = new QWidget;
    auto* layout = new QHBoxLayout(walk);
    layout->setContentsMargins(0, 0, 0, 0);
    m_longer = link(u"Previous gap"_s, u"The next longer gap (Shift+G)"_s);
    m_shorter = link(u"Next gap"_s, u"The next shorter gap (G)"_s);
    connect(
        m_longer, &QPushButton::clicked, this, [this] { emit walkAsked(-1); }, Qt::QueuedConnection);
    connect(
        m_shorter, &QPushButton::clicked, this, [this] { emit walkAsked(1); }, Qt::QueuedConnection);
    layout->addWidget(m_longer);
    layout->addWidget(m_shorter);
    layout->addStretch(1);
    m_selected->addRow(u"Rank %1"_s.arg(gap.rank), durationText(gap.end - gap.start, m_units),
                       u"Idle time from one cause on one rank"_s);
    if (m_report->partial)
        m_selected->addRow(u"Cause"_s, u"unknown"_s, words(m_report->noArrivals));
    else
        m_selected->addRow(u"Cause"_s, words(titleOf(gap.cause)), words(meaningOf(gap.cause)));
    if (m_report->partial) {
        m_selected->addText(wholeQuantities(sentence(explainGap(*m_timeline, gap))), "value");
    } else if (explanation) {
        m_selected->addText(wholeQuantities(sentence(explanation->sentence)), "value");
        const std::size_t shown = std::min(chainShown, explanation->chain.size());
        for (std::size_t i = 0; i < shown; ++i) {
            const GapLink& step = explanation->chain[i];
            if (step.span == noSpan) {
                m_selected->addText(wholeQuantities(sentence(step.why)));
                continue;
            }
            auto* button = link(opOnRank(*m_timeline, step.span), u"Selects this op"_s);
            connect(
                button, &QPushButton::clicked, this, [this, span = step.span] { emit opChosen(span); },
                Qt::QueuedConnection);
            m_selected->addWidget(button);
            m_selected->addText(wholeQuantities(sentence(step.why)));
        }
        if (shown < explanation->chain.size())
            m_selected->addText(u"… and %1 more, up to the op outlined in red"_s.arg(explanation->chain.size() - shown),
                                "faint");
        if (const auto& experiment = explanation->experiment) {
            const Nanos change = experiment->after - experiment->before;
            m_selected->addRow(sentence(experiment->change), signedDurationText(change, m_units),
                               u"The step simulated from its own durations with this one change: %1 becomes %2."_s.arg(
                                   durationText(experiment->before, m_units), durationText(experiment->after, m_units)),
                               change < 0 ? document::Tone::Good : document::Tone::Plain);
        }
    } else {
        m_selected->addText(u"Explaining…"_s, "faint");
    }
    m_selected->addWidget(walk);
    // Once they are shown, later than this.
    for (QPushButton* button : {longerHad ? m_longer.data() : nullptr, shorterHad ? m_shorter.data() : nullptr})
        if (button != nullptr) {
            m_toFocus = button; // the explanation may come before that
            QMetaObject::invokeMethod(
                button,
                [this, button] {
                    if (m_toFocus == button) m_toFocus = nullptr;
                    button->setFocus();
                },
                Qt::QueuedConnection);
        }
}

} // namespace stagewright
