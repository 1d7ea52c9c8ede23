#include "app/ui/shell/tool_bar.h"

#include <algorithm>
#include <vector>

#include <QComboBox>
#include <QHBoxLayout>
#include <QToolBar>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/search/find_field.h"

namespace stagewright {
namespace {

std::vector<Actions::Listed> onToolBar(const Actions& actions)
{
    std::vector<Actions::Listed> found;
    for (const Actions::Listed& one : actions.all())
        if (one.entry.tool != 0) found.push_back(one);
    std::sort(found.begin(), found.end(),
              [](const Actions::Listed& a, const Actions::Listed& b) { return a.entry.tool < b.entry.tool; });
    return found;
}

} // namespace

void buildToolBar(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    auto* bar = new QToolBar(u"Tools"_s, window);
    bar->setObjectName(u"tools"_s);
    bar->setMovable(false);
    bar->setFixedHeight(44);
    bar->setContextMenuPolicy(Qt::PreventContextMenu);
    bar->layout()->setContentsMargins(0, 0, 0, 0);
    bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto gap = [bar] {
        auto* space = new QWidget(bar);
        space->setFixedWidth(4);
        bar->addWidget(space);
    };
    int last = 0;
    for (const Actions::Listed& listed : onToolBar(workspace.actions())) {
        if (last != 0 && listed.entry.tool / 10 != last / 10) gap();
        last = listed.entry.tool;
        listed.action->setIconText(workspace.actions().buttonText(listed.entry.id));
        bar->addAction(listed.action);
        QWidget* button = bar->widgetForAction(listed.action);
        if (listed.entry.id == "record") button->setObjectName(u"primary"_s);
        button->setFocusPolicy(Qt::TabFocus);
    }
    gap();
    auto* steps = new QComboBox(bar);
    steps->setAccessibleName(u"Step"_s);
    steps->setToolTip(u"The step shown. Figures of a run are those of the measured step with the median time."_s);
    steps->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    bar->addWidget(steps);
    window->addToolBar(Qt::TopToolBarArea, bar);
    // The field has its own bar: without room for all buttons, the last ones fold behind », and the field stays.
    auto* end = new QToolBar(u"Find"_s, window);
    end->setObjectName(u"findBar"_s);
    end->setMovable(false);
    end->setFixedHeight(44);
    end->setContextMenuPolicy(Qt::PreventContextMenu);
    end->layout()->setContentsMargins(0, 0, 0, 0);
    auto* place = new QWidget(end); // a bar is at least as wide as the first thing in it
    auto* line = new QHBoxLayout(place);
    line->setContentsMargins(0, 0, 0, 0);
    line->addStretch(0);
    auto* find = new FindField(place);
    find->setObjectName(u"find"_s);
    find->setAcceptDrops(false); // the window handles file drops
    find->setPlaceholderText(u"Find op, e.g. rank:2 mb:5 B"_s);
    find->setAccessibleName(u"Find op"_s);
    find->setToolTip(u"rank:2  stage:3  mb:5  a kind (F B I W OPT)  or an op as the schedule writes it (2B5).\n"
                     "B also finds I and W where the backward is split.\n"
                     "Enter: next, Shift+Enter: previous, Esc: back to the timeline."_s);
    find->setClearButtonEnabled(true);
    find->setMinimumWidth(150);
    find->setMaximumWidth(272);
    find->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    line->addWidget(find, 1);
    end->addWidget(place);
    window->addToolBar(Qt::TopToolBarArea, end);
    workspace.views().steps = steps;
    workspace.views().find = find;
}

} // namespace stagewright
