// CompareOverlay: what each compared run saves or costs against the first, as a band between their ends, also in
// exported pictures.
#pragma once

#include <utility>
#include <vector>

#include <QObject>
#include <QString>

#include "widgets/timeline/overlay.h"

namespace stagewright {

// The times that a band is between: of the steps, or where those are unknown from the first span to the last.
std::pair<Nanos, Nanos> comparedTimes(const TimelinePanel& a, const TimelinePanel& b);

class CompareOverlay : public QObject, public Overlay {
    Q_OBJECT
public:
    explicit CompareOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Compared) {}
    // Per panel after the first: why its change is not claimed, as the band says; empty or absent: it is.
    void setUnclaimed(std::vector<QString> why);
    const std::vector<QString>& unclaimed() const { return m_unclaimed; }
    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;

private:
    std::vector<QString> m_unclaimed;
};

} // namespace stagewright
