// RunsModel: the open files and their runs, as a tree of two levels (file → run) with the columns of the runs list.
// Rows keep their place; files are in the order they were opened. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QAbstractItemModel>
#include <QHash>

#include "traces/run/run.h"
#include "widgets/numbers.h"

namespace stagewright {

// A run of a file. An in-memory run (a simulation) has its own file with a path that starts with "sim:".
struct RunRef {
    QString file;
    qint64 id = 0;
    bool valid() const { return id > 0; }
    bool operator==(const RunRef&) const = default;
};

struct RunSummary { // known once the run has been read
    Nanos makespan = 0;
    double bubbleFraction = 0;
    Units units;
};

class RunsModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column {
        Name,
        State,
        Schedule,
        Clock,
        Time,
        Bubble,
        ColumnCount,
    };
    enum Role {
        RefFileRole = Qt::UserRole,
        RefIdRole,
        IsFileRole,
        DetailRole,
        FigureRole,
        MarkRole,
        ErrorRole,
        HiddenRole,
    };
    enum class FileState {
        Reading,
        Ready,
        Failed,
    };

    explicit RunsModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}

    int columnCount(const QModelIndex& parent = {}) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

    void addFile(const QString& path, FileState state = FileState::Reading); // an open one keeps its runs
    void setRuns(const QString& path, std::vector<RunInfo> runs);            // Ready
    void setFailed(const QString& path, const QString& message);
    void removeFile(const QString& path);
    void setSummary(const RunRef& ref, const RunSummary& summary);
    bool hasSummary(const RunRef& ref) const;         // a run that grew loses its summary
    void setHidden(const QString& path, bool hidden); // from views; before the file is added
    bool isHidden(const QString& path) const { return m_hidden.contains(path); }
    void showAll() { m_hidden.clear(); }
    void setMarks(std::vector<RunRef> refs); // "A", "B" … of compare mode; empty: none

    QStringList files() const;
    bool hasFile(const QString& path) const { return fileRow(path) >= 0; }
    const RunInfo* info(const RunRef& ref) const; // valid until the next change
    std::vector<RunRef> refs() const;             // every run, in order
    qsizetype runCount() const;                   // of all files
    RunRef refAt(const QModelIndex& index) const; // invalid for a file's row
    QModelIndex indexOf(const RunRef& ref) const;
    QModelIndex indexOfFile(const QString& path) const;

private:
    struct Item {
        RunInfo info;
        std::optional<RunSummary> summary;
    };
    struct File {
        QString path;
        FileState state = FileState::Reading;
        QString error;
        std::vector<Item> runs;
        QHash<qint64, int> rowOf; // by the run's id
    };
    static void numberRows(File& file);
    Item* itemOf(const RunRef& ref) const; // null: it is not there
    int fileRow(const QString& path) const;
    QVariant fileData(const File& file, int column, int role) const;
    QVariant runData(const File& file, const Item& item, int column, int role) const;

    std::vector<std::unique_ptr<File>> m_files; // stable addresses: a run's index points at its file
    std::vector<RunRef> m_marks;
    QStringList m_hidden;
};

// "virtual clock", "wall clock", "model"; and the sentence behind it.
QString clockText(const std::string& clock);
QString provenanceText(const Run& run); // also how its ranks shared GPUs, and placeText()
// "PyTorch 2.6.0", "ranks in 4 processes on a, b; clocks agree within 3 µs"; empty: threads of this program
QString placeText(const Run& run);
QString provenanceText(const RunInfo& info); // "virtual clock: projected for 4 devices"
QString stateText(RunState state);
// "ZB-H1" for a library name, with parameters ("Interleaved 1F1B v=2"), else the name itself.
QString scheduleTitle(const std::string& name);
// The run's name as it may be shown, or its schedule's title if it has none.
QString runTitle(const RunInfo& info);

} // namespace stagewright
