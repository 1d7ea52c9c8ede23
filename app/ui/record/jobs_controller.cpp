#include "app/ui/record/jobs_controller.h"

#include <QFileInfo>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/record/record_process.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

constexpr int lookMs = 1500;

} // namespace

JobsController::JobsController(Workspace& workspace) : Feature(workspace), m_list(new JobsList(workspace.views().runs))
{
    workspace.views().runs->addBelow(m_list);
    connect(m_list, &JobsList::asked, this, &JobsController::act);
    m_timer.setInterval(lookMs);
    connect(&m_timer, &QTimer::timeout, this, &JobsController::look);
    m_timer.start();
    QTimer::singleShot(0, this, &JobsController::look);
}

void JobsController::look()
{
    QByteArray stamp = jobsStamp();
    if (stamp == m_stamp || m_reading.running()) return;
    m_stamp = stamp;
    m_reading.start(
        [program = findStagewright()](const std::stop_token& stop) {
            return askProgram(program, {u"hosts"_s, u"jobs"_s, u"--json"_s}, stop);
        },
        [this](const ProgramAnswer& answer) {
            m_list->setJobs(answer.good() ? jobsIn(answer.out) : QVector<JobEntry>());
            m_workspace.refreshActions(); // and the list's place
        });
}

void JobsController::act(const JobEntry& job, JobsList::Request request)
{
    using Request = JobsList::Request;
    if (request == Request::Attach) {
        m_workspace.feature<Recording>()->attach(job.id, job.file);
        return;
    }
    if (request == Request::Show) {
        if (QFileInfo::exists(job.file))
            m_workspace.feature<FileOpening>()->openFiles({job.file});
        else
            m_workspace.banner()->showRefusal(u"none of its steps are here yet"_s,
                                              u"attach to the job, or fetch what is there"_s);
        return;
    }
    const QString action = request == Request::Fetch ? u"fetch"_s : request == Request::Stop ? u"stop"_s : u"forget"_s;
    const QString host = job.host.isEmpty() ? u"this computer"_s : job.host;
    m_list->setBusy(job.id, request == Request::Fetch  ? u"fetching from %1…"_s.arg(host)
                            : request == Request::Stop ? u"stopping on %1…"_s.arg(host)
                                                       : u"forgetting…"_s);
    m_acting.start(
        [program = findStagewright(), action, id = job.id](const std::stop_token& stop) {
            return askProgram(program, {u"hosts"_s, action, u"--json"_s, u"--"_s, id}, stop);
        },
        [this, job, request](const ProgramAnswer& answer) { acted(job, request, answer); });
}

void JobsController::acted(const JobEntry& job, JobsList::Request request, const ProgramAnswer& answer)
{
    m_list->setBusy({}, {});
    look();
    if (!answer.good() && !answer.message.isEmpty()) {
        m_workspace.banner()->showError(sentence(answer.message), answer.remedy);
        return;
    }
    if (request == JobsList::Request::Forget) return;
    if (QFileInfo::exists(job.file)) m_workspace.feature<FileOpening>()->openFiles({job.file});
}

FeatureEntry jobsFeature() { return featureEntry<JobsController>(); }

} // namespace stagewright
