// Orders to be completed by hand: an empty canvas, and one with missing ops. Each is edited as a change of a whole
// order of the same shape, which has costs and can be trained.
#pragma once

#include <functional>
#include <optional>

#include <QString>

#include "traces/run/run.h"

class QWidget;

namespace stagewright {

struct CanvasRun {
    Run run;        // of the whole order
    Schedule order; // as it is now
};
Result<CanvasRun> emptyCanvas(int ranks, int stages, int microbatches); // the whole order is a GPipe one
// The run of an order that has missing ops and no other fault; nullopt: it is another one. An empty name: the order's.
std::optional<CanvasRun> incompleteCanvas(const Schedule& order, const QString& name);
// The dialog that asks for the shape; it is over the window until answered, and `made` isn't called if it is cancelled.
void askEmptyCanvas(QWidget* window, std::function<void(int ranks, int stages, int microbatches)> made);

} // namespace stagewright
