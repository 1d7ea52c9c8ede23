#include "app/ui/shell/preferences_controller.h"

#include <QActionGroup>

#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/hosts/hosts_page.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"

namespace stagewright {

std::vector<ActionEntry> PreferencesController::actionTable()
{
    return {
        item("preferences", ActionGroup::EditPreferences, u"Pre&ferences…"_s, "Ctrl+,",
             u"Theme, text scale, keys, units, folders, session"_s),
        item("themeSystem", ActionGroup::Theme, u"Follow the &system"_s, {}, {}, {.checkable = true}),
        item("themeLight", ActionGroup::Theme, u"&Light"_s, {}, {}, {.checkable = true}),
        item("themeDark", ActionGroup::Theme, u"&Dark"_s, {}, {}, {.checkable = true}),
        item("themeHighContrast", ActionGroup::Theme, u"&High contrast"_s, {}, {}, {.checkable = true}),
        item("hatchKinds", ActionGroup::Theme, u"Hatched &kinds"_s, {},
             u"Backward, weight gradient and communication differ by hatch as well as colour; Preferences "
             "also offer “with high contrast”"_s,
             {.line = true, .checkable = true}),
        item("keysPerfetto", ActionGroup::HelpKeys, u"Keys as in &Perfetto"_s, {}, {},
             {.at = 10, .line = true, .checkable = true}),
        item("keysNsight", ActionGroup::HelpKeys, u"Keys as in &Nsight"_s, {}, {}, {.at = 10, .checkable = true}),
        item("keysTracy", ActionGroup::HelpKeys, u"Keys as in &Tracy"_s, {}, {}, {.at = 10, .checkable = true}),
    };
}

PreferencesController::PreferencesController(Workspace& workspace) : Feature(workspace)
{
    Actions& actions = workspace.actions();
    connect(actions["preferences"], &QAction::triggered, this, &PreferencesController::open);
    const std::pair<ActionId, ThemeChoice> themes[] = {{"themeSystem", ThemeChoice::System},
                                                       {"themeLight", ThemeChoice::Light},
                                                       {"themeDark", ThemeChoice::Dark},
                                                       {"themeHighContrast", ThemeChoice::HighContrast}};
    auto* theme = new QActionGroup(this);
    for (const auto& [id, choice] : themes)
        connect(theme->addAction(actions[id]), &QAction::triggered, this,
                [choice = choice] { Appearance::choose(choice); });
    const std::pair<ActionId, KeyMapName> maps[] = {
        {"keysPerfetto", KeyMapName::Perfetto}, {"keysNsight", KeyMapName::Nsight}, {"keysTracy", KeyMapName::Tracy}};
    auto* keys = new QActionGroup(this);
    for (const auto& [id, map] : maps)
        connect(keys->addAction(actions[id]), &QAction::triggered, this, [map = map] {
            Preferences preferences = PreferenceStore::instance().value();
            preferences.keys = map;
            PreferenceStore::instance().set(preferences);
        });
    connect(actions["hatchKinds"], &QAction::triggered, this, [](bool wanted) {
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

namespace {

ShownDialog showHosts(const ShowRequest& request)
{
    PreferencesDialog* dialog = request.workspace.feature<PreferencesController>()->open();
    dialog->showHosts();
    if (!request.wait([&] { return dialog->hosts()->settled(); }, 20000))
        return {nullptr, u"the list of hosts timed out"_s};
    return {dialog};
}

} // namespace

std::vector<ShowEntry> PreferencesController::showTable()
{
    return {
        {.name = "preferences",
         .at = 80,
         .dialog =
             [](const ShowRequest& request) {
                 return ShownDialog{request.workspace.feature<PreferencesController>()->open()};
             }},
        {.name = "hosts", .at = 90, .dialog = &showHosts},
    };
}

FeatureEntry preferencesFeature() { return featureEntry<PreferencesController>(); }

} // namespace stagewright
