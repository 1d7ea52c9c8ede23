// GapsController: idle time explained: causes and gaps marked on the timeline, the chain to the root of a gap, the
// slack of ops.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/ui/workspace/feature.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/gap_explainer.h"
#include "widgets/job.h"

namespace stagewright {

class GapsOverlay;

class GapsController : public Feature {
    Q_OBJECT
public:
    explicit GapsController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    void chooseGap(int index); // index in the report of the step shown; −1: none
    int chosenGap() const { return m_gap; }
    GapsOverlay* overlay() { return m_overlay; }
    // of the chosen gap, once computed
    std::shared_ptr<const GapExplanation> gapExplanation() const { return m_gapExplanation; }
    bool escape() override;

private:
    void reset(); // another run or step: nothing is marked
    void askSlack();
    void chooseCause(std::optional<IdleCause> cause);
    void walkGaps(int by); // the next shorter or longer one
    void refreshMarks();

    GapsOverlay* m_overlay;
    std::optional<IdleCause> m_cause; // marked on the timeline
    int m_gap = -1;
    std::shared_ptr<const GapExplanation> m_gapExplanation;
    std::shared_ptr<const std::vector<Nanos>> m_slack; // by span of the step shown
    Nanos m_mostSlack = 0;
    bool m_slackAsked = false;
    Job m_explaining;
    Job m_measuring; // the slack
};

} // namespace stagewright
