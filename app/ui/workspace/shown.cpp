#include "app/ui/workspace/shown.h"

#include <algorithm>
#include <utility>

#include <QFileInfo>
#include <QSplitter>
#include <QTimer>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/base/step_number.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

namespace {

// For the panel at the side, which prints times of ops from the start of the figures: of an excerpt from that of its
// step, as cards do. Its figures are then those of the range (RangeController sets them).
std::shared_ptr<const RunReport> figuresBeside(const RunView& view)
{
    if (!view.excerpt || !view.panel->hasOps()) return view.figures;
    auto figures = std::make_shared<RunReport>(*view.figures);
    for (const PanelStep& step : view.panel->steps)
        if (step.step == view.step)
            figures->bubbles.windowBegin = std::min(figures->bubbles.windowBegin, step.begin + view.panel->origin);
    return figures;
}

} // namespace

Shown::Shown(Workspace& workspace) : m_workspace(workspace) {}

quint64 Shown::request(bool following)
{
    if (!following) emit asked();
    m_pending = true;
    ++m_request;
    m_workspace.refreshCaptions();
    return m_request;
}

bool Shown::answered(quint64 request)
{
    if (request != m_request) return false;
    m_pending = false;
    return true;
}

bool Shown::arrived(quint64 request, const Result<std::shared_ptr<const RunView>>& view)
{
    if (!answered(request)) return false;
    // else it was closed while it was read
    const bool listed = view && m_workspace.runs()->files().contains((*view)->ref.file);
    if (listed) return true;
    if (!view) m_workspace.banner()->showError(QString(), view.error());
    if (view && !m_view) setMode(Mode::Empty);
    m_workspace.refreshCaptions();
    return false;
}

void Shown::drop()
{
    ++m_request;
    m_pending = false;
}

void Shown::forget()
{
    m_view.reset();
    m_other.reset();
}

void Shown::showRun(const RunRef& ref, int step, std::function<void()> then)
{
    if (!ref.valid()) return;
    m_workspace.library()->cancelEveryStep();
    m_workspace.library()->request(
        ref, step, [this, number = request(), then = std::move(then)](Result<std::shared_ptr<const RunView>> view) {
            if (!arrived(number, view)) return;
            const bool same = m_mode == Mode::Run && m_view && m_view->ref == (*view)->ref &&
                              m_view->step == (*view)->step && !m_view->steps;
            present(*view, !same);
            if (then) then();
        });
}

void Shown::showSteps(const RunRef& ref, const ShownSteps& steps)
{
    if (!ref.valid()) return;
    if (m_workspace.library()->isLarge(ref)) { // all of them, zoomed to the requested ones
        showEveryStep(ref, -1, [this, steps] { m_workspace.feature<StepReading>()->fit(steps); });
        return;
    }
    m_workspace.library()->requestSteps(ref, steps,
                                        [this, number = request()](Result<std::shared_ptr<const RunView>> view) {
                                            if (arrived(number, view)) present(*view, true);
                                        });
}

void Shown::showEveryStep(const RunRef& ref, int detail, std::function<void()> then)
{
    if (!ref.valid()) return;
    const quint64 number = request();
    auto show = [this](const std::shared_ptr<const RunView>& view) {
        if (!m_workspace.runs()->files().contains(view->ref.file)) { // closed while it was read
            if (!m_view) setMode(Mode::Empty);
            m_workspace.refreshCaptions();
            return false;
        }
        const bool same = m_mode == Mode::Run && m_view && m_view->ref == view->ref && m_view->panel->isPart();
        if (same) { // ids are those of another step
            m_workspace.viewState()->setHovered({});
            m_workspace.viewState()->select({});
        }
        present(view, !same);
        return true;
    };
    m_workspace.library()->requestEveryStep(
        ref, detail,
        [this, number, show](const std::shared_ptr<const RunView>& overview) {
            if (isLatest(number)) show(overview);
        },
        [this, number, ref, detail, show, then = std::move(then)](Result<std::shared_ptr<const RunView>> view) {
            if (!answered(number)) return;
            if (!view && view.error().code == ErrorCode::Cancelled) {
                showRun(ref, detail); // a step instead of an overview that would never become exact
                return;
            }
            if (!view) {
                m_workspace.banner()->showError(QString(), view.error());
                if (m_view && m_view->panel->overview) showRun(ref, detail);
                m_workspace.refreshCaptions();
                return;
            }
            if (show(*view) && then) then();
        });
}

