// Devices that can train here, from `stagewright devices --json`: the window itself loads no driver. GUI thread only.
#pragma once

#include <functional>

#include <QString>
#include <QVector>

class QByteArray;
class QObject;

namespace stagewright {

// A kind of device besides the processor, as --backend names it and as lists show it.
struct TrainingBackend {
    QString name;  // "cuda"
    QString title; // "GPUs (CUDA)"
};

struct TrainingDevice {
    QString backend; // TrainingBackend::name
    QString name;    // "NVIDIA H200"; empty if unknown
    QString reason;  // why it is unusable; empty: usable
};

// Parses the command's output; empty if it is not such a list.
QVector<TrainingDevice> trainingDevicesIn(const QByteArray& json);

// Runs `program`; starting a driver takes seconds. Answers later, unless `context` is gone by then;
// empty: unknown. No answer if the program does not start.
void askDevices(const QString& program, QObject* context, const std::function<void(QVector<TrainingDevice>)>& answer);

} // namespace stagewright
