// SidePanel: one step of a run in two columns, of which one is shown: the summary (schedule, bubble ratio against 1F1B,
// by rank, idle by cause, memory, communication, loss) and what is selected. A selection leaves the summary as and
// where it is. Every figure has its definition as a tooltip. GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QStackedWidget>

#include "traces/report/run_report.h"
#include "widgets/numbers.h"
#include "widgets/panel/figure_measure.h"
#include "widgets/panel/gap_sections.h"
#include "widgets/panel/section_column.h"
#include "widgets/panel/section_rows.h"
#include "widgets/panel/selection_column.h"

namespace stagewright {

class SidePanel : public QStackedWidget {
    Q_OBJECT
public:
    explicit SidePanel(QWidget* parent = nullptr);

    // Null: empty. Without acts gaps are texts, as beside other runs; findings act on the run of the panel.
    // A heading names the run where there are several.
    void setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures, bool acts = true,
                const QString& heading = {});
    SectionColumn* summary() { return m_summary; }
    SelectionColumn* selection() { return m_selection; }
    bool anySelected() const { return m_selection->selected() != noSpan || m_gaps->anySelected(); }
    void setTheme(const Theme& theme);
    QString plainText() const; // of both columns
    std::vector<std::pair<QString, QString>> figures() const { return m_summary->figures(); }
    TableText table() const; // of the column shown
    // Shows figures of a time range instead (reportIn), with a note; null: those of the step again.
    void setFilter(std::shared_ptr<const RunReport> figures, const QString& note = {});
    // The session's baseline: every figure of a step then shows its change against it. Null: none. A filter has no
    // changes. withinNoise: the change in time is within the variation between steps.
    void setMeasure(std::shared_ptr<const FigureMeasure> measure, bool withinNoise = false);
    bool filtered() const { return m_stepFigures != nullptr; }
    void setSelection(SpanId span); // noSpan: none
    GapSections* gaps() { return m_gaps; }
    void setBudget(std::optional<Bytes> budget);
    std::optional<Bytes> budget() const { return m_budget; }
    QString headline() const { return m_headline; } // "15.0 %"

signals:
    void selectionShown(bool any); // an op or gap is selected now, or none
    void budgetAsked();            // the button in the section Memory
    void unfilterAsked();
    void leverAsked(const QString& lever);    // by its name: do what it says
    void spanAsked(stagewright::SpanId span); // shows it on the timeline
    void planAsked();                         // a better order within the memory of this one
    void allStepsAsked();                     // on one axis

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
    void addRankRows();
    void addRankRow(std::size_t first, std::size_t last); // ranks with the same figure
    std::shared_ptr<const LeverTable> levers() const      // null: unknown, or of a range
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
    Units m_units;
    bool m_everyRank = false; // the reader asked for them
    QString m_headline;
    PanelSection* m_levers;
    PanelSection* m_schedule;
    PanelSection* m_bubble;
    GapSections* m_gaps;
    PanelSection* m_memory;
    PanelSection* m_devices = nullptr;
    PanelSection* m_communication;
    PanelSection* m_training;
    SectionColumn* m_summary;
    SelectionColumn* m_selection;
    PanelSection* m_heading;
};

} // namespace stagewright
