#include "app/ui/shell/menus.h"

#include <map>
#include <optional>

#include <QMenuBar>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"

namespace stagewright {

void buildMenus(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    const Actions& actions = workspace.actions();
    const std::pair<MenuId, QString> titles[] = {{MenuId::File, u"&File"_s},       {MenuId::Edit, u"&Edit"_s},
                                                 {MenuId::View, u"&View"_s},       {MenuId::Schedule, u"&Schedule"_s},
                                                 {MenuId::Analyse, u"&Analyse"_s}, {MenuId::Learn, u"&Learn"_s},
                                                 {MenuId::Help, u"&Help"_s}};
    std::map<MenuId, QMenu*> menus;
    for (const auto& [id, title] : titles) menus[id] = window->menuBar()->addMenu(title);
    menus[MenuId::Ops] = new QMenu(u"C&hange ops"_s, window);
    menus[MenuId::OpChoice] = new QMenu(u"Se&lect ops"_s, window);
    menus[MenuId::Theme] = new QMenu(u"&Theme"_s, window);
    menus[MenuId::Rows] = new QMenu(u"Ro&ws"_s, window);
    menus[MenuId::RowGroups] = new QMenu(u"Group ra&nks"_s, window);
    menus[MenuId::Layouts] = new QMenu(u"Lay&outs"_s, window);
    menus[MenuId::Bookmarks] = new QMenu(u"&Bookmarks"_s, window);
    menus[MenuId::Times] = new QMenu(u"T&imes"_s, window);
    menus[MenuId::MemoryCharts] = new QMenu(u"Memory c&harts"_s, window);
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
    for (const MenuId id : {MenuId::Rows, MenuId::RowGroups, MenuId::Times, MenuId::MemoryCharts, MenuId::Bookmarks,
                            MenuId::Layouts, MenuId::Theme})
        menus[MenuId::View]->addMenu(menus[id]);
    menus[MenuId::Schedule]->addSeparator();
    for (const MenuId id : {MenuId::Ops, MenuId::OpChoice}) menus[MenuId::Schedule]->addMenu(menus[id]);
    workspace.room().setMenus(menus);
}

} // namespace stagewright
