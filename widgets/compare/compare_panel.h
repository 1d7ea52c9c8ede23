// ComparePanel: what B changes against A: the difference table, idle time by rank, where the time went, why. GUI thread only.
#pragma once

#include <memory>

#include "traces/compare/compare.h"
#include "traces/run.h"
#include "widgets/panel/side_panel.h"

namespace stagewright {

class ComparePanel : public SectionColumn {
    Q_OBJECT
public:
    explicit ComparePanel(QWidget* parent = nullptr);
    void setComparison(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b, std::shared_ptr<const Comparison> comparison); // null: empty

private:
    void fillTable(const Comparison& comparison);
    void fillIdle(const Comparison& comparison);
    void fillSplit(const Comparison& comparison);
    void fillWhy(const Comparison& comparison);

    Units m_units;
    QString m_nameA, m_nameB;
    PanelSection* m_table;
    PanelSection* m_idle;
    PanelSection* m_split;
    PanelSection* m_why;
};

// Whether less of a metric is better; the panel colours by it. Keys as MetricDelta::key.
bool lessIsBetter(const std::string& key);

} // namespace stagewright
