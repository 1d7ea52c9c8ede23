#include "widgets/panel/op_query.h"

#include <algorithm>

#include "schedules/kinds.h"

namespace stagewright {

bool OpQuery::empty() const
{
    return !rank && !stage && !microbatch && !slice && kinds.empty() && !op && words.isEmpty();
}

bool OpQuery::matches(const Timeline& timeline, const Track& track, const Span& span) const
{
    if (empty() || !fault.isEmpty()) return false;
    const Op& o = span.op;
    if (rank && track.rank != *rank) return false;
    if (stage && o.stage != *stage) return false;
    if (microbatch && (o.microbatch < 0 || *microbatch < o.microbatch || *microbatch >= o.microbatch + o.count)) return false;
    if (slice && o.slice != *slice) return false;
    if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), o.kind) == kinds.end()) return false;
    if (op && (o.kind != op->kind || o.stage != op->stage || o.microbatch != op->microbatch || (op->slice >= 0 && o.slice != op->slice)))
        return false;
    if (words.isEmpty()) return true;
    const QString name = QString::fromStdString(timeline.nameOf(span));
    return std::all_of(words.begin(), words.end(), [&](const QString& word) { return name.contains(word, Qt::CaseInsensitive); });
}

OpQuery parseOpQuery(const QString& text)
{
    OpQuery query;
    for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        const int colon = static_cast<int>(word.indexOf(QLatin1Char(':')));
        if (colon > 0) {
            const QString key = word.left(colon).toLower();
            bool number = false;
            const int value = word.mid(colon + 1).toInt(&number);
            std::optional<int>* target = nullptr;
            if (key == QLatin1String("rank") || key == QLatin1String("r")) target = &query.rank;
            if (key == QLatin1String("stage") || key == QLatin1String("s")) target = &query.stage;
            if (key == QLatin1String("mb") || key == QLatin1String("microbatch")) target = &query.microbatch;
            if (key == QLatin1String("slice")) target = &query.slice;
            if (target == nullptr) {
                query.fault = QStringLiteral("%1: unknown; use rank, stage, mb or slice").arg(word.left(colon));
            } else if (word.size() > colon + 1 && !number) {
                query.fault = QStringLiteral("%1: a number is needed").arg(word);
            } else if (number) {
                *target = value;
            }
            continue;
        }
        const std::string upper = word.toUpper().toStdString();
        bool known = false;
        for (std::size_t k = 0; k < opKindCount; ++k) {
            const auto kind = static_cast<OpKind>(k);
            if (ruleOf(kind).text != upper) continue;
            query.kinds.push_back(kind);
            known = true;
        }
        if (known) continue;
        if (auto op = parseOp(upper)) {
            query.op = *op;
            continue;
        }
        query.words << word;
    }
    return query;
}

std::vector<SpanId> findSpans(const Timeline& timeline, const OpQuery& query, int step)
{
    std::vector<SpanId> found;
    if (query.empty()) return found;
    for (const Track& track : timeline.tracks()) {
        auto [first, last] = step < 0 ? std::pair(track.begin, track.end) : timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if ((step < 0 || span.step == step) && query.matches(timeline, track, span)) found.push_back(id);
        }
    }
    std::stable_sort(found.begin(), found.end(), [&](SpanId a, SpanId b) { return timeline.spans()[a].start < timeline.spans()[b].start; });
    return found;
}

} // namespace stagewright
