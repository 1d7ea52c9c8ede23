// What users call an action of the command palette besides its own words: "dark mode", "shortcuts", "zoom to fit".
#pragma once

#include <QString>

namespace stagewright {

QString wordsOfAction(const QString& id); // "themeDark" → "mode night black"; empty: none

} // namespace stagewright
