#include "app/ui/lessons/lesson_controller.h"

#include <QApplication>
#include <QDockWidget>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QTimer>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/deadlock/hang_overlay.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/lessons/glossary_panel.h"
#include "widgets/lessons/lesson_shelf.h"
#include "widgets/lessons/score_rail.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/inspector.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> LessonController::actionTable()
{
    return {
        item("lessons", ActionGroup::LearnLessons, u"&Lessons…"_s, "Ctrl+Shift+N",
             u"Twenty-one questions, each answered by hand and by a real run on this computer"_s,
             {.button = u"Lessons"_s}),
        item("openLesson", ActionGroup::LearnLessons, u"Open a lesson &file…"_s, {},
             u"Your own lesson or a teacher's (.md)"_s),
        item("nextLessonStep", ActionGroup::LearnLessons, u"N&ext step of the lesson"_s, "Alt+PgDown|Ctrl+Alt+Right",
             u"Available when the step's goal is met"_s),
        item("previousLessonStep", ActionGroup::LearnLessons, u"&Previous step of the lesson"_s,
             "Alt+PgUp|Ctrl+Alt+Left"),
        item("lessonPane", ActionGroup::LearnLessons, u"Lesson or &canvas"_s, "F6",
             u"Moves the focus to the lesson's panel, or back to the canvas"_s),
        item("lessonHint", ActionGroup::LearnLessons, u"&Hint"_s, "Ctrl+Alt+H",
             u"First a pointer, then the principle, then one move"_s),
        item("leaveLesson", ActionGroup::LearnLessons, u"Lea&ve the lesson"_s, {}, u"Your progress is kept"_s),
        item("glossary", ActionGroup::LearnLessons, u"&Glossary"_s, "Ctrl+Alt+G",
             u"Every term on screen, and what other tools call it"_s, {.line = true, .checkable = true}),
        item("explainTerm", ActionGroup::LearnLessons, u"E&xplain the focused item"_s, "Shift+F1",
             u"Explains the terms in the label under the pointer or with the focus"_s),
    };
}

