#include "app/ui/shell/features.h"

#include <algorithm>
#include <utility>

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

const std::vector<ShowEntry>& allShown()
{
    static const std::vector<ShowEntry> shown = [] {
        std::vector<ShowEntry> all;
        for (const FeatureEntry& feature : allFeatures())
            for (const ShowEntry& entry : feature.shows()) all.push_back(entry);
        std::stable_sort(all.begin(), all.end(), [](const ShowEntry& a, const ShowEntry& b) { return a.at < b.at; });
        return all;
    }();
    return shown;
}

} // namespace stagewright
