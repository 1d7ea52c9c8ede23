#include "widgets/hosts/host_calls.h"

#include <QCoreApplication>
#include <QCryptographicHash>
#include <QDateTime>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>

#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

constexpr int lookMs = 100;  // for a stop request
constexpr int endsMs = 3000; // after it

// "stagewright: what went wrong", then its remedy, indented; notes before it are not the error.
void readComplaint(const QString& text, ProgramAnswer& answer)
{
    QStringList remedy;
    for (const QString& line : text.split(u'\n')) {
        if (line.startsWith("stagewright: "_L1)) {
            answer.message = line.mid(13).trimmed();
            remedy.clear();
        } else if (line.startsWith("  "_L1) && !answer.message.isEmpty()) {
            remedy << line.trimmed();
        }
    }
    answer.remedy = remedy.join(u'\n');
}

QString textAt(const QJsonObject& object, const char* key) { return object.value(QLatin1String(key)).toString(); }

QJsonArray listAt(const QByteArray& json, const char* key)
{
    return QJsonDocument::fromJson(json).object().value(QLatin1String(key)).toArray();
}

} // namespace

ProgramAnswer askProgram(const QString& program, const QStringList& arguments, const std::stop_token& stop)
{
    ProgramAnswer answer;
    if (program.isEmpty()) {
        answer.message = u"the program stagewright was not found"_s;
        answer.remedy = u"put it beside this program or on PATH, or set STAGEWRIGHT_PROGRAM"_s;
        return answer;
    }
    QProcess process;
    process.start(program, arguments, QIODevice::ReadOnly);
    if (!process.waitForStarted()) {
        answer.message = u"%1 could not be started: %2"_s.arg(program, process.errorString());
        return answer;
    }
    while (!process.waitForFinished(lookMs) && process.state() != QProcess::NotRunning) {
        if (!stop.stop_requested()) continue;
        process.terminate();
        if (!process.waitForFinished(endsMs)) {
            process.kill();
            process.waitForFinished(endsMs);
        }
        break;
    }
    answer.out = process.readAllStandardOutput();
    if (process.exitStatus() == QProcess::NormalExit) answer.exitCode = process.exitCode();
    if (answer.good()) return answer;
    readComplaint(QString::fromUtf8(process.readAllStandardError()), answer);
    if (answer.message.isEmpty() && answer.out.isEmpty())
        answer.message = u"%1 ended with exit code %2"_s
                             .arg(QStringList{u"stagewright"_s, arguments.value(0), arguments.value(1)}.join(u' '))
                             .arg(answer.exitCode);
    return answer;
}

QVector<HostEntry> hostsIn(const QByteArray& json)
{
    QVector<HostEntry> out;
    for (const auto& value : listAt(json, "hosts")) {
        const QJsonObject object = value.toObject();
        HostEntry host{textAt(object, "name"), textAt(object, "target"), textAt(object, "scratch"), {}};
        for (const auto& line : object.value("setup"_L1).toArray()) host.setup << line.toString();
        if (!host.name.isEmpty()) out.append(host);
    }
    return out;
}

QVector<HostFinding> findingsIn(const QByteArray& json)
{
    QVector<HostFinding> out;
    for (const auto& value : listAt(json, "facts")) {
        const QJsonObject object = value.toObject();
        out.append({textAt(object, "label"), textAt(object, "value"), textAt(object, "remedy"),
                    object.value("needed"_L1).toBool()});
    }
    return out;
}

QVector<JobEntry> jobsIn(const QByteArray& json)
{
    QVector<JobEntry> out;
    for (const auto& value : listAt(json, "jobs")) {
        const QJsonObject object = value.toObject();
        JobEntry job;
        job.id = textAt(object, "job");
        job.host = textAt(object, "host");
        job.file = textAt(object, "file");
        job.state = textAt(object, "state");
        job.detail = textAt(object, "detail");
        job.slurm = !textAt(object, "slurm_job").isEmpty();
        job.steps = object.value("steps"_L1).toInt();
        job.stepsAsked = object.value("steps_asked"_L1).toInt();
        if (object.value("exit_code"_L1).isDouble()) job.exitCode = object.value("exit_code"_L1).toInt();
        if (!job.id.isEmpty()) out.append(job);
    }
    return out;
}

QStringList addArguments(const HostEntry& host)
{
    QStringList arguments{u"hosts"_s, u"add"_s, u"--json"_s};
    if (!host.scratch.isEmpty()) arguments << u"--scratch="_s + host.scratch;
    for (const QString& line : host.setup)
        if (!line.trimmed().isEmpty()) arguments << u"--setup="_s + line;
    // a name or target that starts with a dash is refused there
    return arguments << u"--"_s << host.name << host.target;
}

QByteArray jobsStamp()
{
    QString state = qEnvironmentVariable("XDG_STATE_HOME");
    if (!state.startsWith(u'/')) state = QDir::homePath() + u"/.local/state"_s;
    const QDir jobs(state + u"/stagewright/jobs"_s);
    QCryptographicHash hash(QCryptographicHash::Md5);
    const QStringList folders = jobs.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
    for (const QString& folder : folders) {
        const QFileInfo job(jobs.filePath(folder + u"/job.json"_s));
        hash.addData(folder.toUtf8());
        hash.addData(QByteArray::number(job.lastModified().toMSecsSinceEpoch()) + ' ' + QByteArray::number(job.size()));
    }
    return folders.isEmpty() ? QByteArray() : hash.result();
}

QString jobText(const JobEntry& job)
{
    const QString steps = countText(job.steps, u"1 step"_s, u"%L1 steps"_s);
    QString text;
    if (job.state == "starting"_L1) text = u"starting"_s;
    if (job.state == "queued"_L1) text = u"queued"_s;
    if (job.state == "running"_L1)
        text = job.stepsAsked > 0 ? u"running, step %L1 of %L2"_s.arg(job.steps).arg(job.stepsAsked) : u"running"_s;
    if (job.state == "lost"_L1)
        text = job.detail.isEmpty() ? u"ended without a message, %1 kept"_s.arg(steps)
                                    : u"%1, %2 kept"_s.arg(job.detail.section(u'\n', 0, 0), steps);
    if (job.state == "ended"_L1)
        text = job.exitCode.value_or(0) == 0 ? u"ended, %1"_s.arg(steps)
               : job.exitCode == 130         ? u"stopped, %1"_s.arg(steps)
                                             : u"failed, %1 kept"_s.arg(steps);
    const QString where = job.host.isEmpty() ? u"this computer"_s : job.host;
    return u"%1 · %2"_s.arg(text, job.slurm ? u"%1, Slurm"_s.arg(where) : where);
}

} // namespace stagewright
