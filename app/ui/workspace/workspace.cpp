#include "app/ui/workspace/workspace.h"

#include <algorithm>
#include <utility>

#include <QSplitter>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/inspector.h"
#include "widgets/panel/side_panel.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/theme.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

Workspace::Workspace(QMainWindow& window, std::vector<ActionEntry> actions)
    : QObject(&window), m_actions(new Actions(&window, std::move(actions))), m_library(new RunLibrary(&window)),
      m_state(new ViewState(&window)), m_room(window), m_banner(new Banner(window.centralWidget())), m_shown(*this),
      m_theme(&Theme::light())
{
    buildViews();
    m_banner->attach(m_room.pages());
    m_banner->setContext([this] { return m_shown.whileShown(); });
    connect(m_state, &ViewState::selectionChanged, &m_shown, &Shown::refreshSelection);
    connect(m_state, &ViewState::historyChanged, this, &Workspace::refreshActions);
    connect(m_library, &RunLibrary::wrote, this, &Workspace::fileWritten);
    connect(&m_room, &Room::pageChanged, m_banner, &Banner::review);
}

Workspace::~Workspace()
{
    while (!m_features.empty()) {
        Feature* last = m_features.back();
        m_features.pop_back();
        delete last;
    }
}

void Workspace::buildViews()
{
    m_views.runs = new RunsPanel(m_library->model(), m_room.columns());
    m_views.runs->setMinimumWidth(170);
    m_room.columns()->insertWidget(0, m_views.runs);
    m_views.timeline = new TimelineView(m_state, m_room.rows());
    m_views.timeline->setAccessibleName(u"Timeline"_s);
    m_views.memory = new MemoryView(m_state, m_room.rows());
    m_views.memory->setAccessibleName(u"Activation memory"_s);
    m_room.rows()->addWidget(m_views.timeline);
    m_room.rows()->addWidget(m_views.memory);
    m_room.rows()->setStretchFactor(0, 0);
    m_room.rows()->setStretchFactor(1, 1);
    m_views.legend = new Legend(m_room.rows()->parentWidget());
    m_room.workArea()->addWidget(m_views.legend);
    m_views.side = new SidePanel(m_room.panels());
    m_room.panels()->addWidget(m_views.side);
    m_room.inspector()->setPage(Inspector::Tab::Summary, m_views.side->summary());
    m_room.inspector()->setPage(Inspector::Tab::Selection, m_views.side->selection());
    connect(m_views.side, &SidePanel::selectionShown, m_room.inspector(), &Inspector::setSelected);
    m_room.columns()->setStretchFactor(0, 0);
    m_room.columns()->setStretchFactor(1, 1);
    m_room.columns()->setStretchFactor(2, 0);
    m_room.columns()->setSizes({224, 1000, 324});
}

void Workspace::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_views.timeline->setTheme(theme);
    m_views.memory->setTheme(theme);
    m_views.legend->setTheme(theme);
    m_views.runs->setTheme(theme);
    m_views.side->setTheme(theme);
    if (m_shown.mode() == Shown::Mode::Run) m_shown.refreshSelection(); // its swatch is in the theme's colours
    emit themeChanged();
}

void Workspace::add(Feature* feature) { m_features.push_back(feature); }

bool Workspace::settled() const
{
    return m_jobs.idle() && !m_shown.pending() && !m_shown.filesAwaited() && !m_library->busy() &&
           m_views.memory->ready() &&
           std::all_of(m_features.begin(), m_features.end(), [](const Feature* one) { return one->settled(); });
}

void Workspace::refreshActions() { emit actionsRefreshed(); }

void Workspace::refreshCaptions() { emit captionsChanged(); }

} // namespace stagewright
