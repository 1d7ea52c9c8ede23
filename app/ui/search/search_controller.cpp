#include "app/ui/search/search_controller.h"

#include <algorithm>

#include <QDockWidget>
#include <QTableView>

#include "app/ui/workspace/bottom_dock.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/panel/op_query.h"
#include "widgets/search/find_field.h"
#include "widgets/search/search_overlay.h"
#include "widgets/search/search_panel.h"
#include "widgets/timeline/timeline_view.h"

#include <QKeyEvent>

namespace stagewright {
namespace {

constexpr std::size_t atOnce = 200'000; // spans searched on the GUI thread, in less than 10 ms

// Matching ops, and notes with matching text; by start, then rank.
std::vector<SearchHit> searchRun(const TimelinePanel& panel, const OpQuery& query, const std::vector<Note>& notes,
                                 const std::stop_token& stop)
{
    std::vector<SearchHit> hits;
    for (const SpanId span : findSpans(*panel.timeline, query, panel.step, stop)) hits.push_back({span, -1});
    for (std::size_t i = 0; i < notes.size() && !query.words.isEmpty(); ++i) {
        const QString text = QString::fromStdString(notes[i].text);
        if (!std::all_of(query.words.begin(), query.words.end(),
                         [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); }))
            continue;
        if (panel.step >= 0 && notes[i].step != panel.step) continue;
        const SpanId span = spanOfNote(*panel.timeline, notes[i]);
        if (notes[i].anchor == NoteAnchor::Op && span == noSpan) continue;
        if (span != noSpan) std::erase_if(hits, [&](const SearchHit& hit) { return hit.span == span && hit.note < 0; });
        hits.push_back({span, static_cast<int>(i)});
    }
    const auto begin = [&](const SearchHit& hit) {
        return hit.span != noSpan ? panel.timeline->spans()[hit.span].start
                                  : panel.origin + notes[static_cast<std::size_t>(hit.note)].begin;
    };
    std::stable_sort(hits.begin(), hits.end(),
                     [&](const SearchHit& a, const SearchHit& b) { return begin(a) < begin(b); });
    return hits;
}

} // namespace

std::vector<ActionEntry> SearchController::actionTable()
{
    return {
        item("find", ActionGroup::EditFind, u"&Find op"_s, "Ctrl+F|/", u"rank:2 mb:5 B"_s),
        item("findNext", ActionGroup::EditFind, u"Find &next"_s, "F3|Ctrl+G", u"Enter in the search field"_s),
        item("findPrevious", ActionGroup::EditFind, u"Find pre&vious"_s, "Shift+F3|Ctrl+Shift+G",
             u"Shift+Enter in the search field"_s),
        item("searchList", ActionGroup::ViewLists, u"Search &results"_s, "Ctrl+Shift+F",
             u"The search results in a list"_s, {.checkable = true}),
    };
}

SearchController::SearchController(Workspace& workspace)
    : Feature(workspace), m_overlay(new SearchOverlay(this)), m_panel(new SearchPanel),
      m_dock(makeBottomDock(workspace, u"searchDock"_s, u"Search results"_s, m_panel, workspace.actions()["searchList"],
                            [this] { m_panel->table()->setFocus(); })),
      m_searching(workspace.jobs())
{
    workspace.views().timeline->add(m_overlay);
    connect(m_panel, &SearchPanel::chosen, this, &SearchController::go);
    connect(&workspace.shown(), &Shown::runShown, this, &SearchController::clear);
    connect(&workspace.shown(), &Shown::modeChanged, this, &SearchController::clear);
    connectField();
}

const std::vector<SearchHit>& SearchController::hits() const
{
    static const std::vector<SearchHit> none;
    return m_hits ? *m_hits : none;
}

void SearchController::connectField()
{
    FindField* field = m_workspace.views().find;
    field->installEventFilter(this);
    Actions& actions = m_workspace.actions();
    connect(actions["find"], &QAction::triggered, field, [field] {
        field->setFocus();
        field->selectAll();
    });
    connect(actions["findNext"], &QAction::triggered, this, [this, field] { find(field->text()); });
    connect(actions["findPrevious"], &QAction::triggered, this, [this, field] { find(field->text(), true); });
    connect(&m_workspace, &Workspace::actionsRefreshed, this, [this, field] {
        const bool shown = m_workspace.shown().mode() != Shown::Mode::Empty;
        for (const ActionId id : {"find", "findNext", "findPrevious"}) m_workspace.actions()[id]->setEnabled(shown);
        field->setEnabled(shown);
    });
}

bool SearchController::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            find(m_workspace.views().find->text(), key->modifiers().testFlag(Qt::ShiftModifier));
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            m_workspace.views().timeline->setFocus();
            return true;
        }
    }
    // Single-letter keys of actions must reach a focused text field.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (!key->modifiers().testFlag(Qt::ControlModifier) && !key->modifiers().testFlag(Qt::AltModifier)) {
            event->accept();
            return true;
        }
    }
    return Feature::eventFilter(watched, event);
}

FeatureParts SearchController::parts() { return {.docks = {{m_dock}}}; }

void SearchController::mark(std::shared_ptr<const std::vector<SpanId>> spans, std::vector<Nanos> moments)
{
    m_overlay->set({0, std::move(spans), noSpan, std::move(moments)});
}

bool SearchController::escape()
{
    if (m_overlay->empty()) return false;
    clear();
    m_overlay->set({}); // those of a query
    return true;
}

