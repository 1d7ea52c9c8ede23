#include "widgets/hosts/jobs_list.h"

#include <algorithm>

#include <QFileInfo>
#include <QHeaderView>
#include <QMenu>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int mostRows = 5; // without scrolling

} // namespace

JobsList::JobsList(QWidget* parent) : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 0, 6, 6);
    layout->setSpacing(3);
    auto* title = makeLabel(u"Jobs elsewhere"_s, "title", this);
    title->setContentsMargins(2, 6, 0, 0);
    layout->addWidget(title);
    m_tree = new QTreeWidget(this);
    m_tree->setObjectName(u"jobs"_s);
    m_tree->setAccessibleName(u"Jobs elsewhere"_s);
    m_tree->setHeaderHidden(true);
    m_tree->setRootIsDecorated(false);
    m_tree->setContextMenuPolicy(Qt::CustomContextMenu);
    m_tree->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    layout->addWidget(m_tree);
    connect(m_tree, &QTreeWidget::customContextMenuRequested, this, &JobsList::openMenu);
    connect(m_tree, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        if (const JobEntry* job = at(item)) emit asked(*job, requestsOf(*job).front());
    });
    setVisible(false);
}

QVector<JobsList::Request> JobsList::requestsOf(const JobEntry& job)
{
    if (job.over()) return {Request::Show, Request::Fetch, Request::Forget};
    return {Request::Attach, Request::Fetch, Request::Stop, Request::Show};
}

QString JobsList::textOf(Request request)
{
    switch (request) {
    case Request::Attach: return u"Attach"_s;
    case Request::Fetch: return u"Fetch what is there"_s;
    case Request::Stop: return u"Stop it there"_s;
    case Request::Show: return u"Open its runs"_s;
    case Request::Forget: return u"Forget the job"_s;
    }
    return {};
}

void JobsList::setJobs(const QVector<JobEntry>& jobs)
{
    m_jobs = jobs;
    fill();
}

void JobsList::setBusy(const QString& job, const QString& what)
{
    m_busyJob = job;
    m_busyText = what;
    fill();
}

void JobsList::fill()
{
    const JobEntry* before = at(m_tree->currentItem());
    const QString chosen = before != nullptr ? before->id : QString();
    m_tree->clear();
    for (const JobEntry& job : m_jobs) {
        const bool busy = job.id == m_busyJob && !m_busyText.isEmpty();
        auto* item = new QTreeWidgetItem(m_tree, {busy ? m_busyText : jobText(job)});
        QStringList tip{job.id, jobText(job)};
        if (!job.detail.isEmpty()) tip << job.detail;
        tip << job.file;
        item->setToolTip(0, tip.join(u'\n'));
        item->setData(0, Qt::UserRole, job.id);
        if (job.id == chosen) m_tree->setCurrentItem(item);
    }
    const int rows = std::min<int>(mostRows, static_cast<int>(m_jobs.size()));
    m_tree->setFixedHeight(rows * std::max(18, m_tree->sizeHintForRow(0)) + 4);
    setVisible(!m_jobs.isEmpty());
}

const JobEntry* JobsList::at(const QTreeWidgetItem* item) const
{
    if (item == nullptr) return nullptr;
    const auto found = std::find_if(m_jobs.begin(), m_jobs.end(), [&](const JobEntry& job) {
        return job.id == item->data(0, Qt::UserRole).toString();
    });
    return found != m_jobs.end() ? &*found : nullptr;
}

void JobsList::openMenu(const QPoint& point)
{
    const JobEntry* found = at(m_tree->itemAt(point));
    if (found == nullptr) return;
    const JobEntry job = *found;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const Request request : requestsOf(job))
        menu->addAction(textOf(request), this, [this, job, request] { emit asked(job, request); });
    menu->popup(m_tree->viewport()->mapToGlobal(point));
}

} // namespace stagewright
