// KeyMap: the keys of the views; three maps, one of them current. The help panel lists the current one.
#pragma once

#include <optional>
#include <vector>

#include <QKeyEvent>
#include <QKeySequence>
#include <QString>

namespace stagewright {

enum class ViewAction {
    ZoomIn,
    ZoomOut,
    PanLeft,
    PanRight,
    RowsUp,
    RowsDown,
    FitSelection,
    FitAll,
    HistoryBack,
    HistoryForward,
    PreviousOp,
    NextOp,
    PreviousStage,
    NextStage,
    PreviousDependency,
    NextDependency,
    NudgeLeft,
    NudgeRight, // edit mode
    Cancel,
};

enum class KeyMapName {
    Perfetto,
    Nsight,
    Tracy,
};

struct KeyBinding {
    ViewAction action;
    std::vector<QKeySequence> keys;
    QString title; // "Zoom in"
};

const std::vector<KeyBinding>& keyMap(KeyMapName name);
std::optional<ViewAction> actionOf(KeyMapName name, const QKeyEvent& event); // keypad +/− and Shift with + included

class ViewState;
// Zoom, pan, fit-all and history: shared by every view on the axis. False: the key means something else. Zooms keep
// the hover time, or the middle, in place. The view goes into the history once it rests.
bool performOnAxis(ViewState& state, ViewAction action);
bool performViewKey(ViewState& state, const QKeyEvent& event, KeyMapName map);

} // namespace stagewright
