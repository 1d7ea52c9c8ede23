// JobsController: recordings that run on another computer or in a queue, below the runs: what is known of them here,
// and attaching to, fetching, stopping and forgetting one by the program `stagewright hosts`. GUI thread only.
#pragma once

#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "widgets/hosts/jobs_list.h"
#include "widgets/job.h"

namespace stagewright {

class JobsController : public Feature {
    Q_OBJECT
public:
    explicit JobsController(Workspace& workspace);
    JobsList* list() { return m_list; }
    void look(); // at once, where something has changed

    bool settled() const override { return !m_reading.running() && !m_acting.running(); }
    void closing() override { m_timer.stop(); }

private:
    void act(const JobEntry& job, JobsList::Request request);
    void acted(const JobEntry& job, JobsList::Request request, const ProgramAnswer& answer);

    JobsList* m_list;
    QTimer m_timer;
    QByteArray m_stamp; // of the jobs that are shown
    Job m_reading, m_acting;
};

} // namespace stagewright
