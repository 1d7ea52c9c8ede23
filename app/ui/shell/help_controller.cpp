#include "app/ui/shell/help_controller.h"

#include <QApplication>
#include <QMessageBox>

#include "app/ui/shell/key_page.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"

namespace stagewright {

std::vector<ActionEntry> HelpController::actionTable()
{
    return {
        item("keys", ActionGroup::HelpKeys, u"&Keys"_s, "?|F1", u"Shows every shortcut"_s, {.at = 0}),
        item("about", ActionGroup::HelpAbout, u"&About Stagewright"_s),
    };
}

HelpController::HelpController(Workspace& workspace) : Feature(workspace)
{
    connect(workspace.actions()["keys"], &QAction::triggered, this, [this] { showKeys(m_workspace); });
    connect(workspace.actions()["about"], &QAction::triggered, this, &HelpController::about);
}

void HelpController::about()
{
    QMessageBox::about(m_workspace.window(), u"About Stagewright"_s,
                       u"Stagewright %1\n\nA workbench for pipeline-parallel training: design a schedule, run it for "
                       "real, see where "
                       "the time and the memory went, change it, and verify the change.\n\nApache-2.0. Inter "
                       "typeface: SIL Open Font License."_s.arg(QApplication::applicationVersion()));
}

namespace {

ShownDialog showKeyPage(const ShowRequest& request)
{
    showKeys(request.workspace);
    return {request.workspace.window()->findChild<QDialog*>(u"keyMap"_s)};
}

} // namespace

std::vector<ShowEntry> HelpController::showTable()
{
    return {
        {.name = "keys", .at = 170, .dialog = &showKeyPage},
    };
}

FeatureEntry helpFeature() { return featureEntry<HelpController>(); }

} // namespace stagewright
