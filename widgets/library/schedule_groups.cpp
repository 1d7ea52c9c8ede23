#include "widgets/library/schedule_groups.h"

#include <map>
#include <optional>

#include <QCoreApplication>
#include <QStringList>

#include "widgets/library/schedule_preview.h"
#include "widgets/literals.h"

namespace stagewright {

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

QString titleOf(ScheduleGroup group)
{
    switch (group) {
    case ScheduleGroup::OneStage: return u"One stage on each rank"_s;
    case ScheduleGroup::SeveralStages: return u"Several stages on each rank"_s;
    case ScheduleGroup::SplitBackward: return u"Backward in two parts"_s;
    case ScheduleGroup::TwoChains: return u"Several chains through the ranks"_s;
    case ScheduleGroup::Slices: return u"Sequence slices"_s;
    case ScheduleGroup::Recompute: return u"Recomputation"_s;
    case ScheduleGroup::Stale: return u"No flush: older weights"_s;
    }
    return {};
}

static ScheduleGroup groupOfSchedule(const Schedule& schedule)
{
    if (schedule.weights != WeightRule::Synchronous) return ScheduleGroup::Stale;
    if (schedule.placement.hasCopies()) return ScheduleGroup::TwoChains;
    bool slices = false, recompute = false;
    for (const auto& list : schedule.order)
        for (const Op& op : list) {
            slices = slices || op.slice >= 0;
            recompute = recompute || isRecompute(op.kind);
        }
    if (slices) return ScheduleGroup::Slices;
    if (recompute) return ScheduleGroup::Recompute;
    if (schedule.splitsBackward()) return ScheduleGroup::SplitBackward;
    return schedule.stages > schedule.ranks ? ScheduleGroup::SeveralStages : ScheduleGroup::OneStage;
}

ScheduleGroup groupOf(const ScheduleInfo& info)
{
    static std::map<std::string_view, ScheduleGroup> known;
    const auto [at, isNew] = known.try_emplace(info.name, ScheduleGroup::OneStage);
    if (!isNew) return at->second;
    auto made = makeSchedule(info.name, Shape{4, 8, 0});
    if (!made) {
        if (const auto nearest = nearestShape(std::string(info.name), Shape{4, 8, 0}))
            made = makeSchedule(info.name, *nearest);
    }
    if (made) at->second = groupOfSchedule(*made);
    return at->second;
}

bool matches(const ScheduleInfo& info, const QString& text)
{
    const QString all = words(info.title) + u' ' + words(info.name) + u' ' + words(info.aliases);
    for (const QString& word : text.split(u' ', Qt::SkipEmptyParts))
        if (!all.contains(word, Qt::CaseInsensitive)) return false;
    return true;
}

} // namespace stagewright
