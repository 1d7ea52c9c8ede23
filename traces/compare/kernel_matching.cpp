#include "traces/compare/kernel_matching.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/work_bytes.h"
#include "traces/foreign/graph_node.h"

namespace stagewright {

namespace {

struct Call {
    std::optional<Bytes> bytes;
    int rank = 0;
    Nanos start = 0;
    SpanId span = noSpan;
    Nanos duration = 0;
    std::string_view shape; // of the timeline, without the nodes of graphs: each run numbers its own
};

using Calls = std::vector<Call>;
using CallsByName = std::map<std::pair<Lane, std::string>, std::array<Calls, 2>>;

void collect(const Timeline& timeline, int step, std::size_t which, CallsByName& out)
{
    const WorkBytes sizes(timeline);
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId id, const Span& span) {
        out[{track.lane, timeline.nameOf(span)}][which].push_back(
            {sizes.of(id), track.rank, span.start, id, span.duration(), withoutGraph(timeline.shapeOf(span))});
    });
}

constexpr std::string_view inputsMark = "inputs ";

std::string_view withoutInputs(std::string_view shape)
{
    const std::size_t at = shape.find(inputsMark);
    return at == std::string_view::npos ? shape : shape.substr(0, at >= 2 ? at - 2 : 0);
}

// Shapes of the calls of a name, as far as all of them have one.
void evenShapes(std::array<Calls, 2>& runs)
{
    const auto all = [&runs](const auto& holds) {
        return std::all_of(runs.begin(), runs.end(),
                           [&](const Calls& calls) { return std::all_of(calls.begin(), calls.end(), holds); });
    };
    const bool inputs = all([](const Call& call) { return call.shape.find(inputsMark) != std::string_view::npos; });
    const bool grids = all([](const Call& call) { return !withoutInputs(call.shape).empty(); });
    if (inputs && (grids || all([](const Call& call) { return withoutInputs(call.shape).empty(); }))) return;
    for (Calls& calls : runs)
        for (Call& call : calls) call.shape = grids ? withoutInputs(call.shape) : std::string_view();
}

std::string shapeOfCalls(const Calls& calls)
{
    std::set<std::string_view> shapes;
    for (const Call& call : calls) shapes.insert(call.shape);
    if (shapes.size() > 1) return fmt::format("{} shapes", shapes.size());
    return shapes.empty() ? std::string() : std::string(*shapes.begin());
}

// Compares calls of one name, size and shape, both sorted by rank and start.
KernelChange changeOf(const Calls& a, const Calls& b)
{
    KernelChange out;
    out.callsA = static_cast<std::int64_t>(a.size());
    out.callsB = static_cast<std::int64_t>(b.size());
    for (const Call& call : a) out.totalA += call.duration;
    for (const Call& call : b) out.totalB += call.duration;
    out.byOrder = !a.empty() && std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                           [](const Call& x, const Call& y) { return x.rank == y.rank; });
    if (!out.byOrder) return out;
    const auto weight = [&](const MatchedCall& call) {
        return out.change() == 0 ? std::llabs(call.change()) : out.change() > 0 ? call.change() : -call.change();
    };
    for (std::size_t first = 0, end = 0; first < a.size(); first = end) {
        while (end < a.size() && a[end].rank == a[first].rank) ++end;
        for (std::size_t i = first; i < end; ++i) {
            const MatchedCall call{a[i].rank,
                                   static_cast<std::int64_t>(i - first) + 1,
                                   static_cast<std::int64_t>(end - first),
                                   a[i].span,
                                   b[i].span,
                                   a[i].duration,
                                   b[i].duration};
            if (weight(call) > (out.most ? weight(*out.most) : 0)) out.most = call;
        }
    }
    return out;
}

struct Group {
    std::optional<Bytes> bytes;
    std::array<Calls, 2> calls;
};

