#include "app/ui/notes/notes_controller.h"

#include <algorithm>

#include <QDateTime>
#include <QDockWidget>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMouseEvent>
#include <QStatusBar>
#include <QTableView>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/literals.h"
#include "widgets/notes/notes_overlay.h"
#include "widgets/notes/notes_panel.h"
#include "widgets/sentence.h"
#include "widgets/timeline/row_plan.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

static constexpr int flagsOfPanel = 1'000'000; // the numbers of a second run's flags begin there

// One change of the notes of a run, as the lists before and after.
class NotesController::Change : public QUndoCommand {
public:
    Change(NotesController& controller, RunRef ref, Notes before, Notes after, const QString& words)
        : QUndoCommand(words), m_controller(controller), m_ref(std::move(ref)), m_before(std::move(before)),
          m_after(std::move(after))
    {
    }
    void undo() override { m_controller.apply(m_ref, m_before); }
    void redo() override { m_controller.apply(m_ref, m_after); }

private:
    NotesController& m_controller;
    RunRef m_ref;
    Notes m_before, m_after;
};

std::vector<ActionEntry> NotesController::actionTable()
{
    return {
        item("addNote", ActionGroup::EditNote, u"Mark with a n&ote"_s, "M",
             u"A temporary note on the selected op or range, with the text you type; the next one replaces it"_s,
             {.needs = Needs::Reading, .missing = u"There is no note."_s}),
        item("keepNote", ActionGroup::EditNote, u"&Keep the note"_s, "Shift+M",
             u"Stores the temporary note, or a new one on the selection, with the run"_s,
             {.needs = Needs::Reading, .missing = u"There is no note."_s}),
        item("removeNote", ActionGroup::EditNote, u"Re&move the note"_s, "Del",
             u"Removes the selected note; Ctrl+Z restores it"_s,
             {.needs = Needs::Reading, .missing = u"There is no note."_s}),
        item("notesList", ActionGroup::ViewLists, u"&Notes"_s, "Ctrl+Shift+M",
             u"The notes of the run shown, in a list"_s, {.checkable = true}),
    };
}

NotesController::NotesController(Workspace& workspace)
    : Feature(workspace), m_flags(new NotesOverlay(this)), m_panel(new NotesPanel),
      m_dock(new QDockWidget(u"Notes"_s, workspace.window()))
{
    workspace.views().timeline->add(m_flags);
    m_pool.setMaxThreadCount(1);
    m_dock->setObjectName(u"notesDock"_s);
    m_dock->setWidget(m_panel);
    m_dock->setFeatures(QDockWidget::DockWidgetClosable);
    m_dock->hide();
    Actions& actions = workspace.actions();
    connect(actions["addNote"], &QAction::triggered, this, &NotesController::mark);
    connect(actions["keepNote"], &QAction::triggered, this, &NotesController::keep);
    connect(actions["removeNote"], &QAction::triggered, this, &NotesController::remove);
    connect(actions["notesList"], &QAction::triggered, this, [this](bool wanted) {
        m_dock->setVisible(wanted);
        if (wanted) m_panel->table()->setFocus();
    });
    connect(m_dock, &QDockWidget::visibilityChanged, this,
            [this] { m_workspace.actions()["notesList"]->setChecked(!m_dock->isHidden()); });
    connect(m_panel->model(), &NotesModel::edited, this, [this](int row, const QString& text) {
        const RunRef ref = m_workspace.shown().ref();
        const auto& all = notes(ref);
        if (row < 0 || row >= static_cast<int>(all.size())) return;
        const Note note = all[static_cast<std::size_t>(row)];
        if (note.fromRun == 0) {
            changeText(ref, note.id, text);
        } else { // a note taken over from another run becomes this run's own
            Note mine = note;
            mine.id = 0;
            mine.fromRun = 0;
            mine.text = text.toStdString();
            addNote(ref, mine);
        }
    });
    connect(m_panel, &NotesPanel::chosen, this, [this](int row) { choose(row, true); });
    connect(m_panel, &NotesPanel::activated, this, [this](int row) {
        choose(row, true);
        m_workspace.views().timeline->setFocus();
    });
    connect(m_panel, &NotesPanel::removeAsked, this, &NotesController::remove);
    connect(&workspace.shown(), &Shown::runShown, this, &NotesController::shownChanged);
    connect(&workspace.shown(), &Shown::modeChanged, this, &NotesController::refresh);
    connect(&workspace.shown(), &Shown::pictureChanged, this, &NotesController::refresh);
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        const bool shown = m_workspace.shown().view() != nullptr && m_workspace.shown().mode() != Shown::Mode::Empty;
        const bool edit = m_workspace.shown().mode() == Shown::Mode::Edit;
        Actions& a = m_workspace.actions();
        for (const ActionId id : {"addNote", "keepNote"})
            a[id]->setEnabled(shown && !edit && !m_workspace.shown().showsToolPicture());
        a["removeNote"]->setEnabled(shown && !edit &&
                                    (m_chosen >= 0 || m_passing || !notes(m_workspace.shown().ref()).empty()));
        a["notesList"]->setEnabled(shown);
        if (!edit) {
            a["undo"]->setEnabled(m_undo.canUndo());
            a["redo"]->setEnabled(m_undo.canRedo());
        }
    });
    connect(actions["undo"], &QAction::triggered, this, [this] {
        if (m_workspace.shown().mode() != Shown::Mode::Edit) m_undo.undo();
    });
    connect(actions["redo"], &QAction::triggered, this, [this] {
        if (m_workspace.shown().mode() != Shown::Mode::Edit) m_undo.redo();
    });
    workspace.library()->setNotesSource([this](const RunRef& ref) { return own(ref); });
    connect(m_flags, &NotesOverlay::clicked, this, [this](int number) {
        if (number < 0 || number >= flagsOfPanel) return;
        m_panel->setCurrentRow(number);
        choose(number, false);
    });
    connect(&workspace.views().timeline->input(), &TimelineInput::pressed, this, [this](QPointF at) {
        if (m_chosen < 0 || m_flags->flagAt(at) != nullptr) return;
        m_panel->setCurrentRow(-1);
        choose(-1, false);
    });
}

