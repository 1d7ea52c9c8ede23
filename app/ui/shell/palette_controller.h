// PaletteController: the content of a window's command palette: actions, runs, library schedules, recent files, ops of
// the run shown; remembers which were used recently.
#pragma once

#include <QObject>
#include <QPointer>

#include "app/ui/workspace/feature.h"
#include "widgets/palette/command_palette.h"

namespace stagewright {

class PaletteController : public Feature {
    Q_OBJECT
public:
    explicit PaletteController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    CommandPalette* open();

private:
    std::vector<PaletteEntry> entries() const;
    std::vector<PaletteEntry> ops(const QString& pattern) const;
    QPointer<CommandPalette> m_palette;
};

} // namespace stagewright