LessonController::LessonController(Workspace& workspace)
    : Feature(workspace), m_layout(workspace), m_loading(workspace.jobs()), m_reading(workspace.jobs())
{
    m_shelf = new LessonShelf;
    m_rail = new ScoreRailView(*workspace.views().timeline);
    m_hang = std::make_unique<HangOverlay>();
    workspace.views().timeline->add(m_hang.get());
    workspace.room().workArea()->insertWidget(0, m_rail);
    m_tabs = new QWidget;
    m_tabs->setObjectName(u"tabs"_s);
    auto* tabs = new QHBoxLayout(m_tabs);
    tabs->setContentsMargins(14, 8, 14, 4);
    tabs->setSpacing(4);
    auto tab = [&](const QString& text, const QString& tip) {
        auto* button = new QPushButton(text, m_tabs);
        button->setCheckable(true);
        button->setToolTip(tip);
        tabs->addWidget(button);
        return button;
    };
    m_lessonTab = tab(u"Lesson"_s, u"The task and your progress  (Q)"_s);
    m_detailsTab = tab(u"Details"_s, u"Figures of the schedule on the canvas  (Q)"_s);
    tabs->addStretch(1);
    auto* leaving = new QPushButton(u"Leave"_s, m_tabs);
    leaving->setObjectName(u"flat"_s);
    leaving->setToolTip(u"To the lessons; your progress is kept"_s);
    tabs->addWidget(leaving);
    connect(m_lessonTab, &QPushButton::clicked, this, [this] { showTab(true); });
    connect(m_detailsTab, &QPushButton::clicked, this, [this] { showTab(false); });
    connect(leaving, &QPushButton::clicked, this, [this] { m_workspace.actions()["leaveLesson"]->trigger(); });
    m_panel = new LessonPanel;
    workspace.room().panelColumn()->insertWidget(0, m_tabs);
    workspace.room().panelColumn()->insertWidget(1, m_panel, 1);
    m_tabs->hide();
    m_panel->hide();
    m_runs = new LessonRuns(workspace, this);
    connectPanel();

    auto on = [&](ActionId id, auto slot) { connect(workspace.actions()[id], &QAction::triggered, this, slot); };
    on("lessons", [this] { openShelf(); });
    on("openLesson", [this] {
        const QString path = QFileDialog::getOpenFileName(m_workspace.window(), u"Open a lesson"_s, {},
                                                          u"Lessons (*.md);;All files (*)"_s);
        if (!path.isEmpty()) openFile(path);
    });
    on("leaveLesson", [this] {
        leave();
        openShelf();
    });
    on("lessonPane", [this] {
        if (!m_session) return;
        const QWidget* focus = QApplication::focusWidget();
        if (focus != nullptr && m_panel->isAncestorOf(focus)) {
            m_workspace.views().timeline->setFocus(Qt::ShortcutFocusReason);
        } else {
            showTab(true);
            m_panel->focusFirst();
        }
    });
    on("nextLessonStep", [this] {
        if (!m_session) return;
        if (!m_panel->nextReason().isEmpty()) {
            m_panel->stressReason();
            return;
        }
        if (m_session->pageIndex() + 1 < static_cast<int>(m_session->pages().size()))
            m_session->goTo(m_session->pageIndex() + 1);
        else
            nextLesson();
    });
    on("previousLessonStep", [this] {
        if (m_session) m_session->goTo(m_session->pageIndex() - 1);
    });
    on("lessonHint", [this] {
        if (!m_session) return;
        for (const auto& [check, texts] : m_last.hints)
            if (m_session->hintsOf(check) < static_cast<int>(texts.size())) {
                m_session->nextHint(check);
                return;
            }
    });
    on("details", [this] {
        if (m_session) showTab(!m_panel->isVisible());
    });
    on("glossary", [this](bool wanted) {
        glossary();
        m_dock->setVisible(wanted);
        if (wanted) m_glossary->setFocus();
    });
    on("explainTerm", [this] {
        QWidget* under = QApplication::widgetAt(QCursor::pos());
        const lessons::Term* term = under != nullptr ? termOn(under, under->mapFromGlobal(QCursor::pos())) : nullptr;
        if (const QWidget* focus = QApplication::focusWidget(); term == nullptr && focus != nullptr)
            term = termOn(focus, {});
        if (term != nullptr)
            showTerm(qs(term->id));
        else {
            glossary();
            m_dock->show();
            m_glossary->setFocus();
        }
    });
    qApp->installEventFilter(new TermGuide(this));

    connect(m_shelf, &LessonShelf::startAsked, this, [this](const QString& id) { start(id); });
    connect(m_shelf, &LessonShelf::startOverAsked, this, [this](const QString& id) { start(id, true); });
    connect(m_shelf, &LessonShelf::openFileAsked, this, [this] { m_workspace.actions()["openLesson"]->trigger(); });
    connect(m_shelf, &LessonShelf::leaveAsked, this, [this] { m_workspace.room().showPage(nullptr, {}); });
    connect(&workspace.shown(), &Shown::modeChanged, this, [this] {
        hideGap();
        // which gave the keys to the canvas
        if (m_session && m_panel->isVisible() && m_workspace.shown().mode() != Shown::Mode::Compare)
            QTimer::singleShot(0, this, [this] {
                if (m_session) m_panel->focusFirst();
            });
        // The canvas is shown: enters edit mode if the step allows edits.
        if (m_session && m_wantEdit && m_workspace.shown().mode() == Shown::Mode::Run &&
            m_workspace.shown().ref() == m_canvasRef)
            QTimer::singleShot(0, this, [this] {
                if (!m_session || !std::exchange(m_wantEdit, false) || m_workspace.shown().ref() != m_canvasRef) return;
                m_workspace.feature<OrderEditing>()->enterEdit();
                m_workspace.feature<OrderEditing>()->setMoves(m_session->allows("move"));
                if (const lessons::Step* step = m_session->step(); step != nullptr && !step->compare.empty()) {
                    m_workspace.feature<OrderEditing>()->compareWith(qs(step->compare));
                    m_workspace.actions()["ghostLibrary"]->setChecked(false); // its outlines on request
                }
            });
        refreshActions();
    });
    connect(&workspace.feature<OrderEditing>()->editor(), &ScheduleEditor::edited, this,
            &LessonController::editorChanged);
    connect(&workspace.feature<OrderEditing>()->editor(), &ScheduleEditor::previewed, this,
            &LessonController::editorChanged);
    connect(&workspace.views().timeline->selection(), &SelectionOverlay::idleClicked, this,
            [this](int panel, int rank, Nanos time) {
                // the panel that would say so is hidden
                const bool beside = m_workspace.shown().mode() == Shown::Mode::Run && m_panel->isVisible();
                if (panel == 0 && (m_workspace.shown().mode() == Shown::Mode::Edit || beside)) explainGap(rank, time);
            });
    connect(workspace.viewState(), &ViewState::selectionChanged, this, &LessonController::hideGap);
    connect(workspace.viewState(), &ViewState::visibleChanged, this, &LessonController::hideGap);
    connect(&workspace, &Workspace::themeChanged, this, &LessonController::applyTheme);
    // before the window's layout is stored
    connect(&workspace, &Workspace::closing, this, [this] { m_layout.restore(); });
    connect(m_runs, &LessonRuns::progressed, this, [this] { m_panel->setReading(m_last, state()); });
    connect(m_runs, &LessonRuns::finished, this, &LessonController::runFinished);
    connect(m_runs, &LessonRuns::proved, this, [this](const QString& block, bool equal, const QString& words) {
        QString& note = m_notes[block.toStdString()];
        note += u"\n\n"_s + (equal ? u"**✓ Gradients verified.** "_s : u"**Gradients differ.** "_s) +
                words.section(u'\n', 0, 0) + u" ["_s + u"all of them"_s + u"](proof)"_s;
        m_panel->setReading(m_last, state());
    });
    applyTheme();
    refreshActions();
}

