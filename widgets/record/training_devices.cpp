#include "widgets/record/training_devices.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTimer>

namespace stagewright {
namespace {

constexpr int answerMs = 30000;

} // namespace

QVector<TrainingDevice> trainingDevicesIn(const QByteArray& json)
{
    QVector<TrainingDevice> out;
    for (const auto& value : QJsonDocument::fromJson(json).object().value(QLatin1String("devices")).toArray()) {
        const QJsonObject device = value.toObject();
        const bool usable = device.value(QLatin1String("usable")).toBool();
        QString reason = usable ? QString() : device.value(QLatin1String("reason")).toString();
        if (!usable && reason.isEmpty()) reason = QStringLiteral("?");
        out.append({device.value(QLatin1String("backend")).toString(), device.value(QLatin1String("name")).toString(),
                    reason});
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
    process->start(program, {QStringLiteral("devices"), QStringLiteral("--json")}, QIODevice::ReadOnly);
}

} // namespace stagewright
