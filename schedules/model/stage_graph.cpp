#include "schedules/model/stage_graph.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagewright {

Result<StageGraph> StageGraph::of(int stages, std::vector<Edge> edges)
{
    std::sort(edges.begin(), edges.end());
    for (std::size_t i = 0; i < edges.size(); ++i) {
        const auto [from, to] = edges[i];
        if (from < 0 || to <= from || to >= stages)
            return fail(ErrorCode::Invalid, fmt::format("stage {} feeds stage {} of {} stages", from, to, stages),
                        "number the stages so that each feeds stages of higher numbers only");
        if (i > 0 && edges[i - 1] == edges[i])
            return fail(ErrorCode::Invalid, fmt::format("stage {} feeds stage {} twice", from, to), "give it once");
    }
    StageGraph out;
    if (edges != out.edges(stages)) out.m_edges = std::make_shared<const Edges>(Edges{stages, std::move(edges)});
    return out;
}

std::vector<StageGraph::Edge> StageGraph::edges(int stages) const
{
    if (m_edges) return m_edges->list;
    std::vector<Edge> chain;
    for (int stage = 0; stage + 1 < stages; ++stage) chain.emplace_back(stage, stage + 1);
    return chain;
}

bool StageGraph::operator==(const StageGraph& other) const
{
    if (m_edges == other.m_edges) return true;
    return m_edges && other.m_edges && m_edges->stages == other.m_edges->stages && m_edges->list == other.m_edges->list;
}

} // namespace stagewright
