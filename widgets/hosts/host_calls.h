// What `stagewright hosts` knows, as values: the window asks the program and opens no connection itself. Anything in
// the JSON that is missing or of another type is empty.
#pragma once

#include <optional>
#include <stop_token>

#include <QByteArray>
#include <QString>
#include <QStringList>
#include <QVector>

#include "widgets/literals.h"

namespace stagewright {

struct HostEntry {
    QString name;
    QString target; // as typed after ssh
    QString scratch;
    QStringList setup; // lines for its shell
    bool operator==(const HostEntry&) const = default;
};

struct HostFinding {
    QString label; // "PyTorch"
    QString value; // empty: missing
    QString remedy;
    bool needed = false; // nothing runs there without it
};

struct JobEntry {
    QString id;
    QString host;  // empty: this computer
    QString file;  // where its runs come
    QString state; // "starting", "queued", "running", "ended", "lost"
    QString detail;
    bool slurm = false;
    int steps = 0;
    int stepsAsked = 0; // 0: unknown
    std::optional<int> exitCode;
    bool over() const { return state == "ended"_L1 || state == "lost"_L1; }
    bool operator==(const JobEntry&) const = default;
};

struct ProgramAnswer {
    int exitCode = -1; // −1: it could not be started, or crashed
    QByteArray out;
    QString message; // what went wrong; empty: nothing
    QString remedy;
    bool good() const { return exitCode == 0; }
};

// Runs the program and waits for its end; any thread. A stop request ends it.
ProgramAnswer askProgram(const QString& program, const QStringList& arguments, const std::stop_token& stop = {});

QVector<HostEntry> hostsIn(const QByteArray& json);
QVector<HostFinding> findingsIn(const QByteArray& json);
QVector<JobEntry> jobsIn(const QByteArray& json);
QStringList addArguments(const HostEntry& host); // of `stagewright`

// Changes with every change of a job on this computer: cheap to ask often. Empty: there are no jobs.
QByteArray jobsStamp();
// "running, step 12 of 300 · node1"
QString jobText(const JobEntry& job);

} // namespace stagewright
