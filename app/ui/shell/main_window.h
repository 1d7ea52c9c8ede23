// MainWindow: the window of Stagewright. It connects runs, views, panels, the editor and the recording, which know nothing of each
// other. Sources: main_window.cpp (layout, theme), window_actions.cpp, window_keys.cpp, window_budget.cpp,
// window_library.cpp, window_runs.cpp (show, compare, steps, find), window_files.cpp (open, save), window_edit.cpp, window_record.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <QElapsedTimer>
#include <QMainWindow>
#include <QPointer>
#include <QStringList>
#include <QTimer>

#include "app/ui/runs/run_library.h"
#include "app/ui/shell/actions.h"
#include "app/ui/shell/scratch_folder.h"
#include "schedules/library/registry.h"
#include "traces/compare/compare.h"
#include "widgets/compare/compare_panel.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/edit_panel.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

class QComboBox;
class QLabel;
class QMessageBox;
class QProgressBar;
class QSplitter;
class QStackedWidget;
class QVBoxLayout;

namespace stagewright {

class Banner;
class BlockEditor;
class BookmarksController;
class DeviceController;
class EditController;
class CompareController;
class ExchangeController;
class ExportController;
class FindField;
class ImportController;
class LayoutController;
class ExplorerController;
class LoweredPanel;
class NotesController;
class PaletteController;
class LessonController;
class PlanController;
class PlaybackController;
class PreferencesController;
class SearchController;
class SessionController;
class SqlController;
class TablesController;
struct LoweredPicture;
class WhatIfPanel;
class ResidualPanel;
struct WhatIfBase;
class RecordDialog;
class RecordStrip;
class MemoryController;
class RangeController;
class StepsController;
class RowsController;
class ScheduleBrowser;
class WelcomePage;

class MainWindow : public QMainWindow {
    Q_OBJECT
    friend class NotesController;
    friend class PreferencesController;
    friend class SqlController;
    friend class CompareController; // shows several runs in the same views

public:
    enum class Mode { Empty,
                      Run,
                      Compare,
                      Edit };
    enum class Tool { None,
                      Lowered,
                      WhatIf,
                      Residuals }; // over the run shown

    explicit MainWindow(QWidget* parent = nullptr);
    ~MainWindow() override;

    void openFiles(const QStringList& paths); // run files and schedule CSVs; shows the first run of the first file. Traces open the import dialog
    void showRun(const RunRef& ref, int step = -1);
    void showSteps(const RunRef& ref, const ShownSteps& steps); // several on one axis
    // Every step on one axis, with the details of one (−1: the representative step); calls `then` when that is on screen.
    void showEveryStep(const RunRef& ref, int detail = -1, std::function<void()> then = {});
    void showCompare(const RunRef& a, const RunRef& b);
    void enterEdit();
    void leaveEdit();
    // Shows an in-memory run and edits it, with `order` as a change of this name; without a name the edit starts from `order`.
    void editRun(Run run, const QString& change, Schedule order);
    // Edits a run that may not be open yet, with `order` as a change of this name, if its order is `original`; else done(false) and
    // nothing has changed.
    void editRunAgain(const RunRef& ref, const Schedule& original, const QString& change, const Schedule& order, std::function<void(bool)> done);
    EditController* edit() { return m_edit; }
    void showEditedDeadlock();                 // why the edited order never ends, with a suggested change
    void refreshEdit();                        // title, actions and status after a change of the order
    std::optional<Bytes> budgetOfRank() const; // in the units of the run shown
    void newFromLibrary(const QString& name, const Shape& shape, const CostModel::UnitCosts& costs = {});
    BlockEditor* openBlockEditor(const QString& preset = {}, const Shape& shape = {}); // window modal; deleted when closed
    void askWhatIf(const QString& changes);                                            // as in simulate --what-if
    ScheduleBrowser* openScheduleBrowser();                                            // window modal; deleted when closed
    void startRecording(const RecordSettings& settings, const QString& target, bool targetIsNew);
    void runEdited();          // trains the edited order with the source's setup, then compares
    void chooseGap(int index); // index in the report of the step shown; −1: none
    int chosenGap() const { return m_gap; }
    void chooseOp(SpanId span); // of any step of the run shown, in mode Run
    std::shared_ptr<const GapExplanation> gapExplanation() const { return m_gapExplanation; }
    void find(const QString& query, bool backward = false);
    void setThemeChoice(ThemeChoice choice); // of every window; remembered
    void timesChanged();                     // the time unit changed: everything that prints times updates
    // For a rank's activations, parsed by MemoryBudget in the units of the run shown; empty: none. Remembered.
    Result<void> setMemoryBudget(const QString& text);
    void showKeys();
    RecordDialog* openRecordDialog(); // not modal; deleted when closed