FeatureParts NotesController::parts() { return {.docks = {{m_dock}}}; }

NotesController::~NotesController()
{
    m_undo.disconnect(this);
    m_pool.waitForDone();
}

const std::vector<Note>& NotesController::notes(const RunRef& ref) const
{
    static const Notes none;
    const auto found = std::find_if(m_known.begin(), m_known.end(), [&](const auto& one) { return one.first == ref; });
    return found == m_known.end() ? none : found->second;
}

NotesController::Notes NotesController::own(const RunRef& ref) const
{
    Notes result = notes(ref);
    std::erase_if(result, [](const Note& note) { return note.fromRun != 0; });
    return result;
}

RunRef NotesController::refOfPanel(int panel) const
{
    const auto view = panel == 1 ? m_workspace.shown().other() : panel == 0 ? m_workspace.shown().view() : nullptr;
    return view ? view->ref : RunRef{};
}

std::optional<Note> NotesController::noteOfSelection() const
{
    const ViewState& state = *m_workspace.viewState();
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty()) return std::nullopt;
    Note note;
    if (const SpanRef selected = state.selected();
        selected.valid() && selected.panel < static_cast<int>(panels.size())) {
        const TimelinePanel& panel = *panels[static_cast<std::size_t>(selected.panel)];
        note = noteOnSpan(*panel.timeline, selected.span);
        note.text = u"%1: %2"_s
                        .arg(QString::fromStdString(note.op),
                             durationText(panel.timeline->spans()[selected.span].duration(), panel.units))
                        .toStdString();
    } else if (!state.areas().empty()) {
        const AreaSelection& area = state.areas().front();
        const auto plan = m_workspace.views().timeline->scene().rows.plan;
        if (!plan || plan->rankAt.empty()) return std::nullopt;
        const int positions = static_cast<int>(plan->rankAt.size());
        const int from = std::clamp(area.firstRow, 0, positions - 1),
                  to = std::clamp(area.lastRow, from, positions - 1);
        const int panel = plan->rankAt[static_cast<std::size_t>(from)].first;
        const TimelinePanel& of = *panels[static_cast<std::size_t>(panel)];
        note.anchor = NoteAnchor::Range;
        note.step = std::max(0, of.step);
        note.rank = static_cast<int>(of.ranks.size());
        note.lastRank = -1;
        for (int position = from; position <= to; ++position) { // groups may have changed their order
            const auto [p, rank] = plan->rankAt[static_cast<std::size_t>(position)];
            if (p != panel) continue;
            note.rank = std::min(note.rank, rank);
            note.lastRank = std::max(note.lastRank, rank);
        }
        if (note.rank == 0 && note.lastRank + 1 == static_cast<int>(of.ranks.size())) note.rank = note.lastRank = -1;
        const Nanos shift = of.step >= 0 ? 0 : beginOfStep(*of.timeline, note.step) - of.origin;
        note.begin = area.range.begin - shift;
        note.end = area.range.end - shift;
        note.text = durationText(area.range.duration(), of.units).toStdString();
    } else {
        return std::nullopt;
    }
    note.createdUnixMs = QDateTime::currentMSecsSinceEpoch();
    return note;
}

