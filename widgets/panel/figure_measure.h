// FigureMeasure: the session's baseline for the side panel: figures of one step of another run, and the text of a
// figure's change against them. Immutable; GUI thread only for what fills sections.
#pragma once

#include <memory>
#include <optional>

#include "traces/report/run_report.h"
#include "widgets/numbers.h"
#include "widgets/panel/panel_parts.h"

namespace stagewright {

QString shownFigure(const document::Figure& figure, const Units& units); // in the unit of time that the reader chose

class FigureMeasure {
public:
    enum class Good {
        Less,
        More,
    };
    // run, figures: of the baseline; name: as listed.
    FigureMeasure(const Run& run, std::shared_ptr<const RunReport> figures, const QString& name);
    // The same for figures of this run: units and ranks are then known. withinNoise: the change in time is at most what
    // steps differ by, so that times have no colour.
    std::shared_ptr<const FigureMeasure> against(const Run& run, bool withinNoise) const;

    const RunReport& figures() const { return *m_figures; }
    std::optional<double> lastLoss() const { return m_lastLoss; }
    QString words() const; // what the changes are compared with

    struct Change {
        QString text; // "−5.5 %", "−9.7 pt", "+24"; empty: unknown
        PanelSection::Tone tone = PanelSection::Tone::Faint;
        const char* role() const;
    };
    Change share(double now, double before, int decimals = 1) const; // fractions, less is better: "−9.7 pt"
    Change count(double now, double before) const;                   // neither direction is better
    Change difference(double now, double before, int decimals) const;

    void tell(PanelSection& section, const Change& change) const; // beside the last row
    void tell(PanelSection& section,
              const document::Figure& now) const; // the same figure's; nothing where one is unknown
    // Times of one step, of one rank or summed over ranks; no text where the units differ, or where sums cover
    // different numbers of ranks.
    void tellTime(PanelSection& section, Nanos now, Nanos before, bool ofStep = false, Good good = Good::Less) const;
    void tellBytes(PanelSection& section, Bytes most, const std::vector<Bytes>& byRank) const;

private:
    Change relative(double now, double before, Good good, bool coloured) const;

    std::shared_ptr<const RunReport> m_figures;
    QString m_name;
    Units m_units;
    std::optional<double> m_lastLoss;
    int m_ranks;
    bool m_withinNoise = false;
    bool m_sameTime = true, m_sameMemory = true, m_sameRanks = true;
};

} // namespace stagewright
