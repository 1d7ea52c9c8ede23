#include "widgets/record/record_process.h"

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/record/record_setup.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>

namespace stagewright {
namespace {

constexpr int protocolVersion = 1;
constexpr int patienceMs = 5000;
constexpr int patienceElsewhereMs = 60000; // its last steps come over the connection

} // namespace

QString findStagewright()
{
    const QString given = qEnvironmentVariable("STAGEWRIGHT_PROGRAM");
    if (!given.isEmpty()) return QFileInfo(given).isExecutable() ? given : QString();
    QString beside = QCoreApplication::applicationDirPath() + u"/stagewright"_s;
    if (QFileInfo(beside).isExecutable()) return beside;
    return QStandardPaths::findExecutable(u"stagewright"_s);
}

RecordProcess::RecordProcess(QObject* parent) : QObject(parent)
{
    m_patience.setSingleShot(true);
    connect(&m_patience, &QTimer::timeout, this, [this] {
        if (m_process.state() == QProcess::NotRunning) return;
        if (m_patience.interval() != patienceMs + 1) {
            m_process.terminate();
            m_patience.start(patienceMs + 1); // a second, last patience
        } else {
            m_process.kill();
        }
    });
    connect(&m_process, &QProcess::readyReadStandardError, this, &RecordProcess::readEvents);
    connect(&m_process, &QProcess::readyReadStandardOutput, this,
            [this] { m_result += m_process.readAllStandardOutput(); });
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        m_error = u"%1 could not be started: %2"_s.arg(m_process.program(), m_process.errorString());
        m_remedy = u"build the program stagewright beside this one, or put it on PATH"_s;
        end(State::Failed);
    });
    connect(&m_process, &QProcess::finished, this, &RecordProcess::childEnded);
}

RecordProcess::~RecordProcess()
{
    m_process.disconnect(this);
    if (m_process.state() == QProcess::NotRunning) return;
    if (m_elsewhere) { // the job goes on there
        m_process.kill();
        m_process.waitForFinished(1000);
        return;
    }
    m_process.closeWriteChannel();
    if (m_process.waitForFinished(2000)) return;
    m_process.terminate();
    if (!m_process.waitForFinished(2000)) {
        m_process.kill();
        m_process.waitForFinished(1000);
    }
}

void RecordProcess::start(const QString& program, const Setup& setup, const QString& output)
{
    if (running()) return;
    m_elsewhere = setup.elsewhere();
    m_job.clear();
    begin(program, recordArguments(setup, output), output);
}

void RecordProcess::follow(const QString& program, const QString& job, const QString& output)
{
    if (running()) return;
    m_elsewhere = true;
    m_job = job;
    begin(program,
          {u"hosts"_s, u"attach"_s, u"--progress"_s, u"jsonl"_s, u"--stdin-control"_s, u"--json"_s, u"--"_s, job},
          output);
}

void RecordProcess::begin(const QString& program, const QStringList& arguments, const QString& output)
{
    m_output = output;
    m_waitsFor.clear();
    m_disconnected.clear();
    m_pending.clear();
    m_words.clear();
    m_result.clear();
    m_what.clear();
    m_done = 0;
    m_total = 0;
    m_runs.clear();
    m_schedules.clear();
    m_finishedRuns.clear();
    m_devices.clear();
    m_error.clear();
    m_remedy.clear();
    m_state = State::Starting;
    m_process.setProgram(program);
    m_process.setArguments(arguments);
    m_process.start(QIODevice::ReadWrite);
}

void RecordProcess::cancel()
{
    if (!running() || m_state == State::Cancelling) return;
    m_state = State::Cancelling;
    m_process.closeWriteChannel();
    m_patience.start(m_elsewhere ? patienceElsewhereMs : patienceMs);
    emit progressed();
}

void RecordProcess::leave()
{
    if (!running() || !m_elsewhere) return;
    m_state = State::Cancelling;
    m_process.kill();
}

void RecordProcess::readEvents()
{
    m_pending += m_process.readAllStandardError();
    qsizetype from = 0;
    for (qsizetype at = m_pending.indexOf('\n', from); at >= 0; at = m_pending.indexOf('\n', from)) {
        readLine(m_pending.mid(from, at - from));
        from = at + 1;
    }
    m_pending.remove(0, from);
}

