// CompareOverlay: what each compared run saves or costs against the first, as a band between their ends, also in
// exported pictures.
#pragma once

#include <vector>

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

class CompareOverlay : public QObject, public Overlay {
public:
    explicit CompareOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Compared) {}
    // Per panel after the first: its change exceeds the noise; otherwise the band says so. Absent: it does.
    void setShows(std::vector<bool> shows);
    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;

private:
    std::vector<bool> m_shows;
};

} // namespace stagewright
