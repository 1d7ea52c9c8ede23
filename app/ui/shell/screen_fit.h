// Where a window goes on a screen, with the frame that a window manager puts around it.
#pragma once

#include <QRect>
#include <QSize>

namespace stagewright {

// The size a first window asks for, before its frame is known: what is wanted, less where the screen has no room for it
// and a frame.
QSize firstSize(QSize wanted, QSize room);

// The frame's top left and the window's size (without its frame) so that the frame lies within the screen's free room:
// moved no more than needed, and made smaller, not below `least`, where it is too large. What is then larger still
// starts at the room's top left.
QRect keptOnScreen(const QRect& frame, QSize window, const QRect& room, QSize least);

} // namespace stagewright
