// HostsPage: the computers to run on: add, test, install, remove. Everything is done by the program `stagewright
// hosts`; the answers come later, one at a time. GUI thread only.
#pragma once

#include <QWidget>

#include "widgets/hosts/host_calls.h"
#include "widgets/job.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QTreeWidget;

namespace stagewright {

class HostsPage : public QWidget {
    Q_OBJECT
public:
    explicit HostsPage(QWidget* parent = nullptr);
    void setProgram(const QString& program); // and lists the hosts
    bool settled() const { return !m_job.running(); }
    QString message() const; // what is said below the buttons

private:
    void list();
    void select();
    void keep();
    void act(const QString& action, const QString& what); // on the selected host
    void said(const QString& text, bool wrong);
    void showFindings(const QVector<HostFinding>& findings);
    void refresh();
    HostEntry current() const; // without a name: none

    QString m_program;
    QVector<HostEntry> m_hosts;
    Job m_job;
    QTreeWidget *m_list, *m_findings;
    QPushButton *m_test, *m_install, *m_remove, *m_keep, *m_cancel;
    QLineEdit *m_name, *m_target, *m_scratch;
    QPlainTextEdit* m_setup;
    QLabel* m_message;
};

} // namespace stagewright
