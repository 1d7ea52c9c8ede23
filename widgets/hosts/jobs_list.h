// JobsList: recordings that run or ran on another computer or in a queue, below the runs: their state, and what can be
// done with one. Hidden where there are none. It only announces what is wanted. GUI thread only.
#pragma once

#include <QWidget>

#include "widgets/hosts/host_calls.h"

class QTreeWidget;
class QTreeWidgetItem;

namespace stagewright {

class JobsList : public QWidget {
    Q_OBJECT
public:
    enum class Request {
        Attach, // follow it until it ends
        Fetch,  // bring what is there now
        Stop,
        Show, // its runs
        Forget,
    };
    explicit JobsList(QWidget* parent = nullptr);
    void setJobs(const QVector<JobEntry>& jobs);           // the newest first
    void setBusy(const QString& job, const QString& what); // shown instead of its state; empty: no longer
    const QVector<JobEntry>& jobs() const { return m_jobs; }
    QTreeWidget* tree() { return m_tree; }
    static QVector<Request> requestsOf(const JobEntry& job); // the first is what a double click does
    static QString textOf(Request request);

signals:
    void asked(const stagewright::JobEntry& job, stagewright::JobsList::Request request);

private:
    void openMenu(const QPoint& at);
    const JobEntry* at(const QTreeWidgetItem* item) const;
    void fill();

    QVector<JobEntry> m_jobs;
    QString m_busyJob, m_busyText;
    QTreeWidget* m_tree;
};

} // namespace stagewright
