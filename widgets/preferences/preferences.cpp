#include "widgets/preferences/preferences.h"

#include <algorithm>

#include <QCoreApplication>
#include <QPointer>
#include <QSettings>

#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr const char* scaleVariable = "QT_SCALE_FACTOR";
int scaleInForce = 100;

const QStringList& themeNames()
{
    static const QStringList names{u"system"_s, u"light"_s, u"dark"_s, u"high-contrast"_s};
    return names;
}

const QStringList& hatchNames()
{
    static const QStringList names{u"automatic"_s, u"always"_s, u"never"_s};
    return names;
}

const QStringList& unitNames()
{
    static const QStringList names{u"automatic"_s, u"s"_s, u"ms"_s, u"us"_s, u"ns"_s};
    return names;
}

int placeOf(const QStringList& names, const QString& name)
{
    return std::max(0, static_cast<int>(names.indexOf(name)));
}

} // namespace

Preferences readPreferences()
{
    const QSettings s;
    const Preferences standard;
    Preferences p;
    p.theme = static_cast<ThemeChoice>(placeOf(themeNames(), s.value(u"window/theme"_s).toString()));
    p.hatch = static_cast<HatchChoice>(placeOf(hatchNames(), s.value(u"preferences/hatch"_s).toString()));
    p.keys = static_cast<KeyMapName>(std::clamp(s.value(u"window/keys"_s, 0).toInt(), 0, 2));
    p.textScale = std::clamp(s.value(u"preferences/textScale"_s, standard.textScale).toInt(), smallestTextScale,
                             largestTextScale);
    p.reducedMotion = s.value(u"preferences/reducedMotion"_s, standard.reducedMotion).toBool();
    p.timeUnit = static_cast<TimeUnit>(placeOf(unitNames(), s.value(u"preferences/timeUnit"_s).toString()));
    p.folder = s.value(u"preferences/folder"_s).toString();
    p.recentFiles = std::clamp(s.value(u"preferences/recentFiles"_s, standard.recentFiles).toInt(), 0, 50);
    p.autosave = s.value(u"preferences/autosave"_s, standard.autosave).toBool();
    p.autosaveSeconds = std::clamp(s.value(u"preferences/autosaveSeconds"_s, standard.autosaveSeconds).toInt(), 1, 600);
    p.restoreSession = s.value(u"preferences/restoreSession"_s, standard.restoreSession).toBool();
    return p;
}

void writePreferences(const Preferences& p)
{
    QSettings s;
    s.setValue(u"window/theme"_s, themeNames().at(static_cast<int>(p.theme)));
    s.setValue(u"preferences/hatch"_s, hatchNames().at(static_cast<int>(p.hatch)));
    s.setValue(u"window/keys"_s, static_cast<int>(p.keys));
    s.setValue(u"preferences/textScale"_s, p.textScale);
    s.setValue(u"preferences/reducedMotion"_s, p.reducedMotion);
    s.setValue(u"preferences/timeUnit"_s, unitNames().at(static_cast<int>(p.timeUnit)));
    s.setValue(u"preferences/folder"_s, p.folder);
    s.setValue(u"preferences/recentFiles"_s, p.recentFiles);
    s.setValue(u"preferences/autosave"_s, p.autosave);
    s.setValue(u"preferences/autosaveSeconds"_s, p.autosaveSeconds);
    s.setValue(u"preferences/restoreSession"_s, p.restoreSession);
}

PreferenceStore::PreferenceStore(QObject* parent) : QObject(parent), m_value(readPreferences()) {}

PreferenceStore& PreferenceStore::instance()
{
    static QPointer<PreferenceStore> store;
    if (!store) store = new PreferenceStore(QCoreApplication::instance());
    return *store;
}

void PreferenceStore::set(const Preferences& preferences)
{
    if (preferences == m_value) return;
    m_value = preferences;
    writePreferences(m_value);
    emit changed();
}

void PreferenceStore::reload()
{
    const Preferences read = readPreferences();
    if (read == m_value) return;
    m_value = read;
    emit changed();
}

int applyTextScale()
{
    if (qEnvironmentVariableIsSet(scaleVariable)) {
        scaleInForce = std::max(1, qRound(100 * qEnvironmentVariable(scaleVariable).toDouble()));
        return scaleInForce;
    }
    scaleInForce = readPreferences().textScale;
    if (scaleInForce != 100) qputenv(scaleVariable, QByteArray::number(scaleInForce / 100.0));
    return scaleInForce;
}

int textScaleInForce() { return scaleInForce; }

} // namespace stagewright
