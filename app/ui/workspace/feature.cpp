#include "app/ui/workspace/feature.h"

#include "app/ui/workspace/workspace.h"

namespace stagewright {

Feature::Feature(Workspace& workspace) : QObject(&workspace), m_workspace(workspace) {}

} // namespace stagewright
