// The menus of a window, made of its actions; features find them in their room.
#pragma once

namespace stagewright {

class Workspace;

void buildMenus(Workspace& workspace);

} // namespace stagewright
