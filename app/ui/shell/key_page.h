// The page that lists every key of a window, by what it is for, and finds them.
#pragma once

namespace stagewright {

class Workspace;

void showKeys(Workspace& workspace); // again: closes it

} // namespace stagewright
