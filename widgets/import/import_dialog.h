// ImportDialog: which traces to import, with which rules, what they contain, and where to store them. It reads them off
// the GUI thread as soon as they are named, with progress; a newer request cancels an older one, and what is shown is
// what will be stored. It stores nothing itself and remembers folder, rules and switches. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include <QDialog>
#include <QTimer>

#include "widgets/import/import_reading.h"
#include "widgets/job.h"

class QCheckBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QScrollArea;
class QTreeWidget;

namespace stagewright {

class ImportDialog : public QDialog {
    Q_OBJECT
public:
    explicit ImportDialog(QWidget* parent = nullptr);
    ~ImportDialog() override; // cancels reading

    void setTraces(const QStringList& words); // one per line; read at once
    void setRulesFile(const QString& path);
    ImportQuestion question() const;
    // nothing is being read or stored, or waiting for it
    bool settled() const;
    std::shared_ptr<const ImportReading> reading() const { return m_reading; } // null: none, or out of date
    std::vector<std::size_t> chosen() const;                                   // ticked runs
    QString target() const;
    void setTarget(const QString& path);
    QString faultText() const;
    QTreeWidget* runs() const { return m_runs; }
    QString detailsText() const; // the details shown of the current run, one per line
    // While runs are being stored; the fields are then disabled.
    void setStoring(bool storing);
    bool storing() const { return m_storing; }
    void showFault(const Error& error); // it could not be stored

public slots:
    void reject() override; // first stops storing if it is running

signals:
    void importAsked();
    void storingCancelled();
    void openAsked(const QStringList& schedules); // to edit without storing

private:
    struct Cell; // progress, written by the worker
    void build();
    void changed(); // reads with a short delay
    void stopReading();
    void read();
    void arrived(ImportAnswer answer);
    void poll();
    void fillRuns();
    void showDetails();
    void check(); // enables buttons, describes the target
    void setFault(QLabel* label, const QString& text);
    void chooseFiles();
    void chooseFolder();
    void chooseRules();
    void chooseTarget();
    void addWords(const QStringList& words);
    QString folder() const; // where file dialogs start
    void remember() const;

    QPlainTextEdit* m_words;
    QPushButton *m_files, *m_folder;
    QLineEdit* m_rules;
    QPushButton* m_chooseRules;
    QCheckBox* m_host;
    QLabel *m_rulesFault, *m_stateText, *m_fault, *m_targetNote;
    QProgressBar* m_bar;
    QPushButton* m_stop;
    QTreeWidget* m_runs;
    QScrollArea* m_details;
    QLabel* m_nothing; // instead of it
    QLineEdit* m_target;
    QPushButton *m_chooseTarget, *m_open, *m_cancel, *m_import;
    std::shared_ptr<const ImportReading> m_reading;
    std::shared_ptr<Cell> m_cell;
    Job m_job; // reading
    QTimer m_later, m_poll;
    bool m_given = false;       // the traces were not typed: once they are read, Import has the keys
    bool m_targetTyped = false; // otherwise it follows the traces
    bool m_storing = false;
};

} // namespace stagewright
