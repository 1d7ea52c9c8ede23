// StageGraph: which stage feeds which with its activations; gradients come back the same way. A schedule's graph is the
// chain unless it says otherwise: each stage feeds the next. A value that is cheap to copy.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/kinds.h"

namespace stagewright {

class StageGraph {
public:
    using Edge = std::pair<int, int>; // a stage and one that it feeds, of a higher number

    StageGraph() = default; // the chain, of any length
    // Equal to the chain where these edges are its own. Fails (Invalid) where an edge leads back or to a stage beyond
    // the last one, or is given twice.
    static Result<StageGraph> of(int stages, std::vector<Edge> edges);

    bool isChain() const { return m_edges == nullptr; }
    int stages() const { return m_edges ? m_edges->stages : 0; } // of the chain: 0, as it has any number
    std::vector<Edge> edges(int stages) const;                   // ascending

    // Calls visit(other) for each stage on this side of `stage`, ascending.
    template <typename Visit>
    void each(int stage, StageSide side, int stages, Visit&& visit) const
    {
        if (side == StageSide::Own) return visit(stage);
        if (!m_edges) {
            const int other = stage + (side == StageSide::Before ? -1 : 1);
            if (other >= 0 && other < stages) visit(other);
            return;
        }
        for (const Edge& edge : m_edges->list)
            if ((side == StageSide::Before ? edge.second : edge.first) == stage)
                visit(side == StageSide::Before ? edge.first : edge.second);
    }
    // Calls visit(need, stage) for each stage of which this op needs something.
    template <typename Visit>
    void eachNeed(const Op& op, int stages, Visit&& visit) const
    {
        for (const Need& need : ruleOf(op.kind).needs)
            each(op.stage, need.side, stages, [&](int stage) { visit(need, stage); });
    }

    bool operator==(const StageGraph& other) const;

private:
    struct Edges {
        int stages = 0;
        std::vector<Edge> list; // ascending
    };
    std::shared_ptr<const Edges> m_edges; // none: the chain
};

} // namespace stagewright
