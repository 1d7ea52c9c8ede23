// RecordController: recording: the dialog, the child process, the run that is shown while it grows, and adding its runs
// to a file. The window stays open until the runs of a recording are in their file. GUI thread only.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <QElapsedTimer>
#include <QPointer>
#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/scratch_folder.h"
#include "traces/run/run.h"
#include "widgets/job.h"
#include "widgets/record/record_process.h"

class QMessageBox;

namespace stagewright {

class RecordController : public Feature, public Recording {
    Q_OBJECT
public:
    explicit RecordController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

    RecordProcess* process() override { return m_process; }
    RecordDialog* openRecordDialog() override;
    RecordDialog* recordAgain() override;
    void startRecording(const Setup& setup, const QString& target, bool targetIsNew, bool aside = false) override;
    void attach(const QString& job, const QString& file) override;
    void runEdited() override;
    bool isRecordingInto(const QString& file) const override;
    bool awaits(const QString& file) const override { return file == m_recordFile && m_process->running(); }
    bool isScratch(const QString& file) const override;
    std::pair<QString, QString> recordingFiles() const override;
    void takeUpRecording(const QString& file, const QString& target) override;

    bool settled() const override { return !m_process->running() && !m_taking; }
    bool mayClose() override;
    void closing() override { m_poll.stop(); }

private:
    RecordDialog* openDialog(const Setup& shown);
    QString writtenOrder(const Schedule& order, const QString& name);
    void begun(const QString& file, const QString& target);
    void tellConnection();
    void pollRecording();
    void followRecording(const std::vector<RunRef>& refs);
    void recordingEnded();
    void adoptRecording(const QString& file);
    void dropRecording(const QString& file);
    void showRecorded(const QString& path, const std::vector<RunRef>& fresh);
    void keepPrediction();
    void recordingTaken(); // its runs are in their file, or there are none
    void askToStop();      // the window is closing while a recording runs
    QString stoppedText(std::size_t runs) const;
    // in the documents folder, with the time in its name; not an existing file
    QString newRecordingPath(const QString& name) const;

    RecordProcess* m_process;
    ScratchFolder m_scratch;
    QTimer m_poll;
    QString m_recordFile;               // written by the child
    QString m_recordTarget;             // final file of its runs; equal to m_recordFile for a new file
    bool m_followLive = false;          // shows the newest step until the user views something else
    bool m_looking = false;             // the growing file is being read; the next read waits
    QElapsedTimer m_look;               // since the last read started
    qint64 m_lookPause = 0;             // ms from one read to the next
    std::optional<Schedule> m_recorded; // the edited order being recorded
    std::optional<Run> m_predicted;     // its prediction
    RunRef m_compareAfter;              // the original of the edited schedule being recorded
    bool m_taking = false;              // the recording has ended, its runs are not yet in their file
    bool m_closeAfter = false;          // the window closes once they are
    QPointer<QMessageBox> m_stopQuestion;
    int m_recordCount = 0;
    bool m_wasThere = false; // the file that the child writes, with runs of others: elsewhere only
    bool m_aside = false;    // for a lesson
    bool m_toldLost = false; // that the connection is lost
    Job m_hosts;             // asked for the dialog
};

} // namespace stagewright
