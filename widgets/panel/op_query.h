// OpQuery: the search field's language. Words separated by spaces, all of which must hold:
//   rank:2   stage:3   mb:5 (or microbatch:5)   slice:1   F B I W OPT … (a kind, as in op text)   2B5 (an op's text)
// Any other word must occur in the span's name. Case does not matter. An empty query matches nothing.
#pragma once

#include <optional>
#include <vector>

#include <QString>
#include <QStringList>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct OpQuery {
    std::optional<int> rank, stage, microbatch, slice;
    std::vector<OpKind> kinds; // any of them
    std::optional<Op> op;      // microbatch, stage and kind of it
    QStringList words;
    QString fault; // not empty: what could not be read ("rank:x: a number is needed")

    bool empty() const;
    bool matches(const Timeline& timeline, const Track& track, const Span& span) const;
};

OpQuery parseOpQuery(const QString& text);

// Matching spans of a step (−1: of every step) on compute and communication lanes, by start, then rank. O(spans).
std::vector<SpanId> findSpans(const Timeline& timeline, const OpQuery& query, int step);

} // namespace stagewright
