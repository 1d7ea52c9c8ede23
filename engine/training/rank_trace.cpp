#include "engine/training/rank_trace.h"

namespace stagewright {

RankTrace::RankTrace(const TrainingState& state, int rank)
    : m_state(state), m_tracer(state.options.tracer.get()), m_rank(rank)
{
    if (m_tracer == nullptr) return;
    for (const PlannedOp& planned : state.plan.ranks[static_cast<std::size_t>(rank)].ops)
        m_names.push_back(rangeName(planned.op));
}

RankTrace::Range RankTrace::op(const Op& op, int position)
{
    if (m_tracer == nullptr) return {nullptr, {}};
    ExternalId id;
    id.step = m_state.step;
    id.rank = m_rank;
    id.position = position;
    if (position >= 0) return {m_tracer, id, m_names[static_cast<std::size_t>(position)].c_str()};
    id.role = isReduction(op.kind) ? ExternalRole::Norm : ExternalRole::Optimizer;
    id.position = besidePosition(op.stage, m_beside[{id.role, op.stage}]++);
    m_name = rangeName(op);
    return {m_tracer, id, m_name.c_str()};
}

RankTrace::MessageRange RankTrace::message(const MessageKey& key) const
{
    ExternalId send;
    send.role = ExternalRole::Send;
    send.step = m_state.step;
    if (m_tracer != nullptr) send.message = (*m_state.messageNumbers)(key);
    ExternalId receive = send;
    receive.role = ExternalRole::Receive;
    return {Range(m_tracer, send), Range(m_tracer, receive)};
}

RankTrace::Range RankTrace::other() const
{
    ExternalId id;
    id.role = ExternalRole::Other;
    id.step = m_state.step;
    id.rank = m_rank;
    return {m_tracer, id};
}

} // namespace stagewright
