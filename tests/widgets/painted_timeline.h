// A timeline view of a run, as pictures.
#pragma once

#include <memory>
#include <utility>

#include <QImage>
#include <QPainter>

#include "sample_timelines.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright::samples {

struct PaintedTimeline {
    ViewState state;
    TimelineView view{&state};
    explicit PaintedTimeline(std::shared_ptr<const Timeline> timeline)
    {
        view.resize(1000, 200);
        view.setRun(std::move(timeline));
    }
    QImage painted(const Theme& theme)
    {
        QImage image(1000, 200, QImage::Format_RGB32);
        QPainter painter(&image);
        view.paintTo(painter, QRectF(0, 0, 1000, 200), theme);
        return image;
    }
    QRectF rectOf(SpanId span) { return view.rectOf({0, span}).value_or(QRectF()); }
    QRectF rectOfOp(const char* text) { return rectOf(spanOf(*view.panels()[0]->timeline, text)); }
};

} // namespace stagewright::samples
