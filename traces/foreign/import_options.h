// Options for every reader of foreign traces.
#pragma once

#include "traces/foreign/label_rules.h"

namespace stagewright {

struct ImportOptions {
    LabelRules rules = LabelRules::builtIn();
    bool hostOps = false; // keep the framework's operators on the host as lanes; else they are counted and skipped
    bool oneJob = false;  // all files are ranks of one job, regardless of their names
    bool stepsOfAllRanks = false; // leave out marked steps that some rank lacks: it ended before them
    bool suggestRules = false;    // draft rules from the ranges' names
    int threads = 0;              // files read at once; 0: as many as there are cores
};

} // namespace stagewright
