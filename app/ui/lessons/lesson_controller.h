// LessonController: lessons in the real window: the shelf in place of the views, the panel beside them, the score rail
// over the canvas, the glossary as a dock. The canvas is the window's own: the learner's order is edited like any
// other, and every verdict is computed from the current canvas. GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QObject>
#include <QPointer>

#include "app/ui/lessons/lesson_layout.h"
#include "app/ui/lessons/lesson_runs.h"
#include "app/ui/lessons/lesson_session.h"
#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/lessons/lesson_library.h"
#include "widgets/export/picture.h"
#include "widgets/job.h"
#include "widgets/lessons/lesson_panel.h"
#include "widgets/lessons/lesson_picture.h"

class QDockWidget;
class QFrame;
class QPushButton;

namespace stagewright {

class GlossaryPanel;
class HangOverlay;
class LessonShelf;
class ScoreRailView;

class LessonController : public Feature, public LessonOpening {
    Q_OBJECT
public:
    explicit LessonController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    FeatureParts parts() override;
    ~LessonController() override;

    void openShelf();
    // id, number or path; deferred while the lessons are being read
    void start(const QString& name, bool over = false, int page = -1);
    void openFile(const QString& path) override;
    void leave(bool forAnother = false); // the window gets back what it showed before, unless another lesson follows
    void nextLesson();                   // by number; after the last one the shelf
    void showTerm(const QString& id);

    LessonShelf* shelf() { return m_shelf; }
    LessonPanel* panel() { return m_panel; }
    ScoreRailView* rail() { return m_rail; }
    GlossaryPanel* glossary();
    LessonSession* session() { return m_session.get(); } // null: no lesson in progress
    LessonRuns* runs() { return m_runs; }
    bool settled() const override; // the screen is up to date
    QWidget* gapCard() const;      // the explanation of a gap of the edited order; null: none
    QString refusal() const { return m_refusal; }

private:
    static constexpr int lessonWidth = 380; // of the panel

    void connectPanel();
    void loadLessons();
    void fillShelf();
    QStringList ownFiles() const;
    void begin(std::shared_ptr<const lessons::Lesson> lesson, bool over, int page);
    void showPage();
    void fitLayout(); // to what the step uses
    // long enough for every mark of the rail, so that it stays while ops are placed
    void fitAxis();
    const lessons::Lesson* following() const; // the lesson after this one; null: none
    void showCanvas();                        // as a run, or in edit mode if the step allows edits
    RunRef comparedRun();                     // invalid: the step has no comparison
    void syncCanvas();                        // after a change made elsewhere
    void editorChanged();
    // Said where the mistake was made: at the op that was dragged or placed, or under the tools.
    void refuse(const Error& why, bool onCanvas = false);
    void readAgain(); // off the GUI thread; the latest request waits for the running one
    void took(const PageReading& reading);
    LessonState state() const;
    void showTab(bool lesson);
    void runAsked(const QString& id);
    void openRun(const QString& block);
    void runQueued(); // the next of those asked for together
    void runFinished(const LessonRuns::Outcome& outcome);
    void keepFigure(const QString& name, const QString& format, const QString& caption);
    Result<QByteArray> figureBytes(const QString& name, PictureKind kind, const QString& caption);
    void explainGap(int rank, Nanos time);
    void hideGap();
    void refreshActions();
    void applyTheme();
    bool editsHere() const;

    LessonShelf* m_shelf;
    QWidget* m_tabs;
    QPushButton *m_lessonTab, *m_detailsTab;
    LessonPanel* m_panel;
    ScoreRailView* m_rail;
    LessonRuns* m_runs;
    std::unique_ptr<HangOverlay> m_hang;
    double m_axis = 0; // units: the longest that this step has shown
    LessonLayout m_layout;
    bool m_focusFirst = false; // once the page has been read
    QPointer<QDockWidget> m_dock;
    QPointer<GlossaryPanel> m_glossary;
    QPointer<QFrame> m_gapCard;

    std::shared_ptr<const lessons::Library> m_library; // null: not read yet
    std::vector<std::shared_ptr<const lessons::Lesson>> m_own;
    std::map<std::string, LessonPicture> m_pictures;
    QStringList m_faults;
    Job m_loading;
    struct Request {
        QString name;
        bool over = false;
        int page = -1;
    };
    std::optional<Request> m_request; // a lesson to start once the library is read

    std::unique_ptr<LessonSession> m_session;
    RunRef m_before;                   // the run that was shown before the lesson; invalid: none
    RunRef m_canvasRef;                // the run that shows the canvas
    lessons::Settings m_shownSettings; // its settings; other settings need another run
    bool m_wantEdit = false;
    bool m_syncing = false;
    QString m_refusal;
    Job m_reading;
    PageReading m_last;
    std::optional<lessons::ScoreRail> m_railKept; // of m_railKey
    std::string m_railKey;
    std::map<std::string, QString> m_notes;
    std::map<std::string, LessonRuns::Outcome> m_outcomes;
    QStringList m_queue;                      // runs still to start
    std::map<std::string, QPixmap> m_figures; // of the page, by file name
};

} // namespace stagewright
