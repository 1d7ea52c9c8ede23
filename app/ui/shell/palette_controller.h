// PaletteController: the content of a window's command palette: actions, runs, library schedules, recent files, ops of the run shown;
// remembers which were used recently.
#pragma once

#include <QObject>
#include <QPointer>

#include "widgets/palette/command_palette.h"

namespace stagewright {

class MainWindow;

class PaletteController : public QObject {
    Q_OBJECT
public:
    explicit PaletteController(MainWindow& window);
    CommandPalette* open();

private:
    std::vector<PaletteEntry> entries() const;
    std::vector<PaletteEntry> ops(const QString& pattern) const;
    MainWindow& m_window;
    QPointer<CommandPalette> m_palette;
};

} // namespace stagewright
