#include "app/ui/workspace/deadlock.h"

#include "app/ui/workspace/workspace.h"
#include "widgets/deadlock/deadlock_dialog.h"

namespace stagewright {

void showDeadlock(Workspace& workspace, std::shared_ptr<const Schedule> schedule, const Channels& channels,
                  std::function<void(const Schedule&)> apply)
{
    auto* dialog = new DeadlockDialog(workspace.theme(), std::move(schedule), channels, workspace.window());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    QObject::connect(dialog, &DeadlockDialog::fixAsked, &workspace,
                     [apply = std::move(apply)](const Schedule& fixed) { apply(fixed); });
    dialog->open();
}

} // namespace stagewright
