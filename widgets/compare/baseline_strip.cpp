#include "widgets/compare/baseline_strip.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "traces/compare/comparison_document.h"
#include "widgets/literals.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
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
    m_body = new PanelSection({}, this);
    m_body->setRuled(false);
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
    makeCopyable(this, [this] { return m_body->table(); });
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
    m_body->clear();
    m_body->setVisible(m_comparison != nullptr);
    m_more->setVisible(m_comparison != nullptr);
    if (!m_comparison) return;
    const Comparison* one = m_comparison.get();
    document::Table table = metricsTable({&one, 1}, 1);
    table.columns[2].shown = false; // the baseline's own
    table.columns[3].title.clear();
    table.columns[3].meaning = "The run shown";
    table.columns[4].meaning = "The run shown minus the baseline; times as a share of the baseline's";
    std::erase_if(table.rows,
                  [this](const auto& row) { return !m_all && !decides(std::get<std::string>(row.cells[0])); });
    SectionRows{m_units, nullptr, {}, {}}.addGrid(*m_body, table);
}

QString BaselineStrip::plainText() const
{
    return QStringList{m_title->text(), m_note->text(), m_body->plainText()}.join(u'\n');
}

} // namespace stagewright
