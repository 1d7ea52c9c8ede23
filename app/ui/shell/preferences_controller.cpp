#include "app/ui/shell/preferences_controller.h"

#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"

namespace stagewright {

PreferencesController::PreferencesController(Workspace& workspace) : Feature(workspace)
{
    using I = ActionId;
    Actions& actions = workspace.actions();
    connect(actions[I::Preferences], &QAction::triggered, this, &PreferencesController::open);
    const std::pair<I, ThemeChoice> themes[] = {{I::ThemeSystem, ThemeChoice::System},
                                                {I::ThemeLight, ThemeChoice::Light},
                                                {I::ThemeDark, ThemeChoice::Dark},
                                                {I::ThemeHighContrast, ThemeChoice::HighContrast}};
    for (const auto& [id, choice] : themes)
        connect(actions[id], &QAction::triggered, this, [choice = choice] { Appearance::choose(choice); });
    const std::pair<I, KeyMapName> maps[] = {{I::KeysPerfetto, KeyMapName::Perfetto}, {I::KeysNsight, KeyMapName::Nsight}, {I::KeysTracy, KeyMapName::Tracy}};
    for (const auto& [id, map] : maps)
        connect(actions[id], &QAction::triggered, this, [map = map] {
            Preferences preferences = PreferenceStore::instance().value();
            preferences.keys = map;
            PreferenceStore::instance().set(preferences);
        });
    connect(actions[I::HatchKinds], &QAction::triggered, this, [](bool wanted) {
        Preferences preferences = PreferenceStore::instance().value();
        preferences.hatch = wanted ? HatchChoice::Always : HatchChoice::Never;
        PreferenceStore::instance().set(preferences);
    });
}

PreferencesDialog* PreferencesController::open()
{
    if (!m_dialog) {
        m_dialog = new PreferencesDialog(m_workspace.window());
        m_dialog->setAttribute(Qt::WA_DeleteOnClose);
        m_dialog->setProgram(findStagewright());
        connect(m_dialog, &PreferencesDialog::restartAsked, &m_workspace, &Workspace::restartAsked);
    }
    m_dialog->show();
    m_dialog->raise();
    m_dialog->activateWindow();
    return m_dialog;
}

Feature* preferencesFeature(Workspace& workspace) { return new PreferencesController(workspace); }

} // namespace stagewright
