// The page that lists every key of a window.
#pragma once

namespace stagewright {

class Workspace;

void showKeys(Workspace& workspace); // again: closes it

} // namespace stagewright
