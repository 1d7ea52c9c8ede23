#include "schedules/timeline/message_view.h"

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

void addProducer(const Timeline& timeline, MessageView& view)
{
    for (const Edge& edge : timeline.edgesInto(view.send))
        if (edge.kind == EdgeKind::Order) {
            view.producer = edge.from;
            view.produced = timeline.spans()[edge.from].end;
            view.sendPosted = edge.arrival;
        }
    view.begin = timeline.spans()[view.send].start;
    view.arrival = timeline.spans()[view.send].end;
    view.receivePosted = timeline.spans()[view.receive].start;
}

} // namespace

std::vector<MessageView> messagesInto(const Timeline& timeline, SpanId consumer)
{
    std::vector<MessageView> out;
    for (const Edge& toConsumer : timeline.edgesInto(consumer)) {
        if (toConsumer.kind != EdgeKind::Transfer) continue;
        for (const Edge& toReceive : timeline.edgesInto(toConsumer.from)) {
            if (toReceive.kind != EdgeKind::Transfer) continue;
            MessageView view;
            view.consumer = consumer;
            view.receive = toConsumer.from;
            view.send = toReceive.from;
            addProducer(timeline, view);
            out.push_back(view);
        }
    }
    return out;
}

std::optional<MessageView> messageOfSend(const Timeline& timeline, SpanId send)
{
    for (const Edge& toReceive : timeline.edgesFrom(send)) {
        if (toReceive.kind != EdgeKind::Transfer) continue;
        MessageView view;
        view.send = send;
        view.receive = toReceive.to;
        for (const Edge& toConsumer : timeline.edgesFrom(toReceive.to))
            if (toConsumer.kind == EdgeKind::Transfer) view.consumer = toConsumer.to;
        addProducer(timeline, view);
        return view;
    }
    return std::nullopt;
}

std::optional<MessageView> messageOfWait(const Timeline& timeline, SpanId wait)
{
    const Span& stood = timeline.spans()[wait];
    if (!isMessage(stood.op.kind) || stood.label != 0) return std::nullopt;
    const bool send = isSend(stood.op.kind);
    const Track* track = timeline.trackOf(timeline.trackOf(wait).rank, send ? Lane::Send : Lane::Receive);
    if (!track) return std::nullopt;
    for (SpanId id = track->begin; id < track->end; ++id) {
        const Span& span = timeline.spans()[id];
        if (span.op != stood.op || span.step != stood.step) continue;
        if (send) return messageOfSend(timeline, id);
        for (const Edge& toReceive : timeline.edgesInto(id))
            if (toReceive.kind == EdgeKind::Transfer) return messageOfSend(timeline, toReceive.from);
    }
    return std::nullopt;
}

} // namespace stagewright
