// GapSections: idle time explained in three sections of the side panel: in the summary idle time by cause (a cause marks
// its gaps on the timeline) and the longest gaps, and the selected gap with its sentence, its chain and its experiment.
// Owned by the side panel. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QObject>
#include <QPointer>
#include <QPushButton>

#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/levers.h"
#include "traces/report/run_report.h"
#include "widgets/numbers.h"

namespace stagewright {

class FigureMeasure;
class PanelSection;
class ShareBar;
class SectionColumn;

class GapSections : public QObject {
    Q_OBJECT
public:
    GapSections(SectionColumn* summary, PanelSection* selected); // adds the first two at this point

    // Null where there is nothing to show. Without changes until a measure is set.
    // levers: the gain from removing a cause, which sorts the causes; null: unknown, sorted by total.
    void setReport(std::shared_ptr<const Timeline> timeline, const std::shared_ptr<const RunReport>& figures,
                   std::shared_ptr<const LeverTable> levers = nullptr);
    // The measure that idle times by cause are compared with; null: none.
    void setMeasure(std::shared_ptr<const FigureMeasure> measure);
    void setCause(std::optional<IdleCause> cause); // the marked cause
    // A gap of the report, −1: none; its explanation comes later.
    void setSelected(int gap, const std::optional<GapExplanation>& explanation);
    bool anySelected() const { return m_gap >= 0; }
    // Without acts causes mark nothing and gaps can't be chosen. Before setReport().
    void setActs(bool acts) { m_acts = acts; }

signals:
    void selectedChanged();
    void causeChosen(std::optional<stagewright::IdleCause> cause); // nullopt: chosen again, so unmarked
    void gapChosen(int gap);
    void opChosen(stagewright::SpanId span); // of the chain
    void walkAsked(int by);                  // −1, +1: the previous or next gap in the list by length

private:
    void fillCauses();
    void fillLongest();

    struct CauseRow {
        IdleCause cause;
        QPushButton* button;
        ShareBar* bar;
        double share;
    };

    std::vector<CauseRow> m_rows;
    bool m_acts = true;
    bool m_absent = false;                     // causes without idle time are listed
    int m_gap = -1;                            // selected
    QPointer<QPushButton> m_longer, m_shorter; // recreated for each gap
    QPointer<QPushButton> m_toFocus;           // takes the focus once it is shown
    PanelSection *m_causes, *m_longest, *m_selected;
    std::shared_ptr<const Timeline> m_timeline;
    std::shared_ptr<const BubbleReport> m_report;
    std::vector<document::Figure> m_figures;
    std::shared_ptr<const LeverTable> m_levers;
    Units m_units;
    std::shared_ptr<const FigureMeasure> m_measure;
    std::optional<IdleCause> m_cause;
};

// Indices of the report's gaps, longest first; only of `cause` if given.
std::vector<int> gapsByLength(const BubbleReport& report, std::optional<IdleCause> cause = {});

} // namespace stagewright