LessonController::~LessonController() = default;

void LessonController::connectPanel()
{
    connect(m_panel, &LessonPanel::said, this, [this](const QString& id, const QString& words) {
        if (m_session) m_session->say(id.toStdString(), words.toStdString());
    });
    connect(m_panel, &LessonPanel::hintAsked, this, [this](const QString& check) {
        if (m_session) m_session->nextHint(check.toStdString());
    });
    connect(m_panel, &LessonPanel::showAsked, this, [this](const QString& check) {
        if (!m_session) return;
        if (auto shown = m_session->show(check.toStdString()); !shown) refuse(shown.error());
    });
    connect(m_panel, &LessonPanel::pageAsked, this, [this](int page) {
        if (m_session) m_session->goTo(page);
    });
    connect(m_panel, &LessonPanel::keysNotUsed, this,
            [this] { m_workspace.feature<OrderEditing>()->tray().takeKeys(); });
    connect(m_panel, &LessonPanel::finished, this, &LessonController::nextLesson);
    connect(m_panel, &LessonPanel::runAsked, this, &LessonController::runAsked);
    connect(m_panel, &LessonPanel::runAllAsked, this, [this] {
        if (!m_session) return;
        m_queue.clear();
        for (const lessons::Block* block : m_session->page().blocks)
            if (const auto* run = std::get_if<lessons::RunBlock>(block)) m_queue << qs(run->id);
        runQueued();
    });
    connect(m_panel, &LessonPanel::cancelAsked, this, [this] {
        m_queue.clear();
        m_runs->cancel();
    });
    connect(m_panel, &LessonPanel::runOpened, this, &LessonController::openRun);
    connect(m_panel, &LessonPanel::checkAsked, this,
            [this](const QString& block) { m_workspace.banner()->showNote(m_runs->proof(block)); });
    connect(m_panel, &LessonPanel::figureAsked, this,
            [this](const QString& file, const QString& format, const QString& caption) {
                keepFigure(file, format, caption);
            });
    connect(m_panel, &LessonPanel::termAsked, this, &LessonController::showTerm);
    connect(m_panel->tools(), &StepTools::editAsked, this, [this](const QString& command) {
        if (!m_session) return;
        m_refusal.clear();
        emit m_workspace.feature<OrderEditing>()->editor().refused({}); // one mistake at a time
        if (auto done = m_session->apply(command.toStdString()); !done)
            refuse(done.error());
        else
            m_panel->tools()->setRefusal({});
    });
    connect(m_panel->tools(), &StepTools::viewAsked, this, [this](const QString& view) {
        m_workspace.actions()[view == "gaps"_L1      ? "nextGap"
                              : view == "compare"_L1 ? "ghostLibrary"
                                                     : "explorer"]
            ->trigger();
        if (view == "gaps"_L1) showTab(false);
    });
    connect(m_panel->tools(), &StepTools::resetAsked, this, [this] {
        if (m_session) m_session->reset();
    });
    connect(m_panel->tools(), &StepTools::undoAsked, this,
            [this] { m_workspace.feature<OrderEditing>()->editor().undoStack()->undo(); });
}

// ---- a lesson

