// LessonRuns: the real run of a lesson's block: trains the learner's order and the schedules that the block names on
// this computer, simulates the same schedules with costs fitted from those runs, and checks the gradients. GUI thread
// only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>

#include "app/ui/lessons/lesson_session.h"
#include "app/ui/workspace/scratch_folder.h"

namespace stagewright {

class Workspace;

class LessonRuns : public QObject {
    Q_OBJECT
public:
    LessonRuns(Workspace& workspace, QObject* parent);

    // Records a run block; finished() follows. Returns an error if refused (no program, a recording is running).
    Result<void> start(const LessonSession& session, const lessons::RunBlock& block);
    void cancel();
    QString running() const { return m_block; } // id of the block; empty: none

    struct Outcome {
        QString block;
        QString file;
        std::vector<std::pair<std::string, std::shared_ptr<const Run>>> runs; // by the schedule's name in the block
        std::optional<lessons::RunFailure> failure;                           // none: it finished
        QString note;                                                         // fitted costs in words; Markdown
    };
    static QString fileOf(const lessons::Lesson& lesson, const lessons::RunBlock& block); // file of its runs
    void readKept(const lessons::Lesson& lesson, const lessons::RunBlock& block);         // earlier runs, if any
    // Seconds that its runs are likely to take, judged by those made on this computer; 0: unknown.
    static double expectedSeconds(const lessons::Lesson& lesson, const lessons::RunBlock& block);
    // gradients of the orders that it recorded last, the learner's own as it was; proved() follows
    void prove(const QString& block, int ranks, int microbatches);
    QString proof(const QString& block) const { return m_proofs.value(block); } // the table in words

signals:
    void progressed();
    void finished(const stagewright::LessonRuns::Outcome& outcome);
    void proved(const QString& block, bool equal, const QString& words);

private:
    void ended();
    void read(const QString& block, const QString& file, const QStringList& schedules,
              const std::optional<lessons::RunFailure>& failure, const QString& title);

    Workspace& m_workspace;
    QString m_block;
    QString m_file;
    QString m_title;         // of its runs; with ": " at the end the schedule follows
    QStringList m_schedules; // as the block names them
    QStringList m_recorded;  // as the program was given them: names of the library, files with an order
    ScratchFolder m_orders;
    QElapsedTimer m_time; // since it was started
    double m_samples = 0; // that it trains; 0: its time says nothing about others
    QProcess m_check;
    QString m_checked; // block whose gradients are being checked
    QMap<QString, QString> m_proofs;
};

} // namespace stagewright