void Shown::showAgain()
{
    if (m_mode != Mode::Run || !m_view || m_view->partial) return;
    if (m_view->panel->isPart() || m_view->excerpt) {
        showEveryStep(m_view->ref, m_view->step);
        return;
    }
    const auto answer = [this, number = request(true)](Result<std::shared_ptr<const RunView>> view) {
        if (answered(number) && view) present(*view, false);
    };
    if (m_view->steps)
        m_workspace.library()->requestSteps(m_view->ref, *m_view->steps, answer);
    else
        m_workspace.library()->request(m_view->ref, m_view->step, answer);
}

void Shown::present(const std::shared_ptr<const RunView>& view, bool fit)
{
    const bool first = m_mode == Mode::Empty;
    ViewState& state = *m_workspace.viewState();
    const Views& views = m_workspace.views();
    emit replacing();
    m_view = view;
    m_other.reset();
    m_comparison.reset();
    if (fit) state.clearSelection();
    views.timeline->setPanels({view->panel});
    views.memory->setPanels({view->panel});
    views.legend->setPanels({view->panel});
    applyBudget();
    views.side->setRun(view->run, figuresBeside(*view));
    setMode(Mode::Run);
    emit presented();
    views.runs->setCurrent(view->ref);
    if (fit) {
        splitViews();
        state.fitAll();
        state.clearHistory();
    }
    tellDamage({view.get()});
    if (view->partial && view->panel->isPart() && m_workspace.library()->vastRun(view->ref) && !m_damageTold)
        m_workspace.banner()->showNote(u"A step of this run has more than %L1 spans: zoom in or click an op for "
                                       "causes, arrows, memory and figures of the part in view. "
                                       "stagewright report computes those of whole steps."_s.arg(largeLimits().step));
    if (!m_damageTold)
        if (const QString remark = m_workspace.library()->takeRemark(view->ref.file); !remark.isEmpty())
            m_workspace.banner()->showNote(remark);
    if (m_selectLater != noSpan) selectOp(std::exchange(m_selectLater, noSpan));
    refreshSelection();
    if (first) views.timeline->setFocus();
    ready();
}

void Shown::presentPart(const std::shared_ptr<const RunView>& view)
{
    ViewState& state = *m_workspace.viewState();
    const Timeline& before = *m_view->run->timeline;
    struct Chosen {
        int rank;
        Lane lane;
        std::string track;
        Span span;
    };
    std::optional<Chosen> chosen;
    if (const SpanRef selected = state.selected();
        selected.valid() && selected.panel == 0 && selected.span < before.spans().size()) {
        const Track& track = before.trackOf(selected.span);
        chosen = Chosen{track.rank, track.lane, track.name, before.spans()[selected.span]};
    }
    state.setHovered({}); // ids are those of another part
    state.select({});
    present(view, false);
    if (view->excerpt && !m_damageTold) m_workspace.banner()->clear(); // what to do was said and done
    if (!chosen) return;
    const Timeline& after = *view->run->timeline;
    for (const Track& track : after.tracks()) {
        if (track.rank != chosen->rank || track.lane != chosen->lane || track.name != chosen->track) continue;
        const auto spans = after.spansOf(track);
        const auto found = std::find_if(spans.begin(), spans.end(), [&](const Span& span) {
            return span.start == chosen->span.start && span.op == chosen->span.op && span.end == chosen->span.end;
        });
        if (found == spans.end()) continue;
        state.select({0, track.begin + static_cast<SpanId>(found - spans.begin())});
        return;
    }
}

void Shown::presentCompared(const std::shared_ptr<const RunView>& a, const std::shared_ptr<const RunView>& b,
                            const std::shared_ptr<const Comparison>& comparison)
{
    m_view = a;
    m_other = b;
    m_comparison = comparison;
}

