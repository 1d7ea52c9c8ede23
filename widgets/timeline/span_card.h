// What the hover card says about a span or about idle time.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "widgets/hover_card.h"
#include "widgets/timeline/row_plan.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// Bubble reports of single steps of a panel that shows several, computed on first use.
class CauseCache {
public:
    const BubbleReport* of(const TimelinePanel& panel, int step); // nullptr: the step has none
    void clear() { m_reports.clear(); }

private:
    std::map<std::pair<const Timeline*, int>, std::optional<BubbleReport>> m_reports;
};

// What a span is called and how its slice is coloured.
struct WorkLook {
    QString name;                  // kernels by their brief name
    bool isOp = false;             // an op or a message of the schedule: it has a kind and a stage
    std::optional<KernelClass> of; // of kernels and copies
    LaneLook look = LaneLook::Ops;
    unsigned kind = 0; // as Slice::kind
    const Fill& fill(const Theme& theme) const;
};
WorkLook lookOfWork(const Timeline& timeline, bool byClass, SpanId id); // byClass: of the panel

// A collective of which several ranks are known: what it waits for or makes others wait, and how long it transfers.
struct FactRow {
    QString title, text, tip;
};
std::vector<FactRow> collectiveFacts(const Timeline& timeline, SpanId span, const Units& units);

// A kernel's grid, block and inputs, as far as the run says: title and sizes.
std::vector<std::pair<QString, QString>> launchShape(const Timeline& timeline, const Span& work);

CardText spanCard(const TimelinePanel& panel, SpanId span, const Theme& theme, CauseCache& causes,
                  TimeOrigin from = TimeOrigin::Step);
// What runs on a rank's devices at an axis time, stream by stream.
CardText deviceCard(const TimelinePanel& panel, int rankIndex, Nanos axisTime, TimeOrigin from = TimeOrigin::Step);
// The idle time of a rank at an axis time; empty if the rank is busy or outside the panel.
CardText idleCard(const TimelinePanel& panel, int rankIndex, Nanos axisTime, CauseCache& causes,
                  TimeOrigin from = TimeOrigin::Step);
CardText groupCard(const TimelinePanel& panel, const RankGroup& group, Nanos axisTime); // empty: outside the panel

} // namespace stagewright
