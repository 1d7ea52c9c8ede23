#include "app/ui/workspace/show.h"

#include "app/ui/workspace/workspace.h"

namespace stagewright {

void ShowRequest::settle() const
{
    wait([this] { return workspace.settled(); }, 60000);
}

} // namespace stagewright
