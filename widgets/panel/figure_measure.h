// FigureMeasure: the session's baseline for the side panel: figures of one step of another run, and the text of a
// figure's change against them. Immutable; GUI thread only for what fills sections.
#pragma once

#include <memory>
#include <vector>

#include "traces/report/run_report.h"
#include "widgets/panel/panel_parts.h"

namespace stagewright {

class FigureMeasure {
public:
    // run, figures: of the baseline; name: as listed.
    FigureMeasure(const Run& run, std::shared_ptr<const RunReport> figures, const QString& name);
    // The same for figures of this run: units and ranks are then known. withinNoise: the change in time is at most what
    // steps differ by, so that times have no colour.
    std::shared_ptr<const FigureMeasure> against(const Run& run, bool withinNoise) const;

    const RunReport& figures() const { return *m_figures; }
    QString words() const; // what the changes are compared with

    struct Change {
        QString text; // "−5.5 %", "−9.7 pt", "+24"; empty: unknown
        document::Tone tone = document::Tone::Faint;
        const char* role() const;
    };
    // The text of the same figure, found by its key or without one by its title; no text where one is unknown, the units
    // differ, or sums cover different numbers of ranks. Of counts and numbers neither direction is better.
    Change of(const document::Figure& now) const;
    Change share(double now, double before, int decimals = 1) const; // fractions, less is better: "−9.7 pt"
    void tell(PanelSection& section, const Change& change) const;    // beside the last row
    void tell(PanelSection& section, const document::Figure& now) const { tell(section, of(now)); }

private:
    std::shared_ptr<const RunReport> m_figures;
    std::vector<document::Figure> m_all; // of these and of the run's training
    QString m_name;
    Units m_units;
    int m_ranks;
    bool m_withinNoise = false;
    bool m_sameTime = true, m_sameMemory = true, m_sameRanks = true;
};

} // namespace stagewright