    Mode mode() const { return m_mode; }
    // Selects an op of the run shown, in view; where a tool shows another picture the run's own comes back. False: while an order is
    // edited, or the picture has no such op.
    bool selectOp(SpanId span);
    Tool tool() const { return m_tool; }
    bool showsToolPicture() const { return m_tool == Tool::Lowered || m_tool == Tool::WhatIf; } // not the run's own: spans have other numbers
    void setTool(Tool tool);                                                                    // in mode Run; else none
    bool settled() const;                                                                       // nothing is being read, compared or recorded

    RunLibrary* library() { return m_library; }
    RunsModel* runs() { return m_library->model(); }
    TimelineView* timelineView() { return m_timeline; }
    MemoryView* memoryView() { return m_memory; }
    ViewState* viewState() { return m_state; }
    RowsController* rowsController() { return m_rowsController; }
    StepsController* stepsController() { return m_stepsController; }
    ScheduleEditor* editor() { return m_editor; }
    SidePanel* sidePanel() { return m_side; }
    EditPanel* editPanel() { return m_editPanel; }
    ComparePanel* comparePanel() { return m_comparePanel; }
    Legend* legend() { return m_legend; }
    ExportController* exporter() { return m_export; }
    std::shared_ptr<const RunView> shownView() const { return m_shown; }    // A in compare mode; null: nothing is shown
    std::shared_ptr<const RunView> comparedView() const { return m_other; } // B in compare mode
    QString toolText() const;                                               // one line about the current tool; empty: no tool
    RecordProcess* recording() { return m_process; }
    bool isRecordingInto(const QString& file) const;
    bool isScratch(const QString& file) const; // deleted with the window
    // The running recording: the file that the child writes and the file that finally gets its runs. Empty: none.
    std::pair<QString, QString> recordingFiles() const;
    // Recovers the runs of a window that ended during a recording: adds them to `target` and says so.
    void takeUpRecording(const QString& file, const QString& target);
    Actions& actions() { return *m_actions; }
    QString bannerText() const;
    RangeController* range() { return m_range; }
    RunRef shownRef() const { return m_shown ? m_shown->ref : RunRef{}; }
    std::shared_ptr<const Comparison> comparison() const { return m_comparison; }
    const Theme& theme() const { return *m_theme; }
    QVBoxLayout* workArea() { return m_work; }           // the views over the legend; room above and below them
    QVBoxLayout* panelColumn() { return m_panelColumn; } // the panels at the right; room above them
    QStackedWidget* panels() { return m_panels; }
    void addPage(QWidget* page);                        // in place of the views, when shown
    void showPage(QWidget* page, const QString& title); // null: back to the views; so does showing a run
    void setPageStatus(const QString& text);            // of the page shown, in the status bar
    Banner* banner() { return m_banner; }
    PlaybackController* playback() { return m_playback; }
    FindField* findField() { return m_find; }
    QSplitter* columns() { return m_columns; } // runs list, work, panel
    QSplitter* rows() { return m_rows; }       // timeline, memory
    void splitViews();                         // divides the height between rows and charts
    QMenu* menu(MenuId id) { return m_menus.at(id); }
    QStringList recentFiles() const;
    void closeFile(const QString& path); // removes it from the list; shows another run if it held the one shown
    NotesController* notes() { return m_notes; }
    SearchController* search() { return m_search; }
    DeviceController* device() { return m_device; }
    SqlController* sql() { return m_sql; }
    TablesController* tables() { return m_tables; }
    PaletteController* palettes() { return m_palette; }
    BookmarksController* bookmarks() { return m_bookmarks; }
    SessionController* session() { return m_session; }
    LayoutController* layouts() { return m_layouts; }
    PreferencesController* preferences() { return m_preferences; }
    ExplorerController* explorer() { return m_explorer; }
    CompareController* compare() { return m_compare; }
    PlanController* plans() { return m_plans; }
    ImportController* importer() { return m_import; }
    ExchangeController* exchange() { return m_exchange; }
    LessonController* lessons() { return m_lessons; }

signals:
    void modeChanged();
    void themeChanged();
    void runShown(); // another run, step or comparison is on screen
    void actionsRefreshed();
    void windowClosing();

protected:
    void closeEvent(QCloseEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    // main_window.cpp
    void buildViews();
    void buildToolBar();
    void buildMenus();
    void buildStatusBar();
    void connectAll();
    void applyTheme();
    void applyPreferences();
    void restoreLayout();
    void keepOnScreen();
    void setMode(Mode mode);
    void showPanels();
    void refreshTitle();
    void refreshActions();
    void refreshStatus();
    void ready();                       // the request is on screen
    std::function<bool()> whileShown(); // for a message: whether its subject is still on screen
    // window_runs.cpp
    bool arrived(quint64 generation, const Result<std::shared_ptr<const RunView>>& view);
    void present(const std::shared_ptr<const RunView>& view, bool fit);
    void fillSteps();
    void chooseSteps();
    void stepBy(int by);
    void selectionChanged();
    void runMenu(const QPoint& at, const RunRef& ref, const QString& file);
    void spanMenu(const QPoint& at, SpanRef ref);
    void tellDamage(std::initializer_list<const RunView*> views);
    // window_budget.cpp
    Units shownUnits() const;
    void restoreBudget();
    void applyBudget();
    void askBudget();
    // window_files.cpp
    void openAsked();
    void saveCopyAsked();
    void openSchedule(const QString& path);
    void openBlock(const QString& path);
    std::optional<QByteArray> readText(const QString& path);
    void openOrder(const Schedule& schedule, const QString& path); // simulates it, or shows why it never ends
    void remember(const QString& path);
    void refreshRecent();
    void fileListed(const QString& path, const std::vector<RunRef>& refs);
    // window_edit.cpp
    void startEdit(std::optional<Schedule> beginWith); // nullopt: the order of the run
    void showDeadlock(std::shared_ptr<const Schedule> schedule, const Channels& channels, std::function<void(const Schedule&)> apply);
    // window_gaps.cpp
    void connectGaps();
    void resetGaps();
    void askSlack();
    void chooseCause(std::optional<IdleCause> cause);
    void walkGaps(int by); // the next shorter or longer one
    void refreshNotes();
    // window_tools.cpp
    struct ToolInput {
        std::shared_ptr<const Schedule> schedule; // compute-only
        CostModel costs;
    };
    void buildTools();
    QWidget* toolPanel() const; // the panel at the right in mode Run
    Result<std::shared_ptr<const ToolInput>> toolInput();
    void askTool(); // requests its picture, made off the GUI thread
    void askLowered(const ToolInput& input);
    void askWhatIf(const ToolInput& input);
    void askResiduals(const ToolInput& input);
    template <typename Work, typename Then>
    void makePicture(Work work, Then then); // one at a time
    void showToolPanels(const std::vector<std::shared_ptr<const TimelinePanel>>& panels);
    // window_record.cpp
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
    QString newRecordingPath(const QString& name) const; // in the documents folder, with the time in its name; not an existing file

    Actions* m_actions = nullptr;
    RunLibrary* m_library = nullptr;
    ViewState* m_state = nullptr;
    RowsController* m_rowsController = nullptr;
    MemoryController* m_memoryController = nullptr;
    RangeController* m_range = nullptr;
    StepsController* m_stepsController = nullptr;
    ScheduleEditor* m_editor = nullptr;
    RecordProcess* m_process = nullptr;
    ExportController* m_export = nullptr;

    QSplitter* m_columns = nullptr;
    QSplitter* m_rows = nullptr;
    QVBoxLayout* m_work = nullptr;
    QStackedWidget* m_pages = nullptr;
    QStackedWidget* m_panels = nullptr;
    QVBoxLayout* m_panelColumn = nullptr;
    QString m_pageStatus;
    QString m_pageTitle; // of the current page; empty: the views are shown
    RunsPanel* m_runsPanel = nullptr;
    TimelineView* m_timeline = nullptr;
    MemoryView* m_memory = nullptr;
    Legend* m_legend = nullptr;
    EditOverlay* m_overlay = nullptr;
    SidePanel* m_side = nullptr;
    ComparePanel* m_comparePanel = nullptr;
    EditPanel* m_editPanel = nullptr;
    WelcomePage* m_welcome = nullptr;
    Banner* m_banner = nullptr;
    RecordStrip* m_strip = nullptr;
    QComboBox* m_steps = nullptr;
    FindField* m_find = nullptr;
    QLabel* m_titleLabel = nullptr;
    QLabel* m_statusLeft = nullptr;
    QLabel* m_statusRight = nullptr;
    QLabel* m_statusClock = nullptr;
    QProgressBar* m_reading = nullptr;
    QMenu* m_recentMenu = nullptr;
    std::map<MenuId, QMenu*> m_menus;
    bool m_damageTold = false; // what the banner says

    const Theme* m_theme = &Theme::light();
    bool m_systemDark = false;
    bool m_placed = false; // placed on the screen at first show
    QSize m_startSize;
    PreferencesController* m_preferences = nullptr;
    NotesController* m_notes = nullptr;
    SearchController* m_search = nullptr;
    DeviceController* m_device = nullptr;
    SqlController* m_sql = nullptr;
    TablesController* m_tables = nullptr;
    PaletteController* m_palette = nullptr;
    BookmarksController* m_bookmarks = nullptr;
    SessionController* m_session = nullptr;
    LayoutController* m_layouts = nullptr;
    Mode m_mode = Mode::Empty;
    quint64 m_generation = 0;               // of the current request; late answers of an older one are dropped
    bool m_pending = false;                 // an answer of this generation is pending
    std::shared_ptr<const RunView> m_shown; // of Run and Edit mode; A in Compare mode
    std::shared_ptr<const RunView> m_other; // B in Compare mode
    std::shared_ptr<const Comparison> m_comparison;
    QStringList m_openFirst; // files whose first run is to be shown when listed

    // tools
    Tool m_tool = Tool::None;
    quint64 m_toolGeneration = 0; // of the latest request; late answers are dropped
    bool m_toolPending = false;
    bool m_toolBusy = false;  // a picture is being made; the latest request waits for it
    bool m_toolAgain = false; // such a request waits
    std::shared_ptr<const ToolInput> m_toolInput;
    LoweredPanel* m_lowered = nullptr;
    std::shared_ptr<const LoweredPicture> m_loweredPicture;
    WhatIfPanel* m_whatIf = nullptr;
    std::shared_ptr<const WhatIfBase> m_whatIfBase; // of m_toolInput
    ResidualPanel* m_residuals = nullptr;
    RunRef m_residualSource; // source of m_residualCosts
    std::optional<CostModel> m_residualCosts;
    SpanId m_selectLater = noSpan; // in a step that is being read

    // idle time explained
    std::optional<IdleCause> m_cause; // marked on the timeline
    int m_gap = -1;
    quint64 m_gapGeneration = 0;
    std::shared_ptr<const GapExplanation> m_gapExplanation; // of m_gap, once computed
    std::shared_ptr<const std::vector<Nanos>> m_slack;      // by span of the step shown
    Nanos m_mostSlack = 0;
    bool m_slackAsked = false;

    // edit
    std::shared_ptr<const RunView> m_editSource;
    EditController* m_edit = nullptr;

    // recording
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

    // find
    QString m_query;
    std::vector<SpanId> m_found;

    PlaybackController* m_playback = nullptr;
    // playback
    std::vector<SpanId> m_playOrder;
    std::size_t m_playAt = 0;
    ExplorerController* m_explorer = nullptr;
    CompareController* m_compare = nullptr;
    LessonController* m_lessons = nullptr;
    PlanController* m_plans = nullptr;
    ImportController* m_import = nullptr;
    ExchangeController* m_exchange = nullptr;
};

} // namespace stagewright
