#include "app/ui/shell/features.h"

namespace stagewright {

#define STAGEWRIGHT_FEATURE(name, folder) Feature* name##Feature(Workspace& workspace);
#include "app/ui/features.def"
#undef STAGEWRIGHT_FEATURE

const std::vector<MakeFeature>& allFeatures()
{
    static const std::vector<MakeFeature> features{
#define STAGEWRIGHT_FEATURE(name, folder) &name##Feature,
#include "app/ui/features.def"
#undef STAGEWRIGHT_FEATURE
    };
    return features;
}

} // namespace stagewright
