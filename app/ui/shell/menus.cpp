#include "app/ui/shell/menus.h"

#include <map>

#include <QActionGroup>
#include <QApplication>
#include <QMenuBar>
#include <QMessageBox>

#include "app/ui/shell/key_page.h"
#include "app/ui/workspace/workspace.h"

namespace stagewright {

void buildMenus(Workspace& workspace)
{
    QMainWindow* window = workspace.window();
    const Actions& actions = workspace.actions();
    const auto tr = [](const char* text) { return Actions::tr(text); };
    const std::pair<MenuId, QString> titles[] = {{MenuId::File, tr("&File")}, {MenuId::Edit, tr("&Edit")}, {MenuId::View, tr("&View")}, {MenuId::Order, tr("&Order")}, {MenuId::Schedule, tr("&Schedule")}, {MenuId::Analyse, tr("&Analyse")}, {MenuId::Learn, tr("&Learn")}, {MenuId::Help, tr("&Help")}};
    std::map<MenuId, QMenu*> menus;
    for (const auto& [id, title] : titles)
        menus[id] = window->menuBar()->addMenu(title);
    menus[MenuId::Theme] = new QMenu(tr("&Theme"), window);
    menus[MenuId::Rows] = new QMenu(tr("Ro&ws"), window);
    menus[MenuId::Layouts] = new QMenu(tr("Lay&outs"), window);
    menus[MenuId::Bookmarks] = new QMenu(tr("&Bookmarks"), window);
    menus[MenuId::Times] = new QMenu(tr("T&imes"), window);
    menus[MenuId::MemoryCharts] = new QMenu(tr("Memory c&harts"), window);
    for (const ActionEntry& entry : Actions::table()) {
        QMenu* menu = menus.at(entry.menu);
        if (entry.line) menu->addSeparator();
        if (entry.id == ActionId::OpenRecent)
            menus[MenuId::Recent] = menu->addMenu(tr(entry.text));
        else
            menu->addAction(actions[entry.id]);
    }
    menus[MenuId::View]->addSeparator();
    for (const MenuId id : {MenuId::Rows, MenuId::Times, MenuId::MemoryCharts, MenuId::Bookmarks, MenuId::Layouts, MenuId::Theme})
        menus[MenuId::View]->addMenu(menus[id]);
    using I = ActionId;
    for (const auto& exclusive : {std::vector{I::ThemeSystem, I::ThemeLight, I::ThemeDark, I::ThemeHighContrast}, std::vector{I::KeysPerfetto, I::KeysNsight, I::KeysTracy}}) {
        auto* group = new QActionGroup(window);
        for (const I id : exclusive)
            group->addAction(actions[id]);
    }
    workspace.room().setMenus(menus);
    QObject::connect(actions[I::Keys], &QAction::triggered, window, [&workspace] { showKeys(workspace); });
    QObject::connect(actions[I::About], &QAction::triggered, window, [window, tr] {
        QMessageBox::about(window, tr("About Stagewright"),
                           tr("Stagewright %1\n\nA workbench for pipeline-parallel training: design a schedule, run it for real, see where "
                              "the time and the memory went, change it, and verify the change.\n\nApache-2.0. Inter typeface: SIL Open Font License.")
                               .arg(QApplication::applicationVersion()));
    });
}

} // namespace stagewright
