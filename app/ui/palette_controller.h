// PaletteController: what the command palette of one window offers: its actions, runs, the schedules of the library, files
// of late, ops of the run shown; and which were used lately.
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
