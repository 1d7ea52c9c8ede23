// Preferences: what the user chose once for every window. Kept in QSettings; one store a process, which tells every window
// of a change, so that the settings of two windows can't differ. GUI thread only.
#pragma once

#include <QObject>
#include <QString>

#include "widgets/key_map.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

namespace stagewright {

enum class ThemeChoice { System, Light, Dark, HighContrast };

// Kinds told apart by a hatch on screen as in pictures for print. Automatic: where colours are hard to tell, with high contrast.
enum class HatchChoice { Automatic, Always, Never };

struct Preferences {
    ThemeChoice theme = ThemeChoice::System;
    HatchChoice hatch = HatchChoice::Automatic;
    bool hatches() const { return hatch == HatchChoice::Always || (hatch == HatchChoice::Automatic && theme == ThemeChoice::HighContrast); }
    int textScale = 100;        // percent, 80 … 200; of everything, from the next start on
    bool reducedMotion = false; // nothing moves by itself: no animated bars, no fading
    KeyMapName keys = KeyMapName::Perfetto;
    TimeUnit timeUnit = TimeUnit::Automatic;
    QString folder;             // where file dialogs begin; empty: beside the file opened last
    int recentFiles = 10;       // 0 … 50
    bool autosave = true;       // of edited schedules
    int autosaveSeconds = 1;    // 1 … 600, from a change to its writing
    bool restoreSession = true; // files, run, view and selection at the next start
    bool operator==(const Preferences&) const = default;
};

inline constexpr int smallestTextScale = 80, largestTextScale = 200;

Preferences readPreferences(); // values out of range are brought into it
void writePreferences(const Preferences& preferences);

class PreferenceStore : public QObject {
    Q_OBJECT
public:
    static PreferenceStore& instance(); // made on first use, lives as long as the application
    const Preferences& value() const { return m_value; }
    void set(const Preferences& preferences); // written at once
    void reload();                            // from the settings, where they are another file's now

signals:
    void changed(); // after set() or reload() where something differs

private:
    explicit PreferenceStore(QObject* parent);
    Preferences m_value;
};

// Before the application object exists: the scale of texts and sizes, unless QT_SCALE_FACTOR says otherwise. Returns the
// percent in force.
int applyTextScale();
int textScaleInForce(); // as applied; 100 where nothing was

} // namespace stagewright