void NotesController::mark()
{
    const auto note = noteOfSelection();
    if (!note) {
        m_workspace.room().tell(u"Select an op or a range of time first"_s, 5000);
        return;
    }
    m_passing = note;
    const SpanRef selected = m_workspace.viewState()->selected();
    m_passingPanel = selected.valid() ? selected.panel : 0;
    refresh();
    askText();
}

// A field over the timeline beside the marked place: Return accepts the text, Escape discards the note.
void NotesController::askText()
{
    constexpr int wide = 260, high = 28, gap = 6;
    TimelineView* view = m_workspace.views().timeline;
    if (m_field) m_field->deleteLater();
    m_field = new QLineEdit(QString::fromStdString(m_passing->text), view);
    m_field->setObjectName(u"noteText"_s);
    m_field->setAccessibleName(u"Text of the note"_s);
    m_field->setToolTip(u"Return sets the text. Esc discards the note. Shift+M afterwards saves it with the run."_s);
    QRectF at(view->scene().axis.left + 20, 60, 1, 1);
    const ViewState& state = *m_workspace.viewState();
    if (const auto rect = view->rectOf(state.selected()))
        at = *rect;
    else if (!state.areas().empty())
        at.moveLeft(view->scene().axis.toX(state.areas().front().range.begin));
    const int left = std::clamp(static_cast<int>(at.left()), static_cast<int>(view->scene().axis.left),
                                std::max(static_cast<int>(view->scene().axis.left), view->width() - wide - gap));
    const int below = static_cast<int>(at.bottom()) + gap;
    m_field->setGeometry(
        left, below + high < view->height() ? below : std::max(0, static_cast<int>(at.top()) - gap - high), wide, high);
    m_field->installEventFilter(this);
    connect(m_field, &QLineEdit::editingFinished, this, [this] { answered(true); });
    m_field->show();
    m_field->selectAll();
    m_field->setFocus();
}

void NotesController::answered(bool kept)
{
    if (!m_field) return;
    QLineEdit* field = m_field;
    m_field = nullptr;
    const QString text = field->text().trimmed();
    const bool hadFocus = field->hasFocus();
    field->disconnect(this);
    field->hide();
    field->deleteLater();
    if (!kept)
        m_passing.reset();
    else if (m_passing && !text.isEmpty())
        m_passing->text = text.toStdString();
    if (hadFocus) m_workspace.views().timeline->setFocus();
    if (m_passing) m_workspace.room().tell(u"Shift+M saves this note with the run"_s, 5000);
    refresh();
}

void NotesController::keep()
{
    answered(true); // with the text typed so far
    auto note = m_passing ? m_passing : noteOfSelection();
    if (!note) {
        m_workspace.room().tell(u"Select an op or a range of time first"_s, 5000);
        return;
    }
    const SpanRef selected = m_workspace.viewState()->selected();
    const int panel = m_passing ? m_passingPanel : selected.valid() ? selected.panel : 0;
    m_passing.reset();
    const RunRef ref = refOfPanel(panel);
    if (!ref.valid()) return;
    addNote(ref, *note);
    if (ref == m_workspace.shown().ref()) {
        m_dock->show();
        const auto& all = notes(ref);
        const int row = static_cast<int>(own(ref).size()) - 1;
        if (row >= 0 && row < static_cast<int>(all.size())) {
            choose(row, false);
            m_panel->editRow(row);
        }
    }
}

