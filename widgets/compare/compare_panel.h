// ComparePanel: what B (or C, D) changes against A: different setups, the difference table, the waterfall, why, idle
// time by rank, where the time went, the ops. Selects the pair, the alignment and the step. GUI thread only.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "traces/compare/compare.h"
#include "traces/run/run.h"
#include "widgets/compare/waterfall_chart.h"
#include "widgets/panel/section_column.h"
#include "widgets/panel/section_rows.h"

class QComboBox;

namespace stagewright {

class CompareOpTable;
class PlotWidget;

class ComparePanel : public SectionColumn {
    Q_OBJECT
public:
    explicit ComparePanel(QWidget* parent = nullptr);
    // names: of every run shown, A first; against: the run that the panel compares with A, from 1; steps: the number
    // that every run has.
    void setChoices(const QStringList& names, int against, bool alignedAtOp, int steps, int step);
    // Comparisons of A with each of the others, in order; with more than one, the table has a column for each. note:
    // text below it.
    void setAll(std::vector<std::shared_ptr<const Comparison>> all, const QString& note = {});
    // null: empty
    void setComparison(const std::shared_ptr<const Run>& a, const std::shared_ptr<const Run>& b,
                       const std::shared_ptr<const Comparison>& comparison);
    void setTheme(const Theme& theme) override;
    PlotWidget* waterfall() { return m_waterfall; }
    const std::vector<WaterfallBar>& bars() const { return m_bars; }
    QComboBox* waterfallKind() { return m_fallKind; }
    CompareOpTable* ops() { return m_ops; }

signals:
    void againstAsked(int index); // from 1
    void alignAsked(bool atOp);
    void stepAsked(int step); // −1: the median of each
    void opChosen(stagewright::SpanId a, stagewright::SpanId b);

private:
    void buildChoices();
    void buildWaterfall();
    char letter() const { return m_letter.toLatin1(); }
    SectionRows rows() const;
    void fillUnknown(const Comparison& comparison);
    void fillTable(const Comparison& comparison);
    void fillWaterfall();
    void fillIdle(const Comparison& comparison);
    void fillWhy(const Comparison& comparison);

    Units m_units;
    QString m_nameA, m_nameB;
    QStringList m_names;
    std::vector<std::shared_ptr<const Comparison>> m_all;
    QString m_note;
    QChar m_letter = u'B';
    std::shared_ptr<const Comparison> m_comparison;
    QWidget* m_choices;
    QComboBox* m_against;
    QComboBox* m_align;
    QComboBox* m_step;
    PanelSection* m_differences;
    PanelSection* m_table;
    QWidget* m_fall;
    QLabel* m_fallTitle;
    QComboBox* m_fallKind;
    PlotWidget* m_waterfall;
    std::vector<WaterfallBar> m_bars; // of the waterfall
    QLabel* m_fallNote;
    PanelSection* m_idle;
    PanelSection* m_split;
    PanelSection* m_why;
    std::array<PanelSection*, 3> m_kernels; // in both, only in A, only in the other
    QLabel* m_opsTitle;
    CompareOpTable* m_ops;
};

} // namespace stagewright
