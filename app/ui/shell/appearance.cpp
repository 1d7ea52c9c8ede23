#include "app/ui/shell/appearance.h"

#include <QApplication>
#include <QPointer>
#include <QProxyStyle>
#include <QStyleFactory>

#include "app/ui/shell/dialog_icons.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/preferences/preferences.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

// Fusion with icons of ours, and without underlined mnemonics; Alt and the letter still work.
class QuietStyle : public QProxyStyle {
public:
    QuietStyle() : QProxyStyle(QStyleFactory::create(u"Fusion"_s)) {}
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override
    {
        if (hint == SH_Widget_Animation_Duration && PreferenceStore::instance().value().reducedMotion) return 0;
        return hint == SH_UnderlineShortcut ? 0 : QProxyStyle::styleHint(hint, option, widget, data);
    }
    QIcon standardIcon(StandardPixmap what, const QStyleOption* option, const QWidget* widget) const override
    {
        const QIcon own = dialogIcon(what);
        return own.isNull() ? QProxyStyle::standardIcon(what, option, widget) : own;
    }
    QPixmap standardPixmap(StandardPixmap what, const QStyleOption* option, const QWidget* widget) const override
    {
        const QIcon own = dialogIcon(what);
        const int side = pixelMetric(PM_MessageBoxIconSize, option, widget);
        return own.isNull() ? QProxyStyle::standardPixmap(what, option, widget) : own.pixmap(QSize(side, side));
    }
};

void installStyle() // once per process: windows share it
{
    static QPointer<QStyle> installed;
    if (installed) return;
    installed = new QuietStyle;
    QApplication::setStyle(installed);
}

bool looksDark(const QPalette& palette) { return palette.color(QPalette::Window).lightnessF() < 0.5F; }

bool startsDark() // before the first theme
{
    static const bool dark = looksDark(QApplication::palette());
    return dark;
}

} // namespace

void Appearance::prepare()
{
    startsDark();
    PreferenceStore::instance().reload();
    installStyle();
    loadFonts();
    QApplication::setFont(fontOf(FontRole::Body));
}

Appearance::Appearance(Workspace& workspace) : QObject(&workspace), m_workspace(workspace), m_systemDark(startsDark())
{
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, &Appearance::apply);
    apply();
}

void Appearance::apply()
{
    const Preferences& preferences = PreferenceStore::instance().value();
    const Views& views = m_workspace.views();
    const bool rewritten = timeUnit() != preferences.timeUnit ||
                           views.timeline->property("timeUnit").toInt() != static_cast<int>(preferences.timeUnit);
    setTimeUnit(preferences.timeUnit);
    views.timeline->setProperty("timeUnit", static_cast<int>(preferences.timeUnit));
    views.timeline->input().setKeyMap(preferences.keys);
    views.memory->setKeyMap(preferences.keys);
    const ActionId keys[] = {"keysPerfetto", "keysNsight", "keysTracy"};
    m_workspace.actions()[keys[static_cast<int>(preferences.keys)]]->setChecked(true);
    applyTheme();
    if (rewritten) m_workspace.shown().refreshTimes();
    m_workspace.refreshCaptions();
}

void Appearance::applyTheme()
{
    const Preferences& preferences = PreferenceStore::instance().value();
    const bool dark =
        preferences.theme == ThemeChoice::Dark || (preferences.theme == ThemeChoice::System && m_systemDark);
    const Theme* theme =
        preferences.theme == ThemeChoice::HighContrast ? &Theme::highContrastTheme() : &Theme::named(dark);
    const bool hatched = preferences.hatches();
    if (hatched) theme = &theme->hatchedTwin();
    Actions& actions = m_workspace.actions();
    actions["hatchKinds"]->setChecked(hatched);
    static const Theme* applied = nullptr; // of the application, which all windows share
    if (applied != theme || qApp->styleSheet().isEmpty()) {
        applied = theme;
        QApplication::setPalette(theme->palette());
        qApp->setStyleSheet(styleSheet(*theme));
    }
    const ActionId themes[] = {"themeSystem", "themeLight", "themeDark", "themeHighContrast"};
    actions[themes[static_cast<int>(preferences.theme)]]->setChecked(true);
    m_workspace.setTheme(*theme);
}

void Appearance::choose(ThemeChoice theme)
{
    Preferences preferences = PreferenceStore::instance().value();
    preferences.theme = theme;
    PreferenceStore::instance().set(preferences);
}

void Appearance::systemChanged()
{
    if (PreferenceStore::instance().value().theme != ThemeChoice::System) return;
    m_systemDark = looksDark(QApplication::style()->standardPalette());
    applyTheme();
}

} // namespace stagewright
