#include "widgets/timeline/rank_tints.h"

#include <QStringList>

#include "widgets/literals.h"

namespace stagewright {

QString stagesText(const std::set<int>& stages)
{
    if (stages.empty()) return {};
    QStringList words;
    for (const int stage : stages) {
        if (words.size() == 4 && stages.size() > 4) {
            words << u"…"_s;
            break;
        }
        words << QString::number(stage);
    }
    return (stages.size() == 1 ? u"stage "_s : u"stages "_s) + words.join(u", "_s);
}

RankTints::RankTints(const Schedule* schedule, int rank, const std::set<int>& stages)
    : m_schedule(schedule), // replicas have rows of their own, which say so
      m_copies(schedule != nullptr && schedule->replicas == 1 && schedule->placement.hasCopies()), m_rank(rank)
{
    int next = 0;
    for (const int stage : stages) {
        if (m_byStage.size() <= static_cast<std::size_t>(stage))
            m_byStage.resize(static_cast<std::size_t>(stage) + 1, 0);
        m_byStage[static_cast<std::size_t>(stage)] = next++;
    }
}

int RankTints::operator()(const Op& op) const
{
    if (!m_copies) return op.stage < m_byStage.size() ? m_byStage[op.stage] : 0;
    if (op.stage >= m_schedule->placement.stages()) return 0;
    const auto& copies = m_schedule->placement.copiesOf(op.stage);
    int copy = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        const bool holds = op.microbatch >= 0 ? copies[i].firstMicrobatch <= op.microbatch : copies[i].rank == m_rank;
        if (holds) copy = static_cast<int>(i);
    }
    return copy;
}

} // namespace stagewright