void LessonController::start(const QString& name, bool over, int page)
{
    if (name.contains(u'/') || name.endsWith(".md"_L1)) {
        openFile(name);
        if (m_session && page >= 0) m_session->goTo(page);
        return;
    }
    if (!m_library) {
        m_request = Request{name, over, page};
        loadLessons();
        return;
    }
    for (const auto& lesson : m_own)
        if (qs(lesson->id) == name) {
            begin(lesson, over, page);
            return;
        }
    const lessons::Lesson* lesson = m_library->find(name.toStdString());
    if (lesson == nullptr) {
        m_workspace.banner()->showError(u"no lesson is named “%1”"_s.arg(name), u"Learn › Lessons lists them"_s);
        return;
    }
    begin(std::shared_ptr<const lessons::Lesson>(m_library, lesson), over, page);
}

void LessonController::begin(std::shared_ptr<const lessons::Lesson> lesson, bool over, int page)
{
    if (!m_session) m_before = m_workspace.shown().mode() == Shown::Mode::Empty ? RunRef{} : m_workspace.shown().ref();
    leave(true);
    m_session = std::make_unique<LessonSession>(std::move(lesson));
    m_railKey.clear();
    m_axis = 0;
    m_notes.clear();
    m_outcomes.clear();
    m_queue.clear();
    m_figures.clear();
    if (over) m_session->startOver();
    if (page >= 0) m_session->goTo(page);
    if (m_session->fault()) m_workspace.banner()->showError(QString(), *m_session->fault());
    connect(m_session.get(), &LessonSession::pageChanged, this,
            [this, step = m_session->page().step, part = m_session->page().part]() mutable {
                const bool other = std::exchange(step, m_session->page().step) != step;
                const bool edits = (part == lessons::Part::Do) != (m_session->page().part == lessons::Part::Do);
                part = m_session->page().part;
                if (other) m_axis = 0;
                showPage();
                if (other || edits) showCanvas();
            });
    connect(m_session.get(), &LessonSession::canvasChanged, this, &LessonController::syncCanvas);
    connect(m_session.get(), &LessonSession::answersChanged, this, &LessonController::readAgain);
    m_tabs->show();
    if (QWidget* column = m_workspace.room().panelColumn()->parentWidget()) column->setMinimumWidth(lessonWidth);
    QAction* side = m_workspace.actions()["sidePanel"];
    if (!side->isChecked()) side->trigger();
    m_workspace.feature<OrderEditing>()->tray().setTray(false, false);
    m_workspace.feature<OrderEditing>()->setKeptElsewhere(true);
    showTab(true);
    showPage();
    showCanvas();
    for (const lessons::RunBlock* block : m_session->lesson().all<lessons::RunBlock>())
        m_runs->readKept(m_session->lesson(), *block);
    refreshActions();
}

void LessonController::leave(bool forAnother)
{
    if (!m_session) return;
    m_queue.clear();
    m_runs->cancel();
    m_session.reset();
    if (forAnother) m_layout.restore();
    m_workspace.viewState()->setLeastEnd(0);
    m_hang->setMarks(nullptr);
    m_workspace.feature<OrderEditing>()->tray().setTray(true, true);
    m_reading.drop();
    m_wantEdit = false;
    m_tabs->hide();
    m_panel->hide();
    m_panel->setPage(nullptr, {LessonPage{}}, 0, {});
    m_workspace.room().inspector()->show();
    m_rail->setRail(std::nullopt);
    m_workspace.views().memory->setRankBudgets({});
    if (QWidget* column = m_workspace.room().panelColumn()->parentWidget()) column->setMinimumWidth(320);
    if (forAnother) return;
    const RunRef before = std::exchange(m_before, RunRef{});
    // nothing of the lesson stays
    if (m_workspace.shown().mode() != Shown::Mode::Empty) m_workspace.shown().setMode(Shown::Mode::Empty);
    m_workspace.shown().forget();
    m_workspace.feature<OrderEditing>()->setKeptElsewhere(false);
    m_workspace.library()->closeAside();
    m_layout.restore(); // once the list has no runs of the lesson
    if (before.valid() && m_workspace.runs()->info(before) != nullptr) m_workspace.shown().showRun(before);
    refreshActions();
}

void LessonController::showPage()
{
    m_refusal.clear();
    m_last = {};
    m_focusFirst = true;
    m_panel->setNext(following() != nullptr ? u"Next lesson"_s : u"To the lessons"_s);
    fitLayout();
    m_panel->setPage(&m_session->lesson(), m_session->pages(), m_session->pageIndex(), m_session->canvas());
    readAgain();
    refreshActions();
}

