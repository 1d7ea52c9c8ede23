// SqlController: the SQL console of one window: it queries the file of the run shown on a worker thread, saves queries
// (in the settings and in the file), and shows rows on the timeline. In-memory runs are queried through a temporary
// file.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QObject>
#include <QThreadPool>

#include "app/ui/sql/query_places.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/scratch_folder.h"
#include "traces/run/notes.h"
#include "widgets/job.h"
#include "widgets/runs/runs_model.h"

class QDockWidget;

namespace stagewright {

class SqlConsole;

class SqlController : public Feature {
    Q_OBJECT
public:
    explicit SqlController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;

    void open(); // shows the console and focuses the query
    void ask(const QString& sql);
    void cancel();
    void chooseRow(int row);
    void showAllRows(); // marks them on the timeline
    void saveQuery(const SavedQuery& query, bool inFile);
    void removeQuery(const QString& name, bool inFile);
    std::vector<SavedQuery> ownQueries() const; // of the settings
    SqlConsole* console() { return m_console; }
    QDockWidget* dock() { return m_dock; }

private:
    void makeRoom(int tries);
    void answer(qint64 milliseconds, const std::shared_ptr<QueryRows>& rows, SpanNumbering numbering);
    void answered(const std::optional<Error>& fault); // without rows
    void place();                                     // the rows on the run shown, off the GUI thread
    void fillMenu();
    void askToSave(const QString& sql);
    void exportRows();
    // tables and queries of the file shown
    void readFile();
    // the run file, or a copy of what is in memory
    void withFile(const QString& path, const std::function<void(const Result<QString>& file)>& then);
    void shownChanged();
    void rememberAsked(const QString& sql);

    SqlConsole* m_console;
    QDockWidget* m_dock;
    int m_heightBefore = 0; // of the window, when the dock opened
    ScratchFolder m_scratch;
    QThreadPool m_pool;
    Job m_asking;
    Job m_placing;
    Job m_reading;  // tables and queries of a file
    RunRef m_asked; // the run shown when the query was started
    SpanNumbering m_numbering = SpanNumbering::AsTimeline;
    std::shared_ptr<const std::vector<QueryPlace>> m_places; // by row, on the run shown; null: not yet, or none
    int m_chooseLater = -1;                                  // a row of another run or step
    bool m_markLater = false;
    QString m_file; // its tables and queries are loaded
    std::vector<SavedQuery> m_fileQueries;
};

} // namespace stagewright
