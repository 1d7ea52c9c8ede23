// CompareController: compares two to four runs on one axis. Selects and aligns them (at the start of a step, or at an
// op), compares each with the first, and shows one pair in the panel. It also keeps the baseline: a run that every run
// shown is compared with, until it is cleared.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QObject>

#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "traces/compare/compare.h"
#include "widgets/job.h"

namespace stagewright {

class BaselineStrip;
class ComparePanel;
class CompareOverlay;
class FigureMeasure;
class SectionColumn;

class CompareController : public Feature, public RunComparing {
    Q_OBJECT
public:
    explicit CompareController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();

    FeatureParts parts() override;
    void show(const std::vector<RunRef>& refs, int step = -1) override; // step −1: each run's representative step
    void showPredicted(const RunRef& original, const RunRef& predicted, const RunRef& measured) override;
    void add(const RunRef& ref) override;
    void swap();                // A and the one it is compared with
    void setAgainst(int index); // which of the other runs the panel shows, from 1
    int against() const { return m_against; }
    void setStep(int step);
    void alignAt(std::optional<Op> op); // nullopt: at the start of the step
    std::optional<Op> alignedAt() const { return m_question.alignedAt; }
    void toggle(); // the button: selects runs, or returns to a single run
    const std::vector<std::shared_ptr<const RunView>>& shown() const override { return m_views; }
    const std::shared_ptr<const RunView>& beside() const override { return m_side; }
    // of A and each other
    const std::vector<std::shared_ptr<const Comparison>>& comparisons() const { return m_comparisons; }

    void setBaseline(const RunRef& ref) override;
    RunRef baseline() const { return m_baseline ? m_baseline->ref : RunRef{}; }
    std::shared_ptr<const Comparison> againstBaseline() const { return m_againstBaseline; } // of the run shown
    BaselineStrip* strip() { return m_strip; }
    ComparePanel* panel() { return m_panel; }

private:
    struct Question {
        std::vector<RunRef> refs;
        int step = -1;
        std::optional<Op> alignedAt;
        bool predicted = false; // the second is the prediction for the third
    };
    void ask(const Question& question, int against);
    QString predictionText() const;
    QString statusText() const;
    QString title() const;              // the runs by name
    std::vector<RunRef> chosen() const; // the runs compared or about to be; else the run shown
    void compareViews(const Question& question, quint64 request, int against,
                      const std::vector<std::shared_ptr<const RunView>>& views);
    void present(bool fit);
    void refresh();         // actions, and the strip's visibility
    void measureBaseline(); // the run shown against the baseline
    void choose();          // the dialog
    void buildInvitation();
    void showSide();

    CompareOverlay* m_difference;
    BaselineStrip* m_strip;
    ComparePanel* m_panel;
    SectionColumn* m_invitation = nullptr;
    bool m_comparingShown = false;
    std::shared_ptr<const RunView> m_side; // the run of the tabs beside Compare
    Question m_question;
    Question m_asked; // latest request; pending while it is the workspace's latest request
    quint64 m_askedRequest = 0;
    std::vector<std::shared_ptr<const RunView>> m_views;
    std::vector<std::shared_ptr<const TimelinePanel>> m_panels; // aligned
    std::vector<std::shared_ptr<const Comparison>> m_comparisons;
    int m_against = 1;
    std::shared_ptr<const RunView> m_baseline;
    std::shared_ptr<const FigureMeasure> m_measure; // the same, for the changes that the side panel shows
    std::shared_ptr<const Comparison> m_againstBaseline;
    RunRef m_measured; // the run of it
    int m_measuredStep = -1;
    Job m_reading;   // the baseline
    Job m_comparing; // the run shown with it
    Job m_answering; // the question
};

} // namespace stagewright
