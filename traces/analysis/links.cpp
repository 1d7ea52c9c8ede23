#include "traces/analysis/links.h"

#include <algorithm>
#include <map>

#include "schedules/timeline/message_view.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_ops.h"

namespace stagewright {

namespace {

std::vector<Coverage> computing(const Timeline& timeline, int step)
{
    std::vector<Coverage> ranks(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    const auto addTracks = [&](Lane lane, const std::vector<bool>* without) {
        for (const Track& track : timeline.tracks()) {
            const auto rank = static_cast<std::size_t>(track.rank);
            if (track.lane != lane || isCollectiveTrack(track) || (without != nullptr && (*without)[rank])) continue;
            const auto [first, last] = timeline.stepRange(track, step);
            for (SpanId id = first; id < last; ++id) {
                const Span& span = timeline.spans()[id];
                if (span.step != step || (lane == Lane::Compute && !isBusyOp(span.op))) continue;
                if (timeline.labelOf(span).find("nccl") == std::string_view::npos) ranks[rank].add(span.start, span.end);
            }
        }
    };
    addTracks(Lane::Kernel, nullptr);
    std::vector<bool> known;
    for (const Coverage& rank : ranks)
        known.push_back(!rank.empty());
    addTracks(Lane::Compute, &known);
    return ranks;
}

} // namespace

std::vector<LinkOverlap> analyseLinks(const Timeline& timeline, int step)
{
    std::vector<Coverage> busy = computing(timeline, step);
    std::map<std::pair<int, int>, LinkOverlap> links;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Send) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            if (timeline.spans()[id].step != step) continue;
            const std::optional<MessageView> message = messageOfSend(timeline, id);
            if (!message) continue;
            const int to = timeline.trackOf(message->receive).rank;
            const Nanos arrival = std::max(message->arrival, timeline.spans()[message->receive].end);
            LinkOverlap& link = links[{track.rank, to}];
            link.from = track.rank;
            link.to = to;
            ++link.messages;
            link.sendWait += std::max<Nanos>(0, message->begin - message->sendPosted);
            link.receiveWait += std::max<Nanos>(0, message->begin - message->receivePosted);
            link.transfer += arrival - message->begin;
            link.coveredBySender += busy[static_cast<std::size_t>(track.rank)].within(message->begin, arrival);
            link.coveredByReceiver += busy[static_cast<std::size_t>(to)].within(message->begin, arrival);
        }
    }
    std::vector<LinkOverlap> all;
    for (const auto& [ranks, link] : links)
        all.push_back(link);
    return all;
}

namespace analyses {

namespace {

bool tellsBothEnds(const Timeline& timeline)
{
    const auto edges = timeline.edges();
    return std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind == EdgeKind::Transfer; });
}

Result<AnalysisTable> linkTable(const Timeline& timeline, int step)
{
    AnalysisTable table;
    table.columns = {{"from", "From rank", ""},
                     {"to", "To rank", ""},
                     {"messages", "Messages", ""},
                     {"send_wait_ns", "Sender waits", "ns"},
                     {"receive_wait_ns", "Receiver waits", "ns"},
                     {"transfer_ns", "Transfer", "ns"},
                     {"covered_by_sender_ns", "Sender computes", "ns"},
                     {"covered_by_receiver_ns", "Receiver computes", "ns"},
                     {"exposed_ns", "Exposed", "ns"}};
    for (const LinkOverlap& link : analyseLinks(timeline, step))
        table.rows.push_back({std::int64_t{link.from}, std::int64_t{link.to}, link.messages, link.sendWait, link.receiveWait, link.transfer,
                              link.coveredBySender, link.coveredByReceiver, link.exposed()});
    return table;
}

} // namespace

extern const AnalysisInfo links;
const AnalysisInfo links{"links", "Waiting, transfer and overlap by link", "messages with both ends", tellsBothEnds, linkTable};

} // namespace analyses

} // namespace stagewright
