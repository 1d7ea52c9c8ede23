// ScoreRailView: step times over the canvas, on the timeline's own axis, so that a mark is over the end of its step:
// the proven bound, par, the best known, the learner's guess and, bold, the schedule on screen. Marks at the same place
// share it, with all their names. GUI thread only.
#pragma once

#include <optional>
#include <vector>

#include <QWidget>

#include "traces/lessons/grading.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class TimelineView;

class ScoreRailView : public ThemedWidget {
    Q_OBJECT
public:
    // as wide as the timeline, and gone before it
    explicit ScoreRailView(const TimelineView& timeline, QWidget* parent = nullptr);
    void setRail(const std::optional<lessons::ScoreRail>& rail); // none: nothing to score
    // while an op is dragged; NaN: it can't run
    void setYours(double shares);
    QSize sizeHint() const override { return {600, 46}; }
    QSize minimumSizeHint() const override { return {300, 46}; }

    struct Mark {
        double value = 0;
        QString names;
        bool yours = false;
        bool guess = false; // the only one at its place
    };
    std::vector<Mark> marks() const; // by value
    double placeOf(double units) const;
    double farthest() const; // mark, in units; 0: none

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent* event) override;

private:
    void describe();

    const TimelineView& m_timeline;
    std::optional<lessons::ScoreRail> m_rail;
};

} // namespace stagewright