void SearchController::clear()
{
    m_searching.drop();
    m_panel->setSearching(false);
    m_query.clear();
    m_at = -1;
    m_workspace.views().find->setAnswer({}, true);
    m_workspace.views().find->setFault({});
    if (!m_hits) return;
    m_hits.reset();
    m_marks.reset();
    m_searchedPanel.reset();
    m_panel->setHits(nullptr, nullptr, {}, {});
    m_overlay->set({});
}

void SearchController::find(const QString& text, bool backward)
{
    if (m_workspace.shown().mode() == Shown::Mode::Empty) return;
    const OpQuery query = parseOpQuery(text);
    if (!query.fault.isEmpty()) {
        m_workspace.views().find->setFault(query.fault);
        return;
    }
    if (query.empty()) {
        clear();
        return;
    }
    const SpanRef selected = m_workspace.viewState()->selected();
    const int panelIndex = m_workspace.shown().mode() == Shown::Mode::Compare && selected.panel == 1 ? 1 : 0;
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty()) return;
    const auto panel = panels[static_cast<std::size_t>(panelIndex)];
    if (m_hits && text == m_query && panel == m_searchedPanel) {
        walk(backward);
        return;
    }
    m_panelIndex = panelIndex;
    m_searchedPanel = panel;
    const auto view = panelIndex == 1 ? m_workspace.shown().other() : m_workspace.shown().view();
    m_searchedNotes = view && m_workspace.shown().mode() != Shown::Mode::Edit
                          ? m_workspace.feature<NoteKeeping>()->notes(view->ref)
                          : std::vector<Note>{};
    m_searching.drop();
    if (panel->timeline->spans().size() <= atOnce) {
        searched(text, backward,
                 std::make_shared<const std::vector<SearchHit>>(searchRun(*panel, query, m_searchedNotes, {})));
        return;
    }
    m_panel->setSearching(true);
    m_workspace.views().find->setAnswer(u"searching…"_s, true);
    m_searching.start(
        [panel, query, notes = m_searchedNotes](const std::stop_token& stop) {
            return std::make_shared<const std::vector<SearchHit>>(searchRun(*panel, query, notes, stop));
        },
        [this, text, backward](std::shared_ptr<const std::vector<SearchHit>> hits) {
            searched(text, backward, std::move(hits));
        });
}

void SearchController::searched(const QString& text, bool backward, std::shared_ptr<const std::vector<SearchHit>> hits)
{
    m_panel->setSearching(false);
    m_query = text;
    m_hits = std::move(hits);
    m_at = -1;
    auto marks = std::make_shared<std::vector<SpanId>>();
    for (const SearchHit& hit : *m_hits)
        if (hit.span != noSpan) marks->push_back(hit.span);
    std::sort(marks->begin(), marks->end());
    m_marks = std::move(marks);
    m_panel->setHits(m_searchedPanel, m_hits, m_searchedNotes, text);
    if (m_hits->empty() && ofPart())
        return m_workspace.feature<StepReading>()->findOn(m_query, parseOpQuery(m_query), backward);
    if (m_hits->empty()) {
        m_overlay->set({});
        m_workspace.views().find->setAnswer(u"no match"_s, false);
        return;
    }
    walk(backward);
}

void SearchController::walk(bool backward)
{
    const auto& all = *m_hits;
    const int count = static_cast<int>(all.size());
    if (count == 0) return;
    // from where the selection is, else from the last match that was shown
    const SpanRef selected = m_workspace.viewState()->selected();
    int at = m_at;
    if (selected.valid() && selected.panel == m_panelIndex &&
        !(at >= 0 && all[static_cast<std::size_t>(at)].span == selected.span)) {
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const SearchHit& hit) { return hit.span == selected.span; });
        if (found != all.end()) at = static_cast<int>(found - all.begin());
    }
    // A run may be read in parts: the next step's matches then follow on this one's.
    if (ofPart() && at == (backward ? 0 : count - 1))
        return m_workspace.feature<StepReading>()->findOn(m_query, parseOpQuery(m_query), backward);
    go(at < 0 ? (backward ? count - 1 : 0) : (at + (backward ? count - 1 : 1)) % count);
}

bool SearchController::ofPart() const { return m_searchedPanel && m_searchedPanel->isPart() && m_panelIndex == 0; }

void SearchController::restart(bool backward)
{
    if (m_hits) go(backward ? static_cast<int>(m_hits->size()) - 1 : 0);
}

void SearchController::go(int row)
{
    if (!m_hits || row < 0 || row >= static_cast<int>(m_hits->size())) return;
    m_at = row;
    const SearchHit& hit = (*m_hits)[static_cast<std::size_t>(row)];
    m_panel->setCurrentRow(row);
    if (hit.span != noSpan) {
        const SpanRef ref{m_panelIndex, hit.span};
        m_workspace.viewState()->select(ref);
        m_workspace.views().timeline->selection().show(ref);
    } else {
        const Note& note = m_searchedNotes[static_cast<std::size_t>(hit.note)];
        m_workspace.viewState()->fit({note.begin, note.end});
    }
    m_overlay->set({m_panelIndex, m_marks, hit.span, {}});
    m_workspace.views().find->setAnswer(u"%L1 of %L2"_s.arg(row + 1).arg(m_hits->size()), true);
}

std::vector<ShowEntry> SearchController::showTable()
{
    return {
        {"search", 130, [](const ShowRequest& request) { request.workspace.actions()["searchList"]->trigger(); }},
    };
}

FeatureEntry searchFeature() { return featureEntry<SearchController>(); }

} // namespace stagewright
