#include "app/ui/shell/screen_fit.h"

#include <algorithm>

namespace stagewright {

static constexpr QSize usualFrame(8, 40);

QSize firstSize(QSize wanted, QSize room) { return wanted.boundedTo(room - usualFrame); }

QRect keptOnScreen(const QRect& frame, QSize window, const QRect& room, QSize least)
{
    const QSize size = (window - (frame.size() - room.size()).expandedTo(QSize(0, 0))).expandedTo(least);
    const QSize outer = size + (frame.size() - window);
    const auto within = [](int at, int length, int from, int to) { return std::max(from, std::min(at, to - length)); };
    return {QPoint(within(frame.left(), outer.width(), room.left(), room.left() + room.width()),
                   within(frame.top(), outer.height(), room.top(), room.top() + room.height())),
            size};
}

} // namespace stagewright
