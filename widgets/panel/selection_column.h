// SelectionColumn: what is known of the selected op, kernel or range, and below its title of the selected gap, which
// GapSections fills. GUI thread only.
#pragma once

#include <memory>

#include "traces/report/run_report.h"
#include "widgets/numbers.h"
#include "widgets/panel/section_column.h"
#include "widgets/timeline/aggregation.h"

namespace stagewright {

class SelectionColumn : public SectionColumn {
    Q_OBJECT
public:
    explicit SelectionColumn(QWidget* parent = nullptr);

    void setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures); // null: empty
    void setSelection(SpanId span);                                                        // noSpan: none
    void setAggregation(const Aggregation& aggregation);            // of a range; empty: back to the span
    void setSlack(std::shared_ptr<const std::vector<Nanos>> slack); // by span, < 0: unknown; null: not computed yet
    SpanId selected() const { return m_selected; }
    PanelSection* gapSection() { return m_gap; }
    void refresh() { fillSelection(); } // after the gap was shown or hidden
    void setTheme(const Theme& theme) override;

private:
    void fillSelection();
    void describeSpan(SpanId id);
    void describeTies(SpanId id);
    void describeLaunch(SpanId id);
    void describeMemory(SpanId id);
    void describeIdle(SpanId id);

    std::shared_ptr<const Run> m_run;
    std::shared_ptr<const RunReport> m_figures;
    std::shared_ptr<const std::vector<Nanos>> m_slack;
    SpanId m_selected = noSpan;
    Aggregation m_aggregation;
    Units m_units;
    PanelSection* m_gap;
    PanelSection* m_selection;
};

// "I3 on rank 2": an op's name in the panel.
QString opOnRank(const Timeline& timeline, SpanId span);

} // namespace stagewright
