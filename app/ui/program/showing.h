// What the command line names is opened in a window: files, runs, a lesson, views (--show).
#pragma once

#include <functional>

#include <QString>

#include "app/ui/program/command_line.h"

namespace stagewright {

class MainWindow;
struct ShowEntry;
struct ShownDialog;

int complain(int code, const QString& message, const QString& remedy = {}); // to stderr; returns the code

bool waitUntil(const std::function<bool()>& done, int milliseconds); // false: it takes longer
void waitFor(int milliseconds);

// Each returns an exit code, 0 on success.
int showAsked(MainWindow& window, const CommandLine& line);  // files, runs, the baseline
int showLesson(MainWindow& window, const CommandLine& line); // or the shelf

void showPlace(MainWindow& window, const CommandLine& line); // the op and range of the run shown
void showView(MainWindow& window, const CommandLine& line);  // of the run shown, with --what-if and --beat

const ShowEntry* findShown(const QString& name); // null: --show has no such name
// Over the window. Without waiting, a user can close it at once.
ShownDialog openDialog(MainWindow& window, const ShowEntry& entry, const QString& schedule, bool waits);

} // namespace stagewright
