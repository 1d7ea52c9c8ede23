#include "widgets/timeline/overlay.h"

#include "widgets/timeline/timeline_view.h"

namespace stagewright {

Overlay::~Overlay()
{
    if (m_view != nullptr) m_view->remove(this);
}

ViewState& Overlay::state() const { return *m_view->viewState(); }

const TimelineScene& Overlay::scene() const { return m_view->scene(); }

void Overlay::update() const
{
    if (m_view != nullptr) m_view->update();
}

void paintOverlays(QPainter& painter, const TimelineScene& scene, const Theme& theme,
                   const std::vector<Overlay*>& overlays, const std::optional<PaintedMarks>& exported)
{
    for (const Overlay* overlay : overlays) {
        const OverlayLayer layer = overlay->layer();
        if (exported && (layer >= OverlayLayer::Edited || (layer == OverlayLayer::Selected && !exported->selection) ||
                         (layer == OverlayLayer::Explained && !exported->notes)))
            continue;
        if (layer != OverlayLayer::Rows && scene.axis.degenerate()) continue;
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        if (layer != OverlayLayer::Rows) painter.setClipRect(scene.plotRect(), Qt::IntersectClip);
        overlay->paint(painter, scene, theme);
        painter.restore();
    }
}

} // namespace stagewright
