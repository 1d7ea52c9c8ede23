#include "widgets/timeline/key_map.h"

#include <QCoreApplication>

#include "widgets/literals.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

namespace {

std::vector<KeyBinding> perfetto()
{
    using A = ViewAction;
    const auto key = [](int k) { return QKeySequence(k); };
    const auto keys = [](const char* text) { return QKeySequence(QString::fromLatin1(text)); };
    return {
        {A::ZoomIn, {key(Qt::Key_W), key(Qt::Key_Plus), key(Qt::Key_Equal)}, u"Zoom in"_s},
        {A::ZoomOut, {key(Qt::Key_S), key(Qt::Key_Minus)}, u"Zoom out"_s},
        {A::PanLeft, {key(Qt::Key_A), key(Qt::Key_Left)}, u"Pan left"_s},
        {A::PanRight, {key(Qt::Key_D), key(Qt::Key_Right)}, u"Pan right"_s},
        {A::RowsUp, {key(Qt::Key_Up)}, u"Scroll rows up"_s},
        {A::RowsDown, {key(Qt::Key_Down)}, u"Scroll rows down"_s},
        {A::FitSelection, {key(Qt::Key_F)}, u"Fit the selection; again: everything"_s},
        {A::FitAll, {key(Qt::Key_Home)}, u"Fit everything"_s},
        {A::HistoryBack, {key(Qt::Key_Backspace), keys("Alt+Left")}, u"Previous view"_s},
        {A::HistoryForward, {keys("Alt+Right")}, u"Next view"_s},
        {A::PreviousOp, {key(Qt::Key_Comma)}, u"Previous op on the rank"_s},
        {A::NextOp, {key(Qt::Key_Period)}, u"Next op on the rank"_s},
        {A::PreviousStage, {key(Qt::Key_PageUp)}, u"Same microbatch on the previous stage"_s},
        {A::NextStage, {key(Qt::Key_PageDown)}, u"Same microbatch on the next stage"_s},
        {A::PreviousDependency, {key(Qt::Key_BracketLeft)}, u"What the op needed"_s},
        {A::NextDependency, {key(Qt::Key_BracketRight)}, u"What the op unblocks"_s},
        {A::NudgeLeft, {keys("Ctrl+Left")}, u"Edit: move the op one place earlier"_s},
        {A::NudgeRight, {keys("Ctrl+Right")}, u"Edit: move the op one place later"_s},
        {A::Cancel, {key(Qt::Key_Escape)}, u"Cancel the drag, then deselect"_s},
    };
}

void replace(std::vector<KeyBinding>& map, ViewAction action, const std::vector<QKeySequence>& keys)
{
    for (KeyBinding& binding : map)
        if (binding.action == action) binding.keys = keys;
}

QKeySequence sequence(const char* text) { return QKeySequence(QString::fromLatin1(text)); }

std::vector<KeyBinding> nsight()
{
    auto map = perfetto();
    replace(map, ViewAction::ZoomIn, {sequence("+"), sequence("="), sequence("Ctrl+=")});
    replace(map, ViewAction::ZoomOut, {sequence("-"), sequence("Ctrl+-")});
    replace(map, ViewAction::PanLeft, {sequence("Left")});
    replace(map, ViewAction::PanRight, {sequence("Right")});
    replace(map, ViewAction::FitSelection, {sequence("Z"), sequence("F")});
    replace(map, ViewAction::FitAll, {sequence("Ctrl+0"), sequence("Home")});
    return map;
}

std::vector<KeyBinding> tracy()
{
    auto map = perfetto();
    replace(map, ViewAction::ZoomIn, {sequence("W"), sequence("Up"), sequence("+"), sequence("=")});
    replace(map, ViewAction::ZoomOut, {sequence("S"), sequence("Down"), sequence("-")});
    replace(map, ViewAction::RowsUp, {sequence("Shift+Up")});
    replace(map, ViewAction::RowsDown, {sequence("Shift+Down")});
    return map;
}

} // namespace

const std::vector<KeyBinding>& keyMap(KeyMapName name)
{
    static const std::vector<KeyBinding> maps[] = {perfetto(), nsight(), tracy()};
    return maps[static_cast<std::size_t>(name)];
}

std::optional<ViewAction> actionOf(KeyMapName name, const QKeyEvent& event)
{
    Qt::KeyboardModifiers modifiers = event.modifiers() & ~Qt::KeypadModifier;
    // On many layouts + needs Shift, and so do [ and ]: only the character counts.
    const bool isLetter = event.key() >= Qt::Key_A && event.key() <= Qt::Key_Z;
    const bool isCharacter = event.key() > Qt::Key_Space && event.key() < Qt::Key_AsciiTilde && !isLetter;
    if (isCharacter) modifiers &= ~Qt::ShiftModifier;
    const QKeySequence pressed(QKeyCombination(modifiers, static_cast<Qt::Key>(event.key())));
    for (const KeyBinding& binding : keyMap(name)) {
        for (const QKeySequence& keys : binding.keys) {
            if (keys == pressed) return binding.action;
        }
    }
    return std::nullopt;
}

bool performOnAxis(ViewState& state, ViewAction action)
{
    constexpr double zoomStep = 1.25, panStep = 0.12;
    const TimeRange range = state.visible();
    const auto hover = state.hoverTime();
    const Nanos anchor = hover && range.contains(*hover) ? *hover : range.begin + range.duration() / 2;
    switch (action) {
    case ViewAction::ZoomIn: state.setVisible(zoomed(range, 1 / zoomStep, anchor), false); return true;
    case ViewAction::ZoomOut: state.setVisible(zoomed(range, zoomStep, anchor), false); return true;
    case ViewAction::PanLeft: state.setVisible(panned(range, -panStep), false); return true;
    case ViewAction::PanRight: state.setVisible(panned(range, panStep), false); return true;
    case ViewAction::FitAll: state.fitAll(); return true;
    case ViewAction::HistoryBack: state.goBack(); return true;
    case ViewAction::HistoryForward: state.goForward(); return true;
    default: return false;
    }
}

bool performViewKey(ViewState& state, const QKeyEvent& event, KeyMapName map)
{
    const auto action = actionOf(map, event);
    return action && performOnAxis(state, *action);
}

} // namespace stagewright
