#include "app/ui/playback/playback_controller.h"

#include <utility>

#include <QVBoxLayout>

#include "app/ui/playback/playback_bar.h"
#include "app/ui/playback/playback_overlay.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/preferences/preferences.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> PlaybackController::actionTable()
{
    return {
        item("play", ActionGroup::LearnPlay, u"Pla&y"_s, "P",
             u"Half a second per unit; slower when something happens for the first time, faster where a "
             "pattern repeats"_s,
             {.checkable = true}),
        item("nextBeat", ActionGroup::LearnPlay, u"&Next beat"_s, "Space",
             u"Ops that start together are one beat; the first press goes to the first beat"_s),
        item("previousBeat", ActionGroup::LearnPlay, u"Pre&vious beat"_s, "Shift+Space"),
        item("nextMoment", ActionGroup::LearnPlay, u"Next &interesting beat"_s, "N",
             u"The next first occurrence, gap of half an op, peak or change of pattern"_s),
        item("pace1", ActionGroup::LearnPlay, u"Pace × &1"_s, "1", {}, {.line = true, .checkable = true}),
        item("pace2", ActionGroup::LearnPlay, u"Pace × &2"_s, "2", {}, {.checkable = true}),
        item("pace3", ActionGroup::LearnPlay, u"Pace × &4"_s, "3", {}, {.checkable = true}),
        item("pace4", ActionGroup::LearnPlay, u"Pace × &8"_s, "4", {}, {.checkable = true}),
        item("reducedMotion", ActionGroup::LearnPlay, u"&Reduced motion"_s, {},
             u"Playback jumps from beat to beat, without moving messages"_s, {.line = true, .checkable = true}),
    };
}

PlaybackController::PlaybackController(Workspace& workspace)
    : Feature(workspace), m_player(new Player(this)), m_making(workspace.jobs())
{
    m_overlay = new PlaybackOverlay(workspace.views().timeline, m_player);
    workspace.views().timeline->add(m_overlay);
    m_memory =
        new MemoryPlayback(workspace.views().memory, workspace.views().timeline, workspace.viewState(), m_player);
    m_bar = new PlaybackBar(m_player);
    workspace.room().workArea()->insertWidget(workspace.room().workArea()->count() - 1, m_bar); // over the legend

    Actions& actions = workspace.actions();
    auto on = [&](ActionId id, auto slot) { connect(actions[id], &QAction::triggered, this, slot); };
    on("play", [this] {
        withBeats([this] { m_player->play(!m_player->playing()); });
        refreshActions(); // checked while it plays, not while beats are made
    });
    on("nextBeat", [this] { withBeats([this] { m_player->nextBeat(); }); });
    on("previousBeat", [this] { m_player->previousBeat(); });
    on("nextMoment", [this] { m_player->nextInteresting(); });
    const ActionId paces[] = {"pace1", "pace2", "pace3", "pace4"};
    for (int speed = 1; speed <= 4; ++speed) on(paces[speed - 1], [this, speed] { m_player->setSpeed(speed); });
    // A setting for all windows: no animations.
    auto reduce = [](bool less) {
        Preferences preferences = PreferenceStore::instance().value();
        preferences.reducedMotion = less;
        PreferenceStore::instance().set(preferences);
    };
    on("reducedMotion", reduce);
    connect(m_bar, &PlaybackBar::reducedMotionChosen, this, reduce);
    const auto follow = [this] {
        m_player->setReducedMotion(PreferenceStore::instance().value().reducedMotion);
        refreshActions();
    };
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, follow);
    m_player->setReducedMotion(PreferenceStore::instance().value().reducedMotion);

    connect(m_player, &Player::stateChanged, this, &PlaybackController::refreshActions);
    connect(m_player, &Player::beatChanged, this, &PlaybackController::tell);
    connect(workspace.views().timeline, &TimelineView::statusChanged, this, &PlaybackController::picturesChanged);
    connect(&workspace.shown(), &Shown::modeChanged, this, [this, mode = workspace.shown().mode()]() mutable {
        if (std::exchange(mode, m_workspace.shown().mode()) != mode) m_player->end();
        refreshActions();
    });
    // Moving from op to op moves the cursor: along the rank, a microbatch or dependencies. An edit selects what it
    // moved and keeps the cursor.
    connect(workspace.viewState(), &ViewState::selectionChanged, this, [this] {
        const SpanRef selected = m_workspace.viewState()->selected();
        const auto& panels = m_workspace.views().timeline->panels();
        if (m_workspace.shown().mode() == Shown::Mode::Edit || !m_player->active() || m_player->playing() ||
            !selected.valid() || selected.panel >= static_cast<int>(panels.size()))
            return;
        const TimelinePanel& panel = *panels[static_cast<std::size_t>(selected.panel)];
        if (selected.span < panel.timeline->spans().size())
            m_player->seek(panel.toAxis(panel.timeline->spans()[selected.span].start));
    });
    auto theme = [this] {
        m_memory->setTheme(m_workspace.theme());
        m_bar->setTheme(m_workspace.theme());
    };
    connect(&workspace, &Workspace::themeChanged, this, theme);
    theme();
    refreshActions();
}

