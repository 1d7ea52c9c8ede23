// What every reader of foreign traces is told.
#pragma once

#include "traces/import/label_rules.h"

namespace stagewright {

struct ImportOptions {
    LabelRules rules = LabelRules::builtIn();
    bool hostOps = false; // keep the framework's operators on the host as lanes; else they are counted and left out
    bool oneJob = false;  // all files are ranks of one job, whatever they are called
    int threads = 0;      // files read at once; 0: as many as there are cores
};

} // namespace stagewright
