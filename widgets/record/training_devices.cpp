#include "widgets/record/training_devices.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTimer>

#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr int answerMs = 30000;

} // namespace

QVector<TrainingDevice> trainingDevicesIn(const QByteArray& json)
{
    QVector<TrainingDevice> out;
    for (const auto& value : QJsonDocument::fromJson(json).object().value("devices"_L1).toArray()) {
        const QJsonObject device = value.toObject();
        const bool usable = device.value("usable"_L1).toBool();
        QString reason = usable ? QString() : device.value("reason"_L1).toString();
        if (!usable && reason.isEmpty()) reason = u"?"_s;
        out.append({device.value("backend"_L1).toString(), device.value("name"_L1).toString(), reason});
    }
    return out;
}

void askDevices(const QString& program, QObject* context, const std::function<void(QVector<TrainingDevice>)>& answer)
{
    if (program.isEmpty()) return;
    auto* process = new QProcess(QCoreApplication::instance()); // outlives `context` until it has ended
    QObject::connect(context, &QObject::destroyed, process, [process] { process->kill(); });
    QObject::connect(process, &QProcess::finished, context, [process, answer](int code) {
        answer(code == 0 ? trainingDevicesIn(process->readAllStandardOutput()) : QVector<TrainingDevice>());
    });
    QObject::connect(process, &QProcess::finished, process, &QObject::deleteLater);
    QObject::connect(process, &QProcess::errorOccurred, process, [process](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) process->deleteLater();
    });
    QTimer::singleShot(answerMs, process, [process] { process->kill(); });
    process->start(program, {u"devices"_s, u"--json"_s}, QIODevice::ReadOnly);
}

} // namespace stagewright
