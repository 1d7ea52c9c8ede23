// LibraryController: library schedules: browsing them, opening one as a simulated run or for training, and the block
// editor.
#pragma once

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"

namespace stagewright {

class BlockEditor;
class ScheduleBrowser;

class LibraryController : public Feature, public LibraryOpening {
    Q_OBJECT
public:
    explicit LibraryController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    void newFromLibrary(const QString& name, const Shape& shape, const CostModel::UnitCosts& costs = {}) override;
    void openBlock(const Block& block) override;
    // window modal; deleted when closed
    BlockEditor* openBlockEditor(const QString& preset = {}, const Shape& shape = {});
    // window modal; deleted when closed
    ScheduleBrowser* openScheduleBrowser();
};

} // namespace stagewright
