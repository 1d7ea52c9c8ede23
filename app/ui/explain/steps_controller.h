// StepsController: which step is shown: one, some, or every step of a run on one axis. If a run is too large for one
// timeline, the details of a step are read when one of its ops is clicked, reached by keys or found; reading shows its
// progress beside the status and can be cancelled.
#pragma once

#include <optional>

#include <QObject>

#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "widgets/panel/op_query.h"
#include "widgets/timeline/view_state.h"

class QComboBox;
class QProgressBar;
class QToolButton;

namespace stagewright {

class StepsController : public Feature, public StepReading {
    Q_OBJECT
public:
    explicit StepsController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

    // Reads the details of the step at this moment, then selects the rank's op there. Does nothing if the
    // details are loaded or there is no op.
    void detail(int panel, int rank, Nanos axisTime);
    void fit(const ShownSteps& steps) override;
    void findOn(const QString& text, const OpQuery& query, bool backward) override;
    void cancel(); // cancels reading lanes; the previous step stays
    QProgressBar* progress() { return m_progress; }

private:
    void connectActions();
    void fillBox();
    void choose(); // the dialog
    void stepBy(int by);
    void refresh();
    void selectAt(int rank, Nanos axisTime);

    QComboBox* m_box; // of the toolbar
    QProgressBar* m_progress;
    QToolButton* m_cancel;
};

} // namespace stagewright