void PlaybackController::picturesChanged()
{
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels == m_panels) return;
    // The same order, edited, keeps the cursor; something else does not.
    const bool sameThing =
        m_workspace.shown().mode() == Shown::Mode::Edit && panels.size() == 1 && m_panels.size() == 1;
    m_panels = panels;
    m_making.drop();
    if (!sameThing) m_player->end();
    if (m_player->active() || m_then)
        makeBeatsAgain();
    else
        m_player->setBeats(nullptr);
}

void PlaybackController::withBeats(std::function<void()> then)
{
    picturesChanged();
    if (m_player->beats()) {
        then();
        return;
    }
    m_then = std::move(then);
    if (!m_making.running()) makeBeatsAgain();
}

void PlaybackController::makeBeatsAgain()
{
    if (m_panels.empty()) {
        m_then = nullptr;
        m_player->setBeats(nullptr);
        return;
    }
    m_making.start([panels = m_panels, cap = m_workspace.library()->budget().of(
                                           m_panels.front()->units)] { return makeBeats(panels, cap); },
                   [this](const std::shared_ptr<const Beats>& beats) {
                       m_bar->setUnits(m_panels.front()->units);
                       m_player->setBeats(beats);
                       refreshActions();
                       if (const auto then = std::exchange(m_then, nullptr); then && m_player->beats()) then();
                   });
}

void PlaybackController::refreshActions()
{
    Actions& actions = m_workspace.actions();
    const bool shown = m_workspace.shown().mode() != Shown::Mode::Empty, active = m_player->active();
    for (const ActionId id : {"play", "nextBeat"}) actions[id]->setEnabled(shown);
    for (const ActionId id : {"previousBeat", "nextMoment", "pace1", "pace2", "pace3", "pace4"})
        actions[id]->setEnabled(active);
    actions["play"]->setChecked(m_player->playing());
    const ActionId paces[] = {"pace1", "pace2", "pace3", "pace4"};
    for (int speed = 1; speed <= 4; ++speed) actions[paces[speed - 1]]->setChecked(m_player->speed() == speed);
    actions["reducedMotion"]->setChecked(m_player->reducedMotion());
}

void PlaybackController::tell()
{
    if (!m_player->active() || !m_player->beats() || m_player->beat() < 0) return;
    m_bar->setWords(m_player->beats()->beats[static_cast<std::size_t>(m_player->beat())].words);
}

bool PlaybackController::escape()
{
    if (!m_player->active()) return false;
    m_player->end();
    return true;
}

FeatureEntry playbackFeature() { return featureEntry<PlaybackController>(); }

} // namespace stagewright
