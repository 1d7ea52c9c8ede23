#include "traces/analysis/links.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "schedules/timeline/message_view.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/work_bytes.h"

namespace stagewright {

namespace {

struct Computing {
    Coverage known;
    Coverage graphs; // traced as wholes: they compute or communicate
    std::optional<Nanos> within(Nanos begin, Nanos end)
    {
        return graphs.within(begin, end) > 0 ? std::nullopt : std::optional(known.within(begin, end));
    }
};

std::vector<Computing> computing(const Timeline& timeline, int step)
{
    std::vector<Computing> ranks(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    KernelClasses classes;
    const auto addTracks = [&](Lane lane, const std::vector<bool>* without) {
        for (const Track& track : timeline.tracks()) {
            const auto rank = static_cast<std::size_t>(track.rank);
            if (track.lane != lane || isCollectiveTrack(track) || (without != nullptr && (*without)[rank])) continue;
            const auto [first, last] = timeline.stepRange(track, step);
            for (SpanId id = first; id < last; ++id) {
                const Span& span = timeline.spans()[id];
                if (span.step != step || (lane == Lane::Compute && !isBusyOp(span.op))) continue;
                if (lane == Lane::Kernel && timeline.labelOf(span) == wholeGraph)
                    ranks[rank].graphs.add(span.start, span.end);
                else if (lane == Lane::Compute || !isCommunication(classes.of(timeline, track, span)))
                    ranks[rank].known.add(span.start, span.end);
            }
        }
    };
    addTracks(Lane::Kernel, nullptr);
    std::vector<bool> known;
    known.reserve(ranks.size());
    for (const Computing& rank : ranks) known.push_back(!rank.known.empty() || !rank.graphs.empty());
    addTracks(Lane::Compute, &known);
    return ranks;
}

bool tellsBothEnds(const Timeline& timeline)
{
    const auto edges = timeline.edges();
    return std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind == EdgeKind::Transfer; });
}

// A message from `begin` to `arrival`.
void add(LinkOverlap& link, int from, int to, Nanos begin, Nanos arrival, std::vector<Computing>& busy)
{
    const auto cover = [&](std::optional<Nanos>& sum, int rank) {
        const auto part = busy[static_cast<std::size_t>(rank)].within(begin, arrival);
        sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
    };
    link.from = from;
    link.to = to;
    ++link.messages;
    link.transfer += arrival - begin;
    cover(link.coveredBySender, from);
    cover(link.coveredByReceiver, to);
}

} // namespace

std::vector<LinkOverlap> analyseLinks(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    const int step = context.step();
    std::vector<Computing> busy = computing(timeline, step);
    std::map<std::pair<int, int>, LinkOverlap> links;
    if (!tellsBothEnds(timeline) && whyNoArrivals(timeline).empty())
        for (const Crossing& crossing : context.crossings())
            add(links[{crossing.fromRank, crossing.rank}], crossing.fromRank, crossing.rank, crossing.produced,
                crossing.arrival, busy);
    const WorkBytes sizes(timeline);
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
            add(link, track.rank, to, message->begin, arrival, busy);
            if (const auto bytes = sizes.of(id)) {
                link.bytes = link.bytes.value_or(0) + *bytes;
                link.sizedTransfer += arrival - message->begin;
            }
            link.sendWait = link.sendWait.value_or(0) + std::max<Nanos>(0, message->begin - message->sendPosted);
            link.receiveWait =
                link.receiveWait.value_or(0) + std::max<Nanos>(0, message->begin - message->receivePosted);
        }
    }
    std::vector<LinkOverlap> all;
    all.reserve(links.size());
    for (const auto& [ranks, link] : links) all.push_back(link);
    return all;
}

namespace analyses {

namespace {

std::vector<TableColumn> linkColumns()
{
    return {
        {"from", "From rank", ColumnKind::Whole},
        {"to", "To rank", ColumnKind::Whole},
        {"messages", "Messages", ColumnKind::Count},
        {"send_wait_ns", "Sender waits", ColumnKind::Time,
         "Posted by the sender until the receiver is there, too, and the channel is free."},
        {"receive_wait_ns", "Receiver waits", ColumnKind::Time, "Posted by the receiver until the transfer starts."},
        {"transfer_ns", "Transfer", ColumnKind::Time, "From then until it has arrived."},
        {"covered_by_sender_ns", "Sender computes", ColumnKind::Time,
         "The part of the transfer in which the sender computes; unknown beside a CUDA graph traced as a whole."},
        {"covered_by_receiver_ns", "Receiver computes", ColumnKind::Time,
         "The part of the transfer in which the receiver computes."},
        {"exposed_ns", "Exposed", ColumnKind::Time, "Transfer that the receiver does not compute through."},
        {"bytes", "Bytes", ColumnKind::Size, "Of the messages whose size the run has."},
        {"gigabytes_per_second", "GB/s", ColumnKind::Real,
         "These bytes over the transfer of these messages; 10⁹ bytes."}};
}

Result<AnalysisRows> linkRows(const StepContext& context)
{
    AnalysisRows out;
    Nanos transfer = 0;
    std::optional<Nanos> exposed = 0;
    const std::vector<LinkOverlap> links = analyseLinks(context);
    for (const LinkOverlap& link : links) {
        transfer += link.transfer;
        exposed = exposed && link.exposed() ? std::optional(*exposed + *link.exposed()) : std::nullopt;
    }
    out.figures = {
        {"transfer_ns", "In transfer", ColumnKind::Time, static_cast<double>(transfer)},
        {"exposed", "Not hidden by the receiver's compute", ColumnKind::Share,
         exposed && transfer > 0 ? static_cast<double>(*exposed) / static_cast<double>(transfer) : std::nan("")}};
    if (links.empty()) out.figures.clear();
    for (const LinkOverlap& link : links)
        out.rows.push_back({std::int64_t{link.from}, std::int64_t{link.to}, link.messages, cellOf(link.sendWait),
                            cellOf(link.receiveWait), link.transfer, cellOf(link.coveredBySender),
                            cellOf(link.coveredByReceiver), cellOf(link.exposed()),
                            link.bytes ? TableCell(std::int64_t{*link.bytes}) : TableCell(),
                            link.bytes ? cellOf(gigabytesPerSecond(*link.bytes, link.sizedTransfer)) : TableCell()});
    return out;
}

} // namespace

extern const AnalysisInfo links;
const AnalysisInfo links{"links",
                         "Waiting, transfer and overlap by link",
                         linkColumns,
                         unknownWithoutMessages,
                         linkRows,
                         false,
                         ReportPart::Kernels};

} // namespace analyses

} // namespace stagewright