const lessons::Lesson* LessonController::following() const
{
    if (!m_session || !m_library) return nullptr;
    const lessons::Lesson& now = m_session->lesson();
    if (!now.course.empty())
        for (const lessons::Lesson& lesson : m_library->lessons)
            if (lesson.course == now.course && lesson.place == now.place + 1) return &lesson;
    if (now.number <= 0) return nullptr;
    for (const lessons::Lesson& lesson : m_library->lessons)
        if (lesson.number == m_session->lesson().number + 1) return &lesson;
    return nullptr;
}

void LessonController::nextLesson()
{
    if (const lessons::Lesson* next = following())
        start(qs(next->id), false, 0);
    else
        openShelf();
}

// The charts where memory is asked for, the text where nothing else changes the order.
void LessonController::fitLayout()
{
    LessonLayout::Uses uses;
    if (const lessons::Step* step = m_session->step();
        step != nullptr && m_session->page().part != lessons::Part::Guess) {
        uses.memory = step->view == "memory" || !step->targets.empty() || step->settings.cap();
        for (const lessons::Check* check : m_session->lesson().all<lessons::Check>())
            if (check->step == m_session->page().step)
                uses.memory = uses.memory || check->goal.text().find("peak_activation") != std::string::npos;
        uses.text = m_session->page().part == lessons::Part::Do && m_session->allows("text") &&
                    !m_session->allows("move") && !m_session->allows("place");
    }
    m_layout.show(uses);
    m_workspace.feature<OrderEditing>()->tray().setTray(m_session->page().part == lessons::Part::Do, false);
}

void LessonController::refuse(const Error& why, bool onCanvas)
{
    m_refusal = sentence(qs(why.message));
    if (!why.remedy.empty()) m_refusal += u"; "_s + qs(why.remedy);
    if (onCanvas) emit m_workspace.feature<OrderEditing>()->editor().refused(why); // at the op
    m_panel->tools()->setRefusal(onCanvas ? QString() : m_refusal);
    if (!onCanvas && !m_panel->tools()->isVisible()) m_workspace.banner()->showNote(m_refusal);
}

void LessonController::showTab(bool lesson)
{
    if (!m_session) return;
    m_lessonTab->setChecked(lesson);
    m_detailsTab->setChecked(!lesson);
    m_panel->setVisible(lesson);
    m_workspace.room().inspector()->setVisible(!lesson);
}

FeatureParts LessonController::parts() { return {.pages = {m_shelf}}; }

bool LessonController::settled() const { return !m_wantEdit && m_runs->running().isEmpty() && !m_request; }

// ---- the rest

GlossaryPanel* LessonController::glossary()
{
    if (m_glossary) return m_glossary;
    m_dock = new QDockWidget(u"Glossary"_s, m_workspace.window());
    m_dock->setObjectName(u"glossary"_s);
    m_glossary = new GlossaryPanel(m_dock);
    m_dock->setWidget(m_glossary);
    m_dock->setMinimumWidth(280);
    m_workspace.window()->addDockWidget(Qt::RightDockWidgetArea, m_dock);
    connect(m_glossary, &GlossaryPanel::lessonAsked, this, [this](const QString& id) { start(id); });
    connect(m_dock, &QDockWidget::visibilityChanged, this,
            [this](bool shown) { m_workspace.actions()["glossary"]->setChecked(shown); });
    m_dock->hide();
    return m_glossary;
}

void LessonController::showTerm(const QString& id)
{
    glossary();
    m_dock->show();
    m_glossary->showTerm(id);
}

void LessonController::refreshActions()
{
    Actions& actions = m_workspace.actions();
    const bool active = m_session != nullptr;
    for (const ActionId id : {"leaveLesson", "nextLessonStep", "lessonHint", "lessonPane"})
        actions[id]->setEnabled(active);
    actions["previousLessonStep"]->setEnabled(active && m_session->pageIndex() > 0);
    actions["nextLessonStep"]->setToolTip(active && !m_panel->nextReason().isEmpty()
                                              ? m_panel->nextReason()
                                              : u"Available when the step's goal is met"_s);
}

void LessonController::applyTheme()
{
    m_shelf->setTheme(m_workspace.theme());
    m_panel->setTheme(m_workspace.theme());
    m_rail->setTheme(m_workspace.theme());
    if (m_session && !m_figures.empty()) took(PageReading(m_last)); // the figures are drawn in its colours
}

FeatureEntry lessonFeature() { return featureEntry<LessonController>(); }

} // namespace stagewright
