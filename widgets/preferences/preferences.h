// Preferences: the user's settings for all windows. Kept in QSettings; one store per process, which notifies every
// window of a change, so that the settings of two windows can't differ. GUI thread only.
#pragma once

#include <QObject>
#include <QString>

#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/timeline/key_map.h"

namespace stagewright {

enum class ThemeChoice {
    System,
    Light,
    Dark,
    HighContrast,
};

// Kinds differ by hatch on screen as in pictures for print. Automatic: where colours are hard to distinguish, with high
// contrast.
enum class HatchChoice {
    Automatic,
    Always,
    Never,
};

struct Preferences {
    ThemeChoice theme = ThemeChoice::System;
    HatchChoice hatch = HatchChoice::Automatic;
    bool hatches() const
    {
        return hatch == HatchChoice::Always || (hatch == HatchChoice::Automatic && theme == ThemeChoice::HighContrast);
    }
    int textScale = 100;        // percent, 80 … 200; scales everything from the next start
    bool reducedMotion = false; // no animations: no moving bars, no fading
    KeyMapName keys = KeyMapName::Perfetto;
    TimeUnit timeUnit = TimeUnit::Automatic;
    QString folder;             // where file dialogs start; empty: beside the file opened last
    int recentFiles = 10;       // 0 … 50
    bool autosave = true;       // of edited schedules
    int autosaveSeconds = 1;    // 1 … 600, from a change to its save
    bool restoreSession = true; // files, run, view and selection at the next start
    bool operator==(const Preferences&) const = default;
};

inline constexpr int smallestTextScale = 80, largestTextScale = 200;

Preferences readPreferences(); // values out of range are clamped
void writePreferences(const Preferences& preferences);

class PreferenceStore : public QObject {
    Q_OBJECT
public:
    static PreferenceStore& instance(); // created on first use, lives until the application ends
    const Preferences& value() const { return m_value; }
    void set(const Preferences& preferences); // written at once
    void reload();                            // from the settings, if they are now in another file

signals:
    void changed(); // after set() or reload() if something differs

private:
    explicit PreferenceStore(QObject* parent);
    Preferences m_value;
};

// Before the application object exists: applies the scale of texts and sizes, unless QT_SCALE_FACTOR is set. Returns
// the effective percentage.
int applyTextScale();
int textScaleInForce(); // as applied; 100 if none was

} // namespace stagewright
