// StepsController: every step of a run on one axis. Where a run is too large for one timeline, the details of a step are read
// when an op of it is clicked, walked to or found; reading shows its progress beside the status and can be cancelled.
#pragma once

#include <optional>

#include <QObject>

#include "app/ui/run_library.h"
#include "widgets/panel/op_query.h"
#include "widgets/view_state.h"

class QProgressBar;
class QToolButton;

namespace stagewright {

class MainWindow;

class StepsController : public QObject {
    Q_OBJECT
public:
    explicit StepsController(MainWindow& window);

    // The details of the step that this moment lies in, then the op of the rank there is selected. Nothing where the
    // details are at hand, or no op is there.
    void detail(int panel, int rank, Nanos axisTime);
    void fit(const ShownSteps& steps); // the view on these of all steps shown
    // The next step with a match, its details, and the match selected there.
    void findOn(const QString& text, const OpQuery& query, bool backward);
    void cancel(); // reading lanes; the step shown before stays
    QProgressBar* progress() { return m_progress; }

private:
    void refresh();
    void selectAt(int rank, Nanos axisTime);

    MainWindow& m_window;
    QProgressBar* m_progress;
    QToolButton* m_cancel;
};

} // namespace stagewright
