#include "app/ui/shell/tool_bar.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QToolBar>

#include "app/ui/workspace/workspace.h"
#include "widgets/search/find_field.h"

namespace stagewright {

void buildToolBar(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    const auto tr = [](const char* text) { return Workspace::tr(text); };
    auto* bar = new QToolBar(tr("Tools"), window);
    bar->setObjectName(QStringLiteral("tools"));
    bar->setMovable(false);
    bar->setFixedHeight(44);
    bar->setContextMenuPolicy(Qt::PreventContextMenu);
    bar->layout()->setContentsMargins(0, 0, 0, 0);
    bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto add = [&](ActionId id, const char* name = nullptr) {
        QAction* action = workspace.actions()[id];
        action->setIconText(Actions::buttonText(id));
        bar->addAction(action);
        QWidget* button = bar->widgetForAction(action);
        if (name != nullptr) button->setObjectName(QString::fromLatin1(name));
        button->setFocusPolicy(Qt::TabFocus);
        return button;
    };
    auto gap = [&](int width) {
        auto* space = new QWidget(bar);
        space->setFixedWidth(width);
        bar->addWidget(space);
    };
    add(ActionId::Open);
    add(ActionId::Record, "primary");
    gap(4);
    add(ActionId::EditMode);
    gap(4);
    add(ActionId::CriticalPath);
    add(ActionId::CommTracks);
    add(ActionId::Memory);
    add(ActionId::Compare);
    gap(4);
    add(ActionId::Fit);
    add(ActionId::ExportPicture);
    gap(4);
    auto* steps = new QComboBox(bar);
    steps->setAccessibleName(tr("Step"));
    steps->setToolTip(tr("The step shown. Figures of a run are those of the measured step with the median time."));
    steps->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    bar->addWidget(steps);
    window->addToolBar(Qt::TopToolBarArea, bar);
    // The field has its own bar: without room for all buttons, the last ones fold behind », and the field stays.
    auto* end = new QToolBar(tr("Find"), window);
    end->setObjectName(QStringLiteral("findBar"));
    end->setMovable(false);
    end->setFixedHeight(44);
    end->setContextMenuPolicy(Qt::PreventContextMenu);
    end->layout()->setContentsMargins(0, 0, 0, 0);
    auto* place = new QWidget(end); // a bar is at least as wide as the first thing in it
    auto* line = new QHBoxLayout(place);
    line->setContentsMargins(0, 0, 0, 0);
    line->addStretch(0);
    auto* find = new FindField(place);
    find->setObjectName(QStringLiteral("find"));
    find->setAcceptDrops(false); // the window handles file drops
    find->setPlaceholderText(tr("Find op, e.g. rank:2 mb:5 B"));
    find->setAccessibleName(tr("Find op"));
    find->setToolTip(tr("rank:2  stage:3  mb:5  a kind (F B I W OPT)  or an op as the schedule writes it (2B5).\n"
                        "B also finds I and W where the backward is split.\n"
                        "Enter: next, Shift+Enter: previous, Esc: back to the timeline."));
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
