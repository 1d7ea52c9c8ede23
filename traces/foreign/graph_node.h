// Which CUDA graph a kernel was launched by, and as which of its nodes: the last part of the shape of its launch
// (Timeline::shapeOf), "…, graph 3, node 17". A graph that was traced as a whole has no node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/text.h"

namespace stagewright {

struct CudaGraphNode {
    std::optional<std::int64_t> graph;
    std::optional<std::int64_t> node;

    bool known() const { return graph || node; }
};

// CUPTI's ids: that of a node holds its graph's in its upper half. 0 or less: none.
inline CudaGraphNode graphNodeOf(std::int64_t graph, std::int64_t node)
{
    CudaGraphNode of;
    if (node > 0) of.node = node & 0xffffffff;
    if (graph > 0 || node >> 32 > 0) of.graph = graph > 0 ? graph : node >> 32;
    return of;
}

inline constexpr std::string_view graphMark = "graph ", nodeMark = "node ";

inline std::size_t graphAt(std::string_view shape) // where that part starts, with the comma before it; its end: none
{
    for (const std::string_view mark : {graphMark, nodeMark}) {
        if (shape.starts_with(mark)) return 0;
        const std::string text = std::string(", ").append(mark);
        if (const std::size_t at = shape.find(text); at != std::string_view::npos) return at;
    }
    return shape.size();
}
inline std::string_view withoutGraph(std::string_view shape) { return shape.substr(0, graphAt(shape)); }

inline std::string withGraph(std::string_view shape, const CudaGraphNode& of)
{
    std::string text(shape);
    const auto add = [&text](std::string_view mark, const std::optional<std::int64_t>& number) {
        if (number) text.append(text.empty() ? "" : ", ").append(mark).append(std::to_string(*number));
    };
    add(graphMark, of.graph);
    add(nodeMark, of.node);
    return text;
}

inline CudaGraphNode graphNodeIn(std::string_view shape)
{
    CudaGraphNode of;
    const std::string_view part = shape.substr(graphAt(shape));
    const auto number = [part](std::string_view mark) {
        const std::size_t at = part.find(mark);
        const std::string_view rest = at == std::string_view::npos ? std::string_view() : part.substr(at + mark.size());
        return wholeOf<std::int64_t>(rest.substr(0, rest.find(',')));
    };
    of.graph = number(graphMark);
    of.node = number(nodeMark);
    return of;
}

} // namespace stagewright
