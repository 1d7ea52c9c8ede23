// SidePanel: the figures of one step of a run: schedule, bubble ratio against 1F1B, by rank, idle by cause, memory,
// communication, loss, and the selected op or range. Every figure has its definition as a tooltip. GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include "traces/report/run_report.h"
#include "widgets/numbers.h"
#include "widgets/panel/figure_measure.h"
#include "widgets/panel/gap_sections.h"
#include "widgets/panel/section_column.h"
#include "widgets/panel/section_rows.h"
#include "widgets/timeline/aggregation.h"

namespace stagewright {

class SidePanel : public SectionColumn {
    Q_OBJECT
public:
    explicit SidePanel(QWidget* parent = nullptr);

    void setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures); // null: empty
    // Shows figures of a time range instead (reportIn), with a note; null: those of the step again.
    void setFilter(std::shared_ptr<const RunReport> figures, const QString& note = {});
    // The session's baseline: every figure of a step then shows its change against it. Null: none. A filter has no
    // changes. withinNoise: the change in time is within the variation between steps.
    void setMeasure(std::shared_ptr<const FigureMeasure> measure, bool withinNoise = false);
    bool filtered() const { return m_stepFigures != nullptr; }
    void setSelection(SpanId span);                                 // noSpan: none
    void setAggregation(const Aggregation& aggregation);            // of a range; empty: back to the span
    void setSlack(std::shared_ptr<const std::vector<Nanos>> slack); // by span, < 0: unknown; null: not computed yet
    GapSections* gaps() { return m_gaps; }
    void showGap(); // scrolls to the selected gap
    void setBudget(std::optional<Bytes> budget);
    std::optional<Bytes> budget() const { return m_budget; }
    QString headline() const { return m_headline; } // "15.0 %"

signals:
    void budgetAsked(); // the button in the section Memory
    void unfilterAsked();
    void leverAsked(const QString& lever);    // by its name: do what it says
    void spanAsked(stagewright::SpanId span); // shows it on the timeline
    void planAsked();                         // a better order within the memory of this one

private:
    void pairMeasure();
    void fillFigures();
    void fillFilter();
    void fillLevers();
    void fillSchedule();
    const document::Figure& figure(std::string_view key) const; // of the printed figures
    SectionRows rows() const;
    void addFigure(PanelSection& section, std::string_view key);
    void fillBubble();
    void fillMemory();
    void fillDevices();
    void fillCommunication();
    void fillTraining();
    void fillSelection();
    void describeSpan(SpanId id);
    void describeTies(SpanId id);
    void describeLaunch(SpanId id);
    void describeMemory(SpanId id);
    void describeIdle(SpanId id);
    std::shared_ptr<const LeverTable> levers() const // null: unknown, or of a range
    {
        return m_figures && m_figures->levers ? std::shared_ptr<const LeverTable>(m_figures, &*m_figures->levers)
                                              : nullptr;
    }
    const FigureMeasure* measure() const { return filtered() ? nullptr : m_paired.get(); }

    std::shared_ptr<const Run> m_run;
    std::shared_ptr<const RunReport> m_figures;     // the printed figures
    std::vector<document::Figure> m_all;            // of them, under their keys
    std::shared_ptr<const RunReport> m_stepFigures; // of the whole step, while m_figures are of a range; else null
    QString m_filterNote;
    std::shared_ptr<const FigureMeasure> m_measure;
    std::shared_ptr<const FigureMeasure> m_paired; // with the run shown
    bool m_withinNoise = false;
    PanelSection* m_filter;
    std::optional<Bytes> m_budget;
    SpanId m_selected = noSpan;
    Aggregation m_aggregation;
    Units m_units;
    QString m_headline;
    PanelSection* m_levers;
    PanelSection* m_schedule;
    PanelSection* m_bubble;
    GapSections* m_gaps;
    std::shared_ptr<const std::vector<Nanos>> m_slack;
    PanelSection* m_memory;
    PanelSection* m_devices = nullptr;
    PanelSection* m_communication;
    PanelSection* m_training;
    PanelSection* m_selection;
};

// "I3 on rank 2": an op's name in the panel.
QString opOnRank(const Timeline& timeline, SpanId span);

} // namespace stagewright
