// --screenshot and --export: a window is drawn without a display, and the program ends.
#pragma once

#include "app/ui/program/command_line.h"

namespace stagewright {

class MainWindow;

int drawAndLeave(MainWindow& window, const CommandLine& line); // returns the exit code

} // namespace stagewright