void Shown::presentEdited(const std::shared_ptr<const RunView>& source)
{
    drop();
    m_view = source;
    m_other.reset();
    m_workspace.viewState()->clearSelection();
    setMode(Mode::Edit);
    m_workspace.views().runs->setCurrent(source->ref);
}

void Shown::setMode(Mode mode)
{
    const Views& views = m_workspace.views();
    m_mode = mode;
    if (mode != Mode::Run) {
        m_tool = Tool::None;
        m_toolText.clear();
        views.timeline->setRowSizes({0, views.timeline->rowSizes().scale, 0});
    }
    m_workspace.room().showViews(mode != Mode::Empty);
    emit modeChanging();
    views.memory->setVisible(m_workspace.actions()["memory"]->isChecked());
    views.timeline->setTitle(mode == Mode::Compare ? u"Shared time axis"_s
                             : mode == Mode::Edit  ? u"Edit"_s
                                                   : u"Timeline"_s);
    if (mode != Mode::Compare) m_workspace.runs()->setMarks({});
    if (mode == Mode::Empty) {
        views.timeline->setPanels({});
        views.memory->setPanels({});
        views.legend->setPanels({});
        views.side->setRun(nullptr, nullptr);
    }
    m_workspace.refreshActions();
    m_workspace.refreshCaptions();
    emit modeChanged();
    m_workspace.banner()->review();
}

void Shown::ready()
{
    m_workspace.refreshActions();
    m_workspace.refreshCaptions();
    emit runShown();
    m_workspace.banner()->review();
}

void Shown::splitViews()
{
    QSplitter* rows = m_workspace.room().rows();
    const Views& views = m_workspace.views();
    const int height = rows->height();
    if (height <= 0) return;
    const int most =
        !views.memory->isVisibleTo(rows) ? height : height * (views.timeline->panels().size() > 1 ? 72 : 62) / 100;
    const int wanted = views.memory->isVisibleTo(rows) && !views.memory->known()
                           ? height - views.memory->minimumSizeHint().height()
                           : std::min(views.timeline->sizeHint().height(), most);
    rows->setSizes({wanted, height - wanted});
}

void Shown::tellDamage(std::initializer_list<const RunView*> views)
{
    QStringList damaged;
    for (const RunView* view : views) {
        const auto blocks = view->run->info.damagedBlocks;
        if (blocks > 0)
            damaged << (blocks == 1 ? u"one damaged block of %1 was skipped"_s.arg(runTitle(view->run->info))
                                    : u"%2 damaged blocks of %1 were skipped"_s.arg(runTitle(view->run->info),
                                                                                    QString::number(blocks)));
    }
    Banner* banner = m_workspace.banner();
    if (damaged.isEmpty()) {
        if (m_damageTold) banner->clear();
        m_damageTold = false;
        return;
    }
    banner->showError(damaged.join(u"; "_s),
                      u"pictures and figures cover only what could be read; use a backup of the file"_s);
    m_damageTold = true;
}

void Shown::refreshTimes()
{
    ViewState& state = *m_workspace.viewState();
    SidePanel* side = m_workspace.views().side;
    state.notifyUnits();
    if (m_mode == Mode::Run && m_view) {
        const SpanRef selected = state.selected();
        side->setRun(m_view->run, figuresBeside(*m_view));
        applyBudget();
        emit timesRefreshed();
        side->setSelection(selected.valid() && selected.panel == 0 && !showsToolPicture() ? selected.span : noSpan);
        emit state.selectionChanged(); // the range, if one is selected
    } else {
        emit timesRefreshed();
    }
    m_workspace.refreshCaptions();
}

void Shown::refreshSelection()
{
    const SpanRef selected = m_workspace.viewState()->selected();
    if (m_mode == Mode::Run && !showsToolPicture() && (!selected.valid() || selected.panel == 0))
        m_workspace.views().side->setSelection(selected.valid() ? selected.span : noSpan);
    emit selectionShown();
    m_workspace.refreshActions();
}

