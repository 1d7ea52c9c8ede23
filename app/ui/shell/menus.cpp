#include "app/ui/shell/menus.h"

#include <map>
#include <optional>

#include <QMenuBar>

#include "app/ui/workspace/workspace.h"

namespace stagewright {

void buildMenus(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    const Actions& actions = workspace.actions();
    const auto tr = [](const char* text) { return Actions::tr(text); };
    const std::pair<MenuId, QString> titles[] = {{MenuId::File, tr("&File")},         {MenuId::Edit, tr("&Edit")},
                                                 {MenuId::View, tr("&View")},         {MenuId::Order, tr("&Order")},
                                                 {MenuId::Schedule, tr("&Schedule")}, {MenuId::Analyse, tr("&Analyse")},
                                                 {MenuId::Learn, tr("&Learn")},       {MenuId::Help, tr("&Help")}};
    std::map<MenuId, QMenu*> menus;
    for (const auto& [id, title] : titles) menus[id] = window->menuBar()->addMenu(title);
    menus[MenuId::Theme] = new QMenu(tr("&Theme"), window);
    menus[MenuId::Rows] = new QMenu(tr("Ro&ws"), window);
    menus[MenuId::Layouts] = new QMenu(tr("Lay&outs"), window);
    menus[MenuId::Bookmarks] = new QMenu(tr("&Bookmarks"), window);
    menus[MenuId::Times] = new QMenu(tr("T&imes"), window);
    menus[MenuId::MemoryCharts] = new QMenu(tr("Memory c&harts"), window);
    std::optional<ActionGroup> group;
    for (const auto& [entry, action] : actions.all()) {
        QMenu* menu = menus.at(menuOf(entry.group));
        if (entry.line || (group != entry.group && !menu->isEmpty())) menu->addSeparator();
        group = entry.group;
        if (entry.id == "openRecent")
            menus[MenuId::Recent] = menu->addMenu(entry.text);
        else
            menu->addAction(action);
    }
    menus[MenuId::View]->addSeparator();
    for (const MenuId id :
         {MenuId::Rows, MenuId::Times, MenuId::MemoryCharts, MenuId::Bookmarks, MenuId::Layouts, MenuId::Theme})
        menus[MenuId::View]->addMenu(menus[id]);
    workspace.room().setMenus(menus);
}

} // namespace stagewright
