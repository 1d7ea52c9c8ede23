#include "widgets/hosts/host_calls.h"

#include <QCoreApplication>
#include <QCryptographicHash>
#include <QDateTime>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>

#include "widgets/numbers.h"

namespace stagewright {
namespace {

constexpr int lookMs = 100;  // for a stop request
constexpr int endsMs = 3000; // after it

struct CallText {
    Q_DECLARE_TR_FUNCTIONS(HostCalls)
};

// "stagewright: what went wrong", then its remedy, indented; notes before it are not the error.
void readComplaint(const QString& text, ProgramAnswer& answer)
{
    QStringList remedy;
    for (const QString& line : text.split(QLatin1Char('\n'))) {
        if (line.startsWith(QLatin1String("stagewright: "))) {
            answer.message = line.mid(13).trimmed();
            remedy.clear();
        } else if (line.startsWith(QLatin1String("  ")) && !answer.message.isEmpty()) {
            remedy << line.trimmed();
        }
    }
    answer.remedy = remedy.join(QLatin1Char('\n'));
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
        answer.message = CallText::tr("the program stagewright was not found");
        answer.remedy = CallText::tr("put it beside this program or on PATH, or set STAGEWRIGHT_PROGRAM");
        return answer;
    }
    QProcess process;
    process.start(program, arguments, QIODevice::ReadOnly);
    if (!process.waitForStarted()) {
        answer.message = CallText::tr("%1 could not be started: %2").arg(program, process.errorString());
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
        answer.message =
            CallText::tr("%1 ended with exit code %2")
                .arg(QStringList{QStringLiteral("stagewright"), arguments.value(0), arguments.value(1)}.join(
                    QLatin1Char(' ')))
                .arg(answer.exitCode);
    return answer;
}

QVector<HostEntry> hostsIn(const QByteArray& json)
{
    QVector<HostEntry> out;
    for (const auto& value : listAt(json, "hosts")) {
        const QJsonObject object = value.toObject();
        HostEntry host{textAt(object, "name"), textAt(object, "target"), textAt(object, "scratch"), {}};
        for (const auto& line : object.value(QLatin1String("setup")).toArray()) host.setup << line.toString();
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
                    object.value(QLatin1String("needed")).toBool()});
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
        job.steps = object.value(QLatin1String("steps")).toInt();
        job.stepsAsked = object.value(QLatin1String("steps_asked")).toInt();
        if (object.value(QLatin1String("exit_code")).isDouble())
            job.exitCode = object.value(QLatin1String("exit_code")).toInt();
        if (!job.id.isEmpty()) out.append(job);
    }
    return out;
}

QStringList addArguments(const HostEntry& host)
{
    QStringList arguments{QStringLiteral("hosts"), QStringLiteral("add"), QStringLiteral("--json")};
    if (!host.scratch.isEmpty()) arguments << QStringLiteral("--scratch=") + host.scratch;
    for (const QString& line : host.setup)
        if (!line.trimmed().isEmpty()) arguments << QStringLiteral("--setup=") + line;
    // a name or target that starts with a dash is refused there
    return arguments << QStringLiteral("--") << host.name << host.target;
}

QByteArray jobsStamp()
{
    QString state = qEnvironmentVariable("XDG_STATE_HOME");
    if (!state.startsWith(QLatin1Char('/'))) state = QDir::homePath() + QStringLiteral("/.local/state");
    const QDir jobs(state + QStringLiteral("/stagewright/jobs"));
    QCryptographicHash hash(QCryptographicHash::Md5);
    const QStringList folders = jobs.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
    for (const QString& folder : folders) {
        const QFileInfo job(jobs.filePath(folder + QStringLiteral("/job.json")));
        hash.addData(folder.toUtf8());
        hash.addData(QByteArray::number(job.lastModified().toMSecsSinceEpoch()) + ' ' + QByteArray::number(job.size()));
    }
    return folders.isEmpty() ? QByteArray() : hash.result();
}

QString jobText(const JobEntry& job)
{
    const QString steps = countText(job.steps, CallText::tr("1 step"), CallText::tr("%L1 steps"));
    QString text;
    if (job.state == QLatin1String("starting")) text = CallText::tr("starting");
    if (job.state == QLatin1String("queued")) text = CallText::tr("queued");
    if (job.state == QLatin1String("running"))
        text = job.stepsAsked > 0 ? CallText::tr("running, step %L1 of %L2").arg(job.steps).arg(job.stepsAsked)
                                  : CallText::tr("running");
    if (job.state == QLatin1String("lost"))
        text = job.detail.isEmpty()
                   ? CallText::tr("ended without a message, %1 kept").arg(steps)
                   : CallText::tr("%1, %2 kept").arg(job.detail.section(QLatin1Char('\n'), 0, 0), steps);
    if (job.state == QLatin1String("ended"))
        text = job.exitCode.value_or(0) == 0 ? CallText::tr("ended, %1").arg(steps)
               : job.exitCode == 130         ? CallText::tr("stopped, %1").arg(steps)
                                             : CallText::tr("failed, %1 kept").arg(steps);
    const QString where = job.host.isEmpty() ? CallText::tr("this computer") : job.host;
    return CallText::tr("%1 · %2").arg(text, job.slurm ? CallText::tr("%1, Slurm").arg(where) : where);
}

} // namespace stagewright
