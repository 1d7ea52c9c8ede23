#include "app/ui/shell/preferences_controller.h"

#include "app/ui/shell/main_window.h"

namespace stagewright {

PreferencesController::PreferencesController(MainWindow& window) : QObject(&window), m_window(window)
{
    using I = ActionId;
    Actions& actions = window.actions();
    connect(actions[I::Preferences], &QAction::triggered, this, &PreferencesController::open);
    const std::pair<I, ThemeChoice> themes[] = {{I::ThemeSystem, ThemeChoice::System},
                                                {I::ThemeLight, ThemeChoice::Light},
                                                {I::ThemeDark, ThemeChoice::Dark},
                                                {I::ThemeHighContrast, ThemeChoice::HighContrast}};
    for (const auto& [id, choice] : themes)
        connect(actions[id], &QAction::triggered, this, [this, choice = choice] { m_window.setThemeChoice(choice); });
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
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, [this] { m_window.applyPreferences(); });
}

PreferencesDialog* PreferencesController::open()
{
    if (!m_dialog) {
        m_dialog = new PreferencesDialog(&m_window);
        m_dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(m_dialog, &PreferencesDialog::restartAsked, this, &PreferencesController::restartAsked);
    }
    m_dialog->show();
    m_dialog->raise();
    m_dialog->activateWindow();
    return m_dialog;
}

} // namespace stagewright
