// BudgetController: the memory budget of a rank: its dialog, its storage, and drawing and counting with it.
#pragma once

#include <QString>

#include "app/ui/workspace/feature.h"
#include "schedules/base/result.h"

namespace stagewright {

class BudgetController : public Feature {
    Q_OBJECT
public:
    explicit BudgetController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    // For a rank's activations, parsed by MemoryBudget in the units of the run shown; empty: none. Remembered.
    Result<void> setMemoryBudget(const QString& text);

private:
    void askBudget();
};

} // namespace stagewright