// Calls of one name by size and shape. Of one size, those of shapes that the other run lacks are one group if both runs
// have such: the kernel runs in both, launched otherwise.
std::vector<Group> groupsOf(const std::array<Calls, 2>& runs)
{
    const bool sized = std::all_of(runs.begin(), runs.end(), [](const Calls& calls) {
        return std::all_of(calls.begin(), calls.end(), [](const Call& call) { return call.bytes.has_value(); });
    });
    std::map<std::optional<Bytes>, std::map<std::string_view, std::array<Calls, 2>>> bySize;
    for (std::size_t which = 0; which < runs.size(); ++which)
        for (const Call& call : runs[which])
            bySize[sized ? call.bytes : std::nullopt][call.shape][which].push_back(call);
    std::vector<Group> out;
    for (auto& [size, byShape] : bySize) {
        const auto lacks = [&byShape = byShape](std::size_t which) {
            return std::any_of(byShape.begin(), byShape.end(),
                               [which](const auto& one) { return one.second[which].empty(); });
        };
        Group rest{size, {}};
        const bool join = lacks(0) && lacks(1);
        for (auto& [shape, calls] : byShape) {
            if (!join || (!calls[0].empty() && !calls[1].empty())) {
                out.push_back({size, std::move(calls)});
                continue;
            }
            for (std::size_t which : {0u, 1u})
                rest.calls[which].insert(rest.calls[which].end(), calls[which].begin(), calls[which].end());
        }
        if (join) out.push_back(std::move(rest));
    }
    return out;
}

} // namespace

std::string KernelChange::shapeText() const
{
    if (callsA == 0 || callsB == 0 || shapeA == shapeB) return callsA == 0 ? shapeB : shapeA;
    const auto partsOf = [](std::string_view shape) { // "grid 1×1×1", "block 64×1×1"
        std::vector<std::string_view> parts;
        for (std::size_t at = 0; at != std::string_view::npos;) {
            const std::size_t end = shape.find(", ", at);
            parts.push_back(shape.substr(at, end == std::string_view::npos ? end : end - at));
            at = end == std::string_view::npos ? end : end + 2;
        }
        return parts;
    };
    const auto ofA = partsOf(shapeA), ofB = partsOf(shapeB);
    const auto wordOf = [](std::string_view part) { return part.substr(0, part.find(' ')); };
    if (!std::equal(ofA.begin(), ofA.end(), ofB.begin(), ofB.end(),
                    [&](std::string_view x, std::string_view y) { return wordOf(x) == wordOf(y); }))
        return shapeA + " → " + shapeB;
    std::string text;
    for (std::size_t i = 0; i < ofA.size(); ++i) {
        if (i > 0) text += ", ";
        text += ofA[i];
        if (ofA[i] != ofB[i])
            text += fmt::format(" → {}", ofB[i].substr(std::min(ofB[i].size(), wordOf(ofB[i]).size() + 1)));
    }
    return text;
}

const char* KernelChange::matchedBy() const
{
    if (callsA == 0 || callsB == 0) return callsA == 0 ? "only B" : "only A";
    return byShape() ? (byOrder ? "shape and order" : "shape") : (byOrder ? "order" : "name");
}

bool KernelChange::placed() const
{
    return most && callsA > 1 &&
           static_cast<double>(std::llabs(most->change())) * static_cast<double>(callsA) >=
               2 * static_cast<double>(std::llabs(change()));
}

std::vector<KernelChange> matchKernels(const Timeline& a, int stepA, const Timeline& b, int stepB)
{
    CallsByName byName;
    collect(a, stepA, 0, byName);
    collect(b, stepB, 1, byName);
    std::vector<KernelChange> out;
    for (auto& [key, runs] : byName) {
        evenShapes(runs);
        for (Group& group : groupsOf(runs)) {
            auto& both = group.calls;
            for (Calls& calls : both)
                std::sort(calls.begin(), calls.end(), [](const Call& x, const Call& y) {
                    return std::tie(x.rank, x.start, x.span) < std::tie(y.rank, y.start, y.span);
                });
            KernelChange& change = out.emplace_back(changeOf(both[0], both[1]));
            std::tie(change.lane, change.name) = key;
            change.bytes = group.bytes;
            change.shapeA = shapeOfCalls(both[0]);
            change.shapeB = shapeOfCalls(both[1]);
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const KernelChange& p, const KernelChange& q) {
        return std::llabs(p.change()) > std::llabs(q.change());
    });
    return out;
}

} // namespace stagewright
