#include "widgets/preferences/preferences.h"

#include <algorithm>

#include <QCoreApplication>
#include <QPointer>
#include <QSettings>

namespace stagewright {
namespace {

constexpr const char* scaleVariable = "QT_SCALE_FACTOR";
int scaleInForce = 100;

const QStringList& themeNames()
{
    static const QStringList names{QStringLiteral("system"), QStringLiteral("light"), QStringLiteral("dark"),
                                   QStringLiteral("high-contrast")};
    return names;
}

const QStringList& hatchNames()
{
    static const QStringList names{QStringLiteral("automatic"), QStringLiteral("always"), QStringLiteral("never")};
    return names;
}

const QStringList& unitNames()
{
    static const QStringList names{QStringLiteral("automatic"), QStringLiteral("s"), QStringLiteral("ms"),
                                   QStringLiteral("us"), QStringLiteral("ns")};
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
    p.theme = static_cast<ThemeChoice>(placeOf(themeNames(), s.value(QStringLiteral("window/theme")).toString()));
    p.hatch = static_cast<HatchChoice>(placeOf(hatchNames(), s.value(QStringLiteral("preferences/hatch")).toString()));
    p.keys = static_cast<KeyMapName>(std::clamp(s.value(QStringLiteral("window/keys"), 0).toInt(), 0, 2));
    p.textScale = std::clamp(s.value(QStringLiteral("preferences/textScale"), standard.textScale).toInt(),
                             smallestTextScale, largestTextScale);
    p.reducedMotion = s.value(QStringLiteral("preferences/reducedMotion"), standard.reducedMotion).toBool();
    p.timeUnit =
        static_cast<TimeUnit>(placeOf(unitNames(), s.value(QStringLiteral("preferences/timeUnit")).toString()));
    p.folder = s.value(QStringLiteral("preferences/folder")).toString();
    p.recentFiles = std::clamp(s.value(QStringLiteral("preferences/recentFiles"), standard.recentFiles).toInt(), 0, 50);
    p.autosave = s.value(QStringLiteral("preferences/autosave"), standard.autosave).toBool();
    p.autosaveSeconds =
        std::clamp(s.value(QStringLiteral("preferences/autosaveSeconds"), standard.autosaveSeconds).toInt(), 1, 600);
    p.restoreSession = s.value(QStringLiteral("preferences/restoreSession"), standard.restoreSession).toBool();
    return p;
}

void writePreferences(const Preferences& p)
{
    QSettings s;
    s.setValue(QStringLiteral("window/theme"), themeNames().at(static_cast<int>(p.theme)));
    s.setValue(QStringLiteral("preferences/hatch"), hatchNames().at(static_cast<int>(p.hatch)));
    s.setValue(QStringLiteral("window/keys"), static_cast<int>(p.keys));
    s.setValue(QStringLiteral("preferences/textScale"), p.textScale);
    s.setValue(QStringLiteral("preferences/reducedMotion"), p.reducedMotion);
    s.setValue(QStringLiteral("preferences/timeUnit"), unitNames().at(static_cast<int>(p.timeUnit)));
    s.setValue(QStringLiteral("preferences/folder"), p.folder);
    s.setValue(QStringLiteral("preferences/recentFiles"), p.recentFiles);
    s.setValue(QStringLiteral("preferences/autosave"), p.autosave);
    s.setValue(QStringLiteral("preferences/autosaveSeconds"), p.autosaveSeconds);
    s.setValue(QStringLiteral("preferences/restoreSession"), p.restoreSession);
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
