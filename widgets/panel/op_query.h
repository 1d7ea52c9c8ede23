// OpQuery: the search field's language. Words separated by spaces, all of which must match:
//   rank:2   stage:3   mb:5 (or microbatch:5)   slice:1   F B I W OPT … (a kind, as in op text)   2B5 (an op's text)
//   B is the backward in any form: whole, or split into I and W; the same in 2B5
//   >2ms  >=500us  <1.5s  <3u (a duration; u: the run's unit of cost)   lane:send
// Any other word, or several in double quotes, must occur in the span's name. Case is ignored. An empty query matches
// nothing.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include <QString>
#include <QStringList>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct OpQuery {
    std::optional<int> rank, stage, microbatch, slice;
    std::vector<OpKind> kinds; // any of them
    std::optional<Op> op;      // microbatch, stage and kind of it
    struct Bound {             // of the duration
        bool above = true;     // else below
        bool equal = false;
        double value = 0; // ns, or units of cost
        bool units = false;
    };
    std::vector<Bound> durations; // all of them
    std::optional<Lane> lane;
    QStringList words;
    QString fault; // not empty: what could not be read ("rank:x: a number is needed")

    bool empty() const;
    bool matches(const Timeline& timeline, const Track& track, const Span& span) const;
};

OpQuery parseOpQuery(const QString& text);

// Matching spans of a step (−1: of every step) on compute and communication lanes, by start, then rank. O(spans).
std::vector<SpanId> findSpans(const Timeline& timeline, const OpQuery& query, int step,
                              const std::stop_token& stop = {});

} // namespace stagewright
