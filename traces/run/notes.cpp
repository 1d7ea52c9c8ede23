#include "traces/run/note_text.h"

#include <fmt/format.h>

#include "schedules/base/step_number.h"

namespace stagewright {

std::string_view toText(NoteAnchor anchor) { return anchor == NoteAnchor::Op ? "op" : "range"; }

Note noteOnSpan(const Timeline& timeline, SpanId id)
{
    const Span& span = timeline.spans()[id];
    const Track& track = timeline.trackOf(id);
    Note note;
    note.anchor = NoteAnchor::Op;
    note.step = span.step;
    note.rank = track.rank;
    note.op = timeline.nameOf(span);
    const auto [first, last] = timeline.stepRange(track, span.step);
    for (SpanId other = first; other < last && other < id; ++other)
        if (timeline.spans()[other].step == span.step && timeline.nameOf(timeline.spans()[other]) == note.op)
            ++note.occurrence;
    return note;
}

SpanId spanOfNote(const Timeline& timeline, const Note& note)
{
    if (note.anchor != NoteAnchor::Op) return noSpan;
    const auto op = parseOp(note.op);
    for (const Track& track : timeline.tracks()) { // the compute lane comes first
        if (track.rank != note.rank) continue;
        const auto [first, last] = timeline.stepRange(track, note.step);
        int seen = 0;
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != note.step || (op && span.label == 0 && span.op.stage != op->stage)) continue;
            if (timeline.nameOf(span) == note.op && seen++ == note.occurrence) return id;
        }
    }
    return noSpan;
}

Nanos beginOfStep(const Timeline& timeline, int step)
{
    bool any = false;
    Nanos begin = timeline.begin();
    for (const StepMark& mark : timeline.stepMarks()) {
        if (mark.step != step) continue;
        begin = any ? std::min(begin, mark.begin) : mark.begin;
        any = true;
    }
    return begin;
}

std::string placeText(const Note& note) { return placeText(note, 1); }

std::string placeText(const Note& note, Nanos unit)
{
    if (note.anchor == NoteAnchor::Op)
        return fmt::format("{} on rank {}, step {}", note.op, note.rank, stepNumber(note.step));
    const std::string ranks = note.rank < 0                ? "all ranks"
                              : note.rank == note.lastRank ? fmt::format("rank {}", note.rank)
                                                           : fmt::format("ranks {} to {}", note.rank, note.lastRank);
    const double scale = unit == 1 ? 1e6 : static_cast<double>(unit);
    return fmt::format("{}, {:.6g} to {:.6g} {}, step {}", ranks, static_cast<double>(note.begin) / scale,
                       static_cast<double>(note.end) / scale, unit == 1 ? "ms" : "units", stepNumber(note.step));
}

} // namespace stagewright