void NotesController::remove()
{
    const RunRef ref = m_workspace.shown().ref();
    const auto& all = notes(ref);
    if (m_chosen < 0 && m_passing) {
        m_passing.reset();
        refresh();
        return;
    }
    int row = m_chosen;
    if (row < 0) { // that of the selected op
        const SpanRef selected = m_workspace.viewState()->selected();
        const auto view = m_workspace.shown().view();
        for (std::size_t i = 0; view && selected.valid() && selected.panel == 0 && i < all.size(); ++i)
            if (spanOfNote(*view->run->timeline, all[i]) == selected.span) row = static_cast<int>(i);
    }
    if (row < 0 || row >= static_cast<int>(all.size())) {
        m_workspace.room().tell(u"Select a note first, by its flag or in the list"_s, 5000);
        return;
    }
    const Note note = all[static_cast<std::size_t>(row)];
    if (note.fromRun != 0) {
        m_workspace.room().tell(u"This note belongs to run %1; remove it there"_s.arg(note.fromRun), 6000);
        return;
    }
    Notes after = own(ref);
    std::erase_if(after, [&](const Note& one) { return one.id == note.id; });
    m_chosen = -1;
    change(ref, u"remove a note"_s, std::move(after));
}

void NotesController::addNote(const RunRef& ref, Note note)
{
    Notes after = own(ref);
    note.id = 0;
    note.fromRun = 0;
    for (const Note& one : after) note.id = std::max(note.id, one.id);
    ++note.id;
    after.push_back(std::move(note));
    change(ref, u"add a note"_s, std::move(after));
}

void NotesController::changeText(const RunRef& ref, std::int64_t id, const QString& text)
{
    Notes after = own(ref);
    for (Note& one : after)
        if (one.id == id) one.text = text.toStdString();
    change(ref, u"change a note"_s, std::move(after));
}

void NotesController::change(const RunRef& ref, const QString& words, Notes after)
{
    Notes before = own(ref);
    if (before == after) return;
    m_undo.push(new Change(*this, ref, std::move(before), std::move(after), words));
}

void NotesController::apply(const RunRef& ref, const Notes& own)
{
    Notes all = own;
    for (const Note& note : notes(ref))
        if (note.fromRun != 0 && std::none_of(own.begin(), own.end(), [&](const Note& one) {
                return one.op == note.op && one.rank == note.rank && one.step == note.step &&
                       one.occurrence == note.occurrence && one.anchor == note.anchor;
            }))
            all.push_back(note);
    const auto found = std::find_if(m_known.begin(), m_known.end(), [&](const auto& one) { return one.first == ref; });
    if (found == m_known.end())
        m_known.emplace_back(ref, std::move(all));
    else
        found->second = std::move(all);
    refresh();
    m_workspace.refreshActions();
    if (m_workspace.library()->isSimulated(ref.file)) return;
    ++m_writing;
    inBackground(
        this,
        [ref, own]() -> Result<void> {
            STAGEWRIGHT_TRY(auto file, RunFile::open(ref.file.toStdString(), OpenMode::Write));
            return (file)->setNotes(ref.id, own);
        },
        [this, file = ref.file](Result<void> done) {
            --m_writing;
            if (!done) m_workspace.banner()->showError(u"the note is kept in this window only"_s, done.error());
            emit m_workspace.fileWritten(file);
        },
        &m_pool);
}

void NotesController::forget(const RunRef& ref)
{
    if (m_workspace.library()->isSimulated(ref.file)) return;
    std::erase_if(m_known, [&](const auto& one) { return one.first == ref; });
}

void NotesController::load(const RunRef& ref)
{
    if (!ref.valid() || m_workspace.library()->isSimulated(ref.file)) return;
    if (std::any_of(m_known.begin(), m_known.end(), [&](const auto& one) { return one.first == ref; })) return;
    ++m_reading;
    inBackground(
        this,
        [ref]() -> Result<Notes> {
            STAGEWRIGHT_TRY(auto file, RunFile::open(ref.file.toStdString(), OpenMode::Read));
            return (file)->notes(ref.id, true);
        },
        [this, ref](Result<Notes> read) {
            --m_reading;
            if (!read) return; // reading the run reports the fault
            if (std::any_of(m_known.begin(), m_known.end(), [&](const auto& one) { return one.first == ref; })) return;
            m_known.emplace_back(ref, std::move(*read));
            refresh();
            m_workspace.refreshActions();
        },
        &m_pool);
}

