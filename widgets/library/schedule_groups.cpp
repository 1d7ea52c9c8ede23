#include "widgets/library/schedule_groups.h"

#include <map>
#include <optional>

#include <QCoreApplication>
#include <QStringList>

#include "widgets/library/schedule_preview.h"

namespace stagewright {

struct GroupText {
    Q_DECLARE_TR_FUNCTIONS(ScheduleBrowser)
};

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

QString titleOf(ScheduleGroup group)
{
    switch (group) {
    case ScheduleGroup::OneStage: return GroupText::tr("One stage on each rank");
    case ScheduleGroup::SeveralStages: return GroupText::tr("Several stages on each rank");
    case ScheduleGroup::SplitBackward: return GroupText::tr("Backward in two parts");
    case ScheduleGroup::TwoChains: return GroupText::tr("Several chains through the ranks");
    case ScheduleGroup::Slices: return GroupText::tr("Sequence slices");
    case ScheduleGroup::Recompute: return GroupText::tr("Recomputation");
    case ScheduleGroup::Stale: return GroupText::tr("No flush: older weights");
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
    const QString all =
        words(info.title) + QLatin1Char(' ') + words(info.name) + QLatin1Char(' ') + words(info.aliases);
    for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts))
        if (!all.contains(word, Qt::CaseInsensitive)) return false;
    return true;
}

} // namespace stagewright
