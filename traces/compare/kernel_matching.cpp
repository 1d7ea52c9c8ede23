#include "traces/compare/kernel_matching.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <tuple>

#include "traces/analysis/work_bytes.h"

namespace stagewright {

namespace {

struct Call {
    std::optional<Bytes> bytes;
    int rank = 0;
    Nanos start = 0;
    SpanId span = noSpan;
    Nanos duration = 0;
};

using Calls = std::vector<Call>;
using CallsByName = std::map<std::pair<Lane, std::string>, std::array<Calls, 2>>;

void collect(const Timeline& timeline, int step, std::size_t which, CallsByName& out)
{
    const WorkBytes sizes(timeline);
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel && track.lane != Lane::Copy) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step == step) out[{track.lane, timeline.nameOf(span)}][which].push_back({sizes.of(id), track.rank, span.start, id, span.duration()});
        }
    }
}

// Of one name and size: both sorted by rank, start.
KernelChange changeOf(const Calls& a, const Calls& b)
{
    KernelChange out;
    out.callsA = static_cast<std::int64_t>(a.size());
    out.callsB = static_cast<std::int64_t>(b.size());
    for (const Call& call : a) out.totalA += call.duration;
    for (const Call& call : b) out.totalB += call.duration;
    out.byOrder = !a.empty() && std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Call& x, const Call& y) { return x.rank == y.rank; });
    if (!out.byOrder) return out;
    const auto weight = [&](const MatchedCall& call) { return out.change() == 0 ? std::llabs(call.change()) : out.change() > 0 ? call.change()
                                                                                                                               : -call.change(); };
    for (std::size_t first = 0, end = 0; first < a.size(); first = end) {
        while (end < a.size() && a[end].rank == a[first].rank) ++end;
        for (std::size_t i = first; i < end; ++i) {
            const MatchedCall call{a[i].rank, static_cast<std::int64_t>(i - first) + 1, static_cast<std::int64_t>(end - first), a[i].span, b[i].span, a[i].duration, b[i].duration};
            if (weight(call) > (out.most ? weight(*out.most) : 0)) out.most = call;
        }
    }
    return out;
}

} // namespace

bool KernelChange::placed() const
{
    return most && callsA > 1 && static_cast<double>(std::llabs(most->change())) * static_cast<double>(callsA) >= 2 * static_cast<double>(std::llabs(change()));
}

std::vector<KernelChange> matchKernels(const Timeline& a, int stepA, const Timeline& b, int stepB)
{
    CallsByName byName;
    collect(a, stepA, 0, byName);
    collect(b, stepB, 1, byName);
    std::vector<KernelChange> out;
    for (auto& [key, runs] : byName) {
        const bool sized = std::all_of(runs.begin(), runs.end(), [](const Calls& calls) { return std::all_of(calls.begin(), calls.end(), [](const Call& call) { return call.bytes.has_value(); }); });
        std::map<std::optional<Bytes>, std::array<Calls, 2>> bySize;
        for (std::size_t which = 0; which < runs.size(); ++which)
            for (const Call& call : runs[which]) bySize[sized ? call.bytes : std::nullopt][which].push_back(call);
        for (auto& [size, both] : bySize) {
            for (Calls& calls : both)
                std::sort(calls.begin(), calls.end(), [](const Call& x, const Call& y) { return std::tie(x.rank, x.start, x.span) < std::tie(y.rank, y.start, y.span); });
            KernelChange& change = out.emplace_back(changeOf(both[0], both[1]));
            std::tie(change.lane, change.name) = key;
            change.bytes = size;
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const KernelChange& p, const KernelChange& q) { return std::llabs(p.change()) > std::llabs(q.change()); });
    return out;
}

} // namespace stagewright
