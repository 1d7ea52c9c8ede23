#include "widgets/compare/baseline_strip.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/compare/metric_text.h"
#include "widgets/literals.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {

namespace {

bool decides(const std::string& key)
{
    return key == "whole_step_ns" || key == "makespan_ns" || key == "bubble_fraction" ||
           key == "peak_activation_bytes" || key == "loss" || key == "bubble_rate_span";
}

} // namespace

BaselineStrip::BaselineStrip(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"baselineStrip"_s);
    setAccessibleName(u"Against the baseline"_s);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(18, 10, 18, 8);
    column->setSpacing(5);
    auto* head = new QHBoxLayout;
    m_title = new RowLabel({}, "title", this);
    m_title->setToolTip(u"Every run shown is compared with the baseline until you clear it."_s);
    head->addWidget(m_title, 1);
    m_more = new QPushButton(u"All"_s, this);
    m_more->setCheckable(true);
    m_more->setToolTip(u"Every figure against the baseline, not only the main ones"_s);
    head->addWidget(m_more);
    auto* clear = new QPushButton(u"Clear"_s, this);
    clear->setToolTip(u"Clear the baseline"_s);
    head->addWidget(clear);
    column->addLayout(head);
    m_note = makeLabel({}, "secondary", this);
    m_note->setWordWrap(true);
    column->addWidget(m_note);
    m_body = new QWidget(this);
    m_grid = nullptr;
    column->addWidget(m_body);
    auto* rule = new QWidget(this);
    rule->setObjectName(u"rule"_s);
    rule->setFixedHeight(1);
    column->addWidget(rule);
    connect(clear, &QPushButton::clicked, this, &BaselineStrip::clearAsked);
    connect(m_more, &QPushButton::toggled, this, [this](bool all) {
        m_all = all;
        fill();
    });
    makeCopyable(this, [this] { return m_grid != nullptr ? tableOf(*m_grid) : TableText{}; });
}

void BaselineStrip::setBaseline(const QString& name, std::shared_ptr<const Comparison> comparison, const Units& units,
                                const QString& note)
{
    m_title->setText(u"Baseline: %1"_s.arg(breakable(name)));
    m_comparison = std::move(comparison);
    m_units = units;
    QString text = note;
    if (m_comparison && !m_comparison->differences.empty()) {
        QStringList words;
        for (const RunDifference& one : m_comparison->differences) words << QString::fromStdString(one.title);
        text = u"Different setups: %1."_s.arg(words.join(u", "_s));
    }
    if (m_comparison && m_comparison->withinSpread)
        text += (text.isEmpty() ? QString() : u" "_s) +
                u"The change in time is within the noise: no significant difference."_s;
    m_note->setText(text);
    m_note->setVisible(!text.isEmpty());
    fill();
}

void BaselineStrip::fill()
{
    delete m_grid;
    for (QLabel* label : m_body->findChildren<QLabel*>()) {
        label->hide();
        label->deleteLater();
    }
    m_grid = new QGridLayout(m_body);
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setHorizontalSpacing(8);
    m_grid->setVerticalSpacing(4);
    m_grid->setColumnStretch(0, 1);
    m_body->setVisible(m_comparison != nullptr);
    m_more->setVisible(m_comparison != nullptr);
    if (!m_comparison) return;
    int row = 0;
    const auto put = [&](int column, const QString& text, const char* role, const QString& tooltip) {
        auto* label = makeLabel(text, role, m_body, true);
        label->setToolTip(tooltip);
        if (column > 0) label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        if (column == 0) label->setWordWrap(true); // never the figures
        m_grid->addWidget(label, row, column);
    };
    for (const MetricDelta& metric : m_comparison->metrics) {
        if (metric.a == 0 && metric.b == 0) continue;
        if (!m_all && !decides(metric.key)) continue;
        const MetricText text = metricText(metric, m_units, m_comparison->shows() || metric.unit == "bytes");
        put(0, text.title, "secondary", text.whole);
        put(1, text.b, "value", u"The run shown; the baseline has %1"_s.arg(text.a));
        put(2, text.change, text.role, u"The run shown minus the baseline; times as a share of the baseline's"_s);
        ++row;
    }
}

QString BaselineStrip::plainText() const
{
    QStringList lines{m_title->text(), m_note->text()};
    if (m_grid != nullptr)
        for (const QStringList& row : tableOf(*m_grid).rows) lines << row.join(u' ');
    return lines.join(u'\n');
}

} // namespace stagewright
