// PlannerController: searches for a shorter order in place of the one shown or edited, or of one that another feature
// names, and makes it one change of an edit. GUI thread only, but for the search.
#pragma once

#include <memory>
#include <optional>

#include <QPointer>
#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "schedules/messages/channels.h"
#include "widgets/job.h"

namespace stagewright {

class PlannerPanel;
struct PlannedOrder;

class PlannerController : public Feature, public OrderPlanning {
    Q_OBJECT
public:
    explicit PlannerController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

    void planOrder(std::optional<Bytes> cap) override;
    void planFor(const Schedule& order, const CostModel& costs, const QString& name, std::optional<Bytes> cap) override;
    PlannerPanel* panel() const { return m_panel; } // null: not open

private:
    struct Subject {
        Schedule schedule;
        CostModel costs; // with I and W, where they are known
        Channels channels;
        QString name;
        RunRef run; // whose order it is; invalid: of no run
    };
    struct Found;
    Result<Subject> shownSubject() const;
    void open(Subject subject, std::optional<Bytes> cap);
    void search();
    void use();

    QPointer<PlannerPanel> m_panel;
    std::shared_ptr<const Subject> m_subject;
    std::shared_ptr<const Schedule> m_planned;
    struct Reported;
    std::shared_ptr<Reported> m_reported; // by the search
    QTimer m_poll;
    Job m_searching;
};

} // namespace stagewright