void Shown::setTool(Tool tool)
{
    m_tool = m_mode == Mode::Run ? tool : Tool::None;
    emit toolSet();
}

void Shown::chooseOp(SpanId span)
{
    if (m_mode != Mode::Run || !m_view || span >= m_view->run->timeline->spans().size()) return;
    const int step = m_view->run->timeline->spans()[span].step;
    if (step != outsideSteps && step != m_view->step) {
        m_selectLater = span;
        showRun(m_view->ref, step);
        return;
    }
    selectOp(span);
}

bool Shown::selectOp(SpanId span)
{
    if (m_mode == Mode::Edit || m_mode == Mode::Empty || !m_view) return false;
    if (showsToolPicture()) setTool(Tool::None);
    TimelineView* timeline = m_workspace.views().timeline;
    const auto& panels = timeline->panels();
    if (panels.empty() || span >= panels.front()->timeline->spans().size()) return false;
    m_workspace.viewState()->select({0, span});
    timeline->selection().show({0, span});
    return true;
}

Units Shown::units() const { return m_view ? m_view->panel->units : Units{}; }

std::optional<Bytes> Shown::budget() const { return m_workspace.library()->budget().of(units()); }

void Shown::applyBudget()
{
    m_workspace.views().memory->setBudget(budget());
    m_workspace.views().side->setBudget(budget());
}

Shown::Captions Shown::captions() const
{
    if (const auto own = m_captions.find(m_mode); own != m_captions.end()) return own->second();
    if (m_mode != Mode::Run || !m_view) return {};
    Captions captions{runTitle(m_view->run->info), {}, provenanceText(*m_view->run)};
    if (!m_workspace.library()->isSimulated(m_view->ref.file))
        captions.title = QFileInfo(m_view->ref.file).fileName() + u": "_s + captions.title;
    const int steps = m_view->stepCount;
    if (m_view->excerpt) {
        const Nanos from = m_view->excerpt->begin - m_view->panel->origin,
                    to = m_view->excerpt->end - m_view->panel->origin;
        captions.status = u", details and figures of %1 – %2 in step %3 of %4"_s
                              .arg(durationText(from, units()), durationText(to, units()))
                              .arg(m_view->step + 1)
                              .arg(steps);
    } else if (m_view->steps && m_view->partial && m_workspace.library()->vastRun(m_view->ref))
        captions.status =
            steps > 1 ? u", all %1 steps; zoom in for details"_s.arg(steps) : u", one step; zoom in for details"_s;
    else if (m_view->steps && m_view->partial)
        captions.status = u", all %1 steps"_s.arg(steps);
    else if (m_view->steps)
        captions.status = u", steps %1 to %2 of %3; figures of step %4"_s.arg(m_view->steps->first + 1)
                              .arg(m_view->steps->last + 1)
                              .arg(steps)
                              .arg(m_view->step + 1);
    else
        captions.status = steps > 1 ? u", step %1 of %2"_s.arg(m_view->step + 1).arg(steps) : u", one step"_s;
    if (m_view->step < m_view->run->info.warmupSteps) captions.status += u" (warm-up)"_s;
    return captions;
}

// Whether the content shown after all pending requests is still on screen: the run and its step, the comparison, the
// page.
std::function<bool()> Shown::whileShown()
{
    struct Place {
        Mode mode;
        QString page;
        RunRef shown, other;
        bool operator==(const Place&) const = default;
    };
    const auto place = [this] {
        return Place{m_mode, m_workspace.room().pageTitle(), ref(), m_other ? m_other->ref : RunRef{}};
    };
    const auto coming = [this] { return m_pending || m_filesAwaited || m_workspace.library()->busy(); };
    auto held = std::make_shared<std::optional<Place>>();
    auto* settles = new QTimer(this); // its subject is what the sender shows next
    connect(settles, &QTimer::timeout, this, [held, place, coming, settles] {
        if (coming()) return;
        *held = place();
        settles->deleteLater();
    });
    settles->start(0);
    return [this, held, place] { return m_pending || !*held || **held == place(); };
}

} // namespace stagewright
