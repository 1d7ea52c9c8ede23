// The toolbar of a window, with the box of steps and the field that finds ops, which become views of the workspace.
#pragma once

namespace stagewright {

class Workspace;

void buildToolBar(Workspace& workspace);

} // namespace stagewright
