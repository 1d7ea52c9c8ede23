// RecordDialog: the form for a Setup; a field is named as its key. It shows in words and as a command what it will run, and points to the
// first invalid field. It restores the last settings (QSettings belongs to the caller). GUI thread only.
#pragma once

#include <vector>

#include <QDialog>
#include <QHash>
#include <QVector>

#include "widgets/job.h"
#include "widgets/record/record_setup.h"
#include "widgets/record/training_devices.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;
class QVBoxLayout;

namespace stagewright {

class RecordDialog : public QDialog {
    Q_OBJECT
public:
    explicit RecordDialog(QWidget* parent = nullptr);

    void setSetup(const Setup& setup);
    Setup setup() const;
    // Files the runs may be added to; the first is preselected. A new file is always offered.
    void setTargets(const QStringList& files, const QString& newFile);
    QString targetFile() const; // existing, or a new path
    bool targetIsNew() const;
    void setProgram(const QString& program);                    // empty: recording is disabled, with the reason
    void setBackends(const QVector<TrainingBackend>& backends); // besides the processor; before the settings
    // a backend without a usable one is refused, with the reason
    void setDevices(const QVector<TrainingDevice>& devices);
    // of `stagewright hosts`; they are offered beside this computer
    void setHosts(const QStringList& names);
    QString faultText() const;
    QWidget* fieldNamed(const QString& name) const; // as SetupFault::field; nullptr if there is none

private:
    Setup read(std::optional<SetupFault>& unread) const; // the first field whose text its key does not take
    void check();
    void fillSchedules();
    void markPossible(); // enables the schedules that the shape allows; the others are grey and say why
    void showParameters();
    void showDevice(const Setup& setup);
    void showPlace(const Setup& setup);
    void setMeant(QWidget* field, bool meant); // with its label
    void addPlace(QVBoxLayout* into);
    void addConditions(QVBoxLayout* into);
    QComboBox* choice(const char* name, std::initializer_list<std::pair<QString, const char*>> items,
                      const QString& tooltip);
    QSpinBox* number(const char* name, int low, int high, const QString& tooltip);
    QLineEdit* line(const char* name, const QString& placeholder, const QString& tooltip);

    QString m_program;
    QString m_newFile;
    QListWidget* m_schedules;
    QLineEdit* m_scheduleFile;
    QSpinBox *m_ranks, *m_microbatches, *m_chunks;
    QComboBox *m_shard, *m_gather, *m_reduce;
    QLineEdit *m_owners, *m_replicaBatch, *m_cut;
    QSpinBox *m_layers, *m_hidden, *m_heads, *m_sequence;
    QComboBox *m_host = nullptr, *m_ranksAs = nullptr, *m_queue = nullptr;
    QLineEdit *m_slurm = nullptr, *m_python = nullptr, *m_modelFile = nullptr;
    QComboBox *m_backend = nullptr, *m_precision = nullptr, *m_sharing = nullptr, *m_transport = nullptr,
              *m_clock = nullptr, *m_target = nullptr;
    QLineEdit* m_devices = nullptr;
    QLabel* m_sharingMeaning = nullptr;
    QHash<QString, QString> m_whyUnusable; // by backend; empty: usable, or unknown
    QLineEdit* m_parameters = nullptr;     // of the current schedule in the list
    Job m_checking;                        // which schedules are possible
    QLineEdit* m_dataFile;
    std::vector<QWidget*> m_conditions;
    Setup m_shown; // what has no field of its own is kept
    QLabel *m_words = nullptr, *m_command = nullptr, *m_fault = nullptr;
    QPushButton* m_start = nullptr;
};

} // namespace stagewright
