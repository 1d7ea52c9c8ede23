// StepsController: every step of a run on one axis. If a run is too large for one timeline, the details of a step are read when one of
// its ops is clicked, reached by keys or found; reading shows its progress beside the status and can be cancelled.
#pragma once

#include <optional>

#include <QObject>

#include "app/ui/runs/run_library.h"
#include "widgets/panel/op_query.h"
#include "widgets/timeline/view_state.h"

class QProgressBar;
class QToolButton;

namespace stagewright {

class MainWindow;

class StepsController : public QObject {
    Q_OBJECT
public:
    explicit StepsController(MainWindow& window);

    // Reads the details of the step at this moment, then selects the rank's op there. Does nothing if the
    // details are loaded or there is no op.
    void detail(int panel, int rank, Nanos axisTime);
    void fit(const ShownSteps& steps); // zooms to these steps
    // Goes to the next step with a match, reads its details and selects the match.
    void findOn(const QString& text, const OpQuery& query, bool backward);
    void cancel(); // cancels reading lanes; the previous step stays
    QProgressBar* progress() { return m_progress; }

private:
    void refresh();
    void selectAt(int rank, Nanos axisTime);

    MainWindow& m_window;
    QProgressBar* m_progress;
    QToolButton* m_cancel;
};

} // namespace stagewright