void NotesController::shownChanged()
{
    answered(false);
    m_passing.reset();
    m_chosen = -1;
    for (int panel = 0; panel < 2; ++panel) load(refOfPanel(panel));
    refresh();
}

void NotesController::refresh()
{
    const bool edit = m_workspace.shown().mode() == Shown::Mode::Edit;
    std::vector<NoteFlag> flags;
    const auto& panels = m_workspace.views().timeline->panels();
    for (int p = 0; p < static_cast<int>(panels.size()) && p < 2 && !edit; ++p) {
        const TimelinePanel& panel = *panels[static_cast<std::size_t>(p)];
        const auto add = [&](const Note& note, int number, bool passing) {
            NoteFlag flag;
            flag.number = number;
            flag.panel = p;
            flag.text = shownName(note.text);
            flag.passing = passing;
            flag.carried = note.fromRun != 0;
            flag.chosen = p == 0 && !passing && number == m_chosen;
            if (note.anchor == NoteAnchor::Op) {
                flag.span = spanOfNote(*panel.timeline, note);
                if (flag.span == noSpan || (panel.step >= 0 && note.step != panel.step)) return;
            } else {
                if (panel.step >= 0 && note.step != panel.step) return;
                const Nanos shift = panel.step >= 0 ? 0 : beginOfStep(*panel.timeline, note.step) - panel.origin;
                flag.range = {note.begin + shift, note.end + shift};
                flag.firstRank = note.rank;
                flag.lastRank = note.lastRank;
            }
            flags.push_back(std::move(flag));
        };
        int number = 0;
        for (const Note& note : notes(refOfPanel(p))) add(note, number++ + p * flagsOfPanel, false);
        if (m_passing && m_passingPanel == p) add(*m_passing, -2, true);
    }
    m_flags->set(std::move(flags));
    m_panel->setNotes(m_workspace.shown().mode() == Shown::Mode::Empty ? Notes{} : notes(m_workspace.shown().ref()),
                      panels.empty() ? 1 : panels.front()->units.time);
    if (m_chosen >= m_panel->model()->rowCount()) m_chosen = -1;
}

void NotesController::choose(int row, bool show)
{
    const auto& all = notes(m_workspace.shown().ref());
    m_chosen = row >= 0 && row < static_cast<int>(all.size()) ? row : -1;
    refresh();
    m_workspace.refreshActions();
    const auto view = m_workspace.shown().view();
    if (m_chosen < 0 || !show || !view) return;
    const Note note = all[static_cast<std::size_t>(m_chosen)];
    if (view->panel->step >= 0 && note.step != view->panel->step) {
        if (m_workspace.shown().mode() == Shown::Mode::Run && note.step < view->stepCount)
            m_workspace.shown().showRun(view->ref, note.step);
        return;
    }
    if (note.anchor == NoteAnchor::Op) {
        const SpanId span = spanOfNote(*view->run->timeline, note);
        if (span == noSpan) {
            m_workspace.room().tell(u"This run has no %1"_s.arg(QString::fromStdString(placeText(note))), 5000);
            return;
        }
        m_workspace.shown().selectOp(span);
    } else {
        const TimeRange visible = m_workspace.viewState()->visible();
        if (note.begin < visible.begin || note.end > visible.end) m_workspace.viewState()->fit({note.begin, note.end});
        if (note.rank >= 0) m_workspace.views().timeline->selection().showRank(0, note.rank);
    }
}

// A click on a flag chooses its note.
bool NotesController::eventFilter(QObject* watched, QEvent* event)
{
    if (m_field && watched == m_field && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        answered(false);
        return true;
    }
    return QObject::eventFilter(watched, event);
}

std::vector<ShowEntry> NotesController::showTable()
{
    return {
        {"notes", 120, [](const ShowRequest& request) { request.workspace.actions()["notesList"]->trigger(); }},
    };
}

FeatureEntry notesFeature() { return featureEntry<NotesController>(); }

} // namespace stagewright
