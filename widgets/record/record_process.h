// RecordProcess: `stagewright record` as a child process, read through its progress protocol (JSON lines on standard
// error, result on standard output; end of standard input cancels). Unknown events are ignored. GUI thread only.
#pragma once

#include <QByteArray>
#include <QList>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>

#include "schedules/setup/setup.h"

namespace stagewright {

// "stagewright" beside this program, else on PATH; empty if in neither. STAGEWRIGHT_PROGRAM overrides both.
QString findStagewright();

class RecordProcess : public QObject {
    Q_OBJECT
public:
    enum class State {
        Idle,
        Starting,
        Running,
        Cancelling,
        Finished,
        Failed,
        Cancelled,
    };

    struct StartedRun {
        qint64 id = 0;
        QString schedule;
        QString file;
        QString clock;
    };
    struct ScheduleProgress {
        QString schedule;
        QList<double> losses; // one per reported step
        QList<qint64> times;  // ns
    };

    struct DeviceState { // after the last reported step
        QString name;
        qint64 usedBytes = 0;
        qint64 totalBytes = 0;
        double busy = -1; // share of time; −1: unknown
    };

    explicit RecordProcess(QObject* parent = nullptr);
    ~RecordProcess() override; // ends a running child

    void start(const QString& program, const Setup& setup, const QString& output);
    // Follows a job that runs elsewhere (`stagewright hosts attach`), whose runs come to `output`.
    void follow(const QString& program, const QString& job, const QString& output);
    // closes its standard input; terminates it after 5 s, kills it after 10; of one elsewhere after a minute
    void cancel();
    void leave(); // of one elsewhere: it goes on there; this end is killed

    State state() const { return m_state; }
    bool running() const
    {
        return m_state == State::Starting || m_state == State::Running || m_state == State::Cancelling;
    }
    const QString& outputFile() const { return m_output; }
    int done() const { return m_done; }
    int total() const { return m_total; } // 0: unknown so far
    const QString& what() const { return m_what; }
    const QList<StartedRun>& runs() const { return m_runs; }
    const QList<ScheduleProgress>& schedules() const { return m_schedules; }
    const QList<DeviceState>& devices() const { return m_devices; }
    const QList<qint64>& finishedRuns() const { return m_finishedRuns; }
    const QByteArray& result() const { return m_result; } // the JSON object of --json
    // The child's message; its standard error if it sent no protocol message.
    const QString& job() const { return m_job; } // its id, where it runs elsewhere; empty: here, or not started yet
    bool elsewhere() const { return m_elsewhere; }
    const QString& waitsFor() const { return m_waitsFor; }         // of one that does not run yet: why
    const QString& disconnected() const { return m_disconnected; } // what happened to the connection; empty: nothing
    const QString& errorMessage() const { return m_error; }
    const QString& errorRemedy() const { return m_remedy; }

signals:
    void progressed();
    void finished(); // Finished, Failed or Cancelled; see state()

private:
    void readEvents();
    void readLine(const QByteArray& line);
    void begin(const QString& program, const QStringList& arguments, const QString& output);
    void end(State state);
    void childEnded(int code, QProcess::ExitStatus status);

    QProcess m_process;
    QTimer m_patience;
    State m_state = State::Idle;
    QString m_output;
    QByteArray m_pending;
    QString m_words; // lines that are not events
    QByteArray m_result;
    QString m_what;
    int m_done = 0;
    int m_total = 0;
    QList<StartedRun> m_runs;
    QList<ScheduleProgress> m_schedules;
    QList<DeviceState> m_devices;
    QList<qint64> m_finishedRuns;
    QString m_error;
    QString m_remedy;
    QString m_job, m_waitsFor, m_disconnected;
    bool m_elsewhere = false;
};

QString stateText(const RecordProcess& process); // what it does now, for people

} // namespace stagewright
