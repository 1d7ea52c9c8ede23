// The menus of a window, from the table of actions; features find them in their room.
#pragma once

namespace stagewright {

class Workspace;

void buildMenus(Workspace& workspace);

} // namespace stagewright
