// Views: the widgets that draw the run shown, and the fields beside them, by name. The window owns them; they live
// longer than every feature.
#pragma once

class QComboBox;

namespace stagewright {

class FindField;
class Legend;
class MemoryView;
class RunsPanel;
class SidePanel;
class TimelineView;

struct Views {
    RunsPanel* runs = nullptr;
    TimelineView* timeline = nullptr;
    MemoryView* memory = nullptr;
    Legend* legend = nullptr;
    SidePanel* side = nullptr;  // figures of the run shown
    QComboBox* steps = nullptr; // on the toolbar
    FindField* find = nullptr;  // on the toolbar
};

} // namespace stagewright
