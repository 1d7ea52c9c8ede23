// HelpController: the page of keys, and what the program is.
#pragma once

#include "app/ui/workspace/feature.h"

namespace stagewright {

class HelpController : public Feature {
    Q_OBJECT
public:
    explicit HelpController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

private:
    void about();
};

} // namespace stagewright
