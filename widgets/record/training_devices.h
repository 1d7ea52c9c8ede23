// What can train here, as `stagewright devices --json` tells it: the window itself loads no driver. GUI thread only.
#pragma once

#include <functional>

#include <QString>
#include <QVector>

class QByteArray;
class QObject;

namespace stagewright {

struct TrainingDevice {
    QString backend; // "cpu", "cuda"
    QString name;    // "NVIDIA H200"; empty where there is none
    QString reason;  // why it can't be used; empty: it can
};

// Of the command's output; empty where that is no such list.
QVector<TrainingDevice> trainingDevicesIn(const QByteArray& json);

// Runs `program`; a driver that wakes takes seconds. The answer comes later, unless `context` has gone by then;
// empty: it could not say. None where the program does not start.
void askDevices(const QString& program, QObject* context, std::function<void(QVector<TrainingDevice>)> answer);

} // namespace stagewright
