#include "widgets/lessons/lesson_picture.h"

#include <algorithm>

#include "traces/lessons/grading.h"
#include "traces/run/simulated_run.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

LessonPicture lessonPictureOf(const Timeline& timeline, int mostRows)
{
    LessonPicture picture;
    picture.rows = std::min(timeline.ranks(), mostRows);
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute || track.rank >= picture.rows) continue;
        for (const Span& span : timeline.spansOf(track))
            picture.bars.push_back(
                {track.rank, span.start - timeline.begin(), span.end - timeline.begin(), span.op.kind});
    }
    for (const LessonPicture::Bar& bar : picture.bars) picture.end = std::max(picture.end, bar.end);
    return picture;
}

LessonPicture lessonPictureOf(const lessons::Lesson& lesson)
{
    auto drawn = [](const lessons::Canvas& canvas) -> LessonPicture {
        auto order = lessons::passedThrough(canvas.schedule, canvas.settings);
        if (!order) return {};
        auto costs = lessons::costsFor(*order, canvas.settings);
        if (!costs) return {};
        auto run = simulatedRun(*order, *costs, lessons::channelsOf(canvas.settings));
        return run ? lessonPictureOf(*run->timeline) : LessonPicture{};
    };
    const auto solutions = lesson.all<lessons::Solution>();
    for (auto it = solutions.rbegin(); it != solutions.rend(); ++it)
        if (auto canvas = lessons::canvasOf(lesson, **it))
            if (LessonPicture picture = drawn(*canvas); !picture.empty()) return picture;
    for (const lessons::Step* step : lesson.all<lessons::Step>())
        if (auto canvas = lessons::startOf(lesson, *step))
            if (LessonPicture picture = drawn(*canvas); !picture.empty()) return picture;
    return {};
}

void paintLessonPicture(QPainter& painter, const QRectF& rect, const LessonPicture& picture, const Theme& theme)
{
    if (picture.empty() || picture.end <= 0 || picture.rows <= 0) return;
    constexpr double gap = 3;
    const double height = std::min(13.0, (rect.height() - gap * (picture.rows - 1)) / picture.rows);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    auto top = [&](int row) { return rect.top() + row * (height + gap); };
    for (int row = 0; row < picture.rows; ++row) {
        const QRectF line(rect.left(), top(row), rect.width(), height);
        painter.fillRect(line, theme.bubbleFill);
        painter.setPen(QPen(theme.bubbleHatch, 0.8));
        for (const QLineF& stroke : hatchLines(line, rect.topLeft(), 5)) painter.drawLine(stroke);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    const double scale = rect.width() / static_cast<double>(picture.end);
    for (const LessonPicture::Bar& bar : picture.bars) {
        const double x0 = rect.left() + static_cast<double>(bar.begin) * scale,
                     x1 = rect.left() + static_cast<double>(bar.end) * scale;
        painter.fillRect(QRectF(x0, top(bar.row), std::max(1.0, x1 - x0 - (x1 - x0 > 3 ? 0.8 : 0)), height),
                         theme.of(bar.kind).fill);
    }
    painter.restore();
}

} // namespace stagewright