void RecordProcess::readLine(const QByteArray& line)
{
    if (line.trimmed().isEmpty()) return;
    const QJsonDocument document = QJsonDocument::fromJson(line);
    if (!document.isObject()) {
        if (m_words.size() < 4000) m_words += QString::fromUtf8(line) + u'\n';
        return;
    }
    const QJsonObject event = document.object();
    const QString kind = event.value("event"_L1).toString();
    if (kind == "hello"_L1) {
        const int protocol = event.value("protocol"_L1).toInt();
        if (protocol > protocolVersion) {
            m_error = u"stagewright uses progress protocol %1, this window %2"_s.arg(protocol).arg(protocolVersion);
            m_remedy = u"use the stagewright that was built with this window"_s;
            cancel();
            return;
        }
        if (m_state == State::Starting) m_state = State::Running;
    } else if (kind == "run"_L1) {
        StartedRun run;
        run.id = event.value("run"_L1).toInteger();
        run.schedule = event.value("schedule"_L1).toString();
        run.file = event.value("file"_L1).toString();
        run.clock = event.value("clock"_L1).toString();
        m_runs.append(run);
    } else if (kind == "job"_L1) {
        if (const QString job = event.value("job"_L1).toString(); m_elsewhere && !job.isEmpty()) m_job = job;
        const QString detail = event.value("detail"_L1).toString();
        m_waitsFor =
            event.value("state"_L1).toString() == "queued"_L1 ? (detail.isEmpty() ? u"queued"_s : detail) : QString();
    } else if (kind == "connection"_L1) {
        m_disconnected = event.value("lost"_L1).toString();
    } else if (kind == "progress"_L1) {
        m_what = event.value("what"_L1).toString();
        m_done = event.value("done"_L1).toInt();
        m_total = event.value("total"_L1).toInt();
        if (const QJsonArray devices = event.value("devices"_L1).toArray(); !devices.isEmpty()) {
            m_devices.clear();
            for (const auto& value : devices) {
                const QJsonObject device = value.toObject();
                m_devices.append({device.value("name"_L1).toString(), device.value("used_bytes"_L1).toInteger(),
                                  device.value("total_bytes"_L1).toInteger(), device.value("busy"_L1).toDouble(-1)});
            }
        }
        const QString schedule = event.value("schedule"_L1).toString();
        if (!schedule.isEmpty() && event.value("loss"_L1).isDouble()) {
            auto found = std::find_if(m_schedules.begin(), m_schedules.end(),
                                      [&](const ScheduleProgress& one) { return one.schedule == schedule; });
            if (found == m_schedules.end()) found = m_schedules.insert(m_schedules.end(), {schedule, {}, {}});
            found->losses.append(event.value("loss"_L1).toDouble());
            found->times.append(event.value("step_time_ns"_L1).toInteger());
        }
    } else if (kind == "done"_L1) {
        for (const auto& id : event.value("runs"_L1).toArray()) m_finishedRuns.append(id.toInteger());
        const QString file = event.value("file"_L1).toString();
        if (!file.isEmpty()) m_output = file;
    } else if (kind == "error"_L1) {
        m_error = event.value("message"_L1).toString();
        m_remedy = event.value("remedy"_L1).toString();
    }
    emit progressed();
}

void RecordProcess::childEnded(int code, QProcess::ExitStatus status)
{
    readEvents();
    if (!m_pending.isEmpty()) {
        readLine(m_pending);
        m_pending.clear();
    }
    m_result += m_process.readAllStandardOutput();
    if (status == QProcess::NormalExit && code == 0 && m_error.isEmpty()) {
        end(State::Finished);
        return;
    }
    if (m_state == State::Cancelling && m_error.isEmpty()) {
        end(State::Cancelled);
        return;
    }
    if (m_state == State::Cancelling && code == 130) {
        m_error.clear();
        end(State::Cancelled);
        return;
    }
    if (m_error.isEmpty()) {
        m_error = status == QProcess::CrashExit ? u"stagewright record ended abnormally"_s
                                                : u"stagewright record ended with exit code %1"_s.arg(code);
        if (!m_words.trimmed().isEmpty()) m_error += u": "_s + m_words.trimmed();
    }
    end(State::Failed);
}

void RecordProcess::end(State state)
{
    m_patience.stop();
    m_state = state;
    emit finished();
}

QString stateText(const RecordProcess& process)
{
    if (process.state() == RecordProcess::State::Cancelling) return u"Stopping…"_s;
    if (!process.disconnected().isEmpty()) return u"Connecting again…"_s;
    if (!process.waitsFor().isEmpty()) return u"Waiting: %1"_s.arg(process.waitsFor());
    if (process.total() <= 0) return u"Starting stagewright record…"_s;
    if (process.what().endsWith(" the run"_L1)) // closing, summarising and reading it
        return u"Closing the run: %1"_s.arg(percentText(static_cast<double>(process.done()) / process.total(), 0));
    return u"Recording: step %1 of %2"_s.arg(process.done()).arg(process.total());
}

} // namespace stagewright
