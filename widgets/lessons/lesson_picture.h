// LessonPicture: a schedule as a small picture without text: its rows, ops in the palette, idle time hatched.
#pragma once

#include <vector>

#include <QPainter>

#include "schedules/timeline/timeline.h"
#include "traces/lessons/lesson.h"
#include "widgets/theme.h"

namespace stagewright {

struct LessonPicture {
    struct Bar {
        int row = 0;
        Nanos begin = 0;
        Nanos end = 0;
        OpKind kind{};
    };
    int rows = 0;
    Nanos end = 0;
    std::vector<Bar> bars;
    bool empty() const { return bars.empty(); }
};

LessonPicture lessonPictureOf(const Timeline& timeline, int mostRows = 4);
// What a lesson teaches: the schedule of its last solution, else that of its first step. Empty if neither can run.
LessonPicture lessonPictureOf(const lessons::Lesson& lesson);
void paintLessonPicture(QPainter& painter, const QRectF& rect, const LessonPicture& picture, const Theme& theme);

} // namespace stagewright
