// RecordStrip: one line over the timeline while a recording runs: current activity, progress, the loss so far, cancel.
#pragma once

#include <QFrame>

class QLabel;
class QProgressBar;
class QPushButton;

namespace stagewright {

class RecordProcess;

class RecordStrip : public QFrame {
    Q_OBJECT
public:
    explicit RecordStrip(RecordProcess* process, QWidget* parent = nullptr); // process must outlive it

private:
    void refresh();

    RecordProcess* m_process;
    QLabel* m_what;
    QLabel* m_devices; // their memory use and load
    QLabel* m_losses;
    QProgressBar* m_bar;
    QPushButton* m_cancel;
};

} // namespace stagewright
