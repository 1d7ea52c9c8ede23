#include "app/ui/shell/features.h"

namespace stagewright {

#define STAGEWRIGHT_FEATURE(name, folder) FeatureEntry name##Feature();
#include "app/ui/features.def"
#undef STAGEWRIGHT_FEATURE

const std::vector<FeatureEntry>& allFeatures()
{
    static const std::vector<FeatureEntry> features{
#define STAGEWRIGHT_FEATURE(name, folder) name##Feature(),
#include "app/ui/features.def"
#undef STAGEWRIGHT_FEATURE
    };
    return features;
}

std::vector<ActionEntry> allActions()
{
    std::vector<ActionEntry> all;
    for (const FeatureEntry& feature : allFeatures())
        for (ActionEntry& entry : feature.actions()) all.push_back(std::move(entry));
    return all;
}

} // namespace stagewright
