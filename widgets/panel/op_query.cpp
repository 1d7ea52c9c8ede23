#include "widgets/panel/op_query.h"

#include <algorithm>

#include <QCoreApplication>
#include <QRegularExpression>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

// ">2ms": nullopt if the word does not start like a bound; a fault if it is invalid.
std::optional<OpQuery::Bound> boundOf(const QString& word, QString& fault)
{
    static const QRegularExpression form(u"^(?:dur(?:ation)?:)?([<>])(=?)([0-9.,]*)([a-zA-Z\u00b5\u03bc]*)$"_s);
    const auto match = form.match(word);
    if (!match.hasMatch()) return std::nullopt;
    OpQuery::Bound bound;
    bound.above = match.captured(1) == ">"_L1;
    bound.equal = !match.captured(2).isEmpty();
    bool number = false;
    bound.value = match.captured(3).replace(u',', u'.').toDouble(&number);
    QString unit = match.captured(4).toLower();
    unit.replace(QChar(0x00b5), u'u').replace(QChar(0x03bc), u'u');
    const std::pair<const char*, double> units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const auto* known = std::find_if(std::begin(units), std::end(units),
                                     [&](const auto& one) { return unit == QLatin1String(one.first); });
    bound.units = unit == "u"_L1 || unit == "unit"_L1 || unit == "units"_L1;
    if (!number)
        fault = u"%1: a number is needed, as in >2ms"_s.arg(word);
    else if (!bound.units && known == std::end(units))
        fault = u"%1: a unit is needed: ns, us, ms, s, or units in a simulated run"_s.arg(word);
    else if (!bound.units)
        bound.value *= known->second;
    return bound;
}

// B also finds a split backward.
bool isKind(OpKind asked, OpKind kind) { return kind == asked || (isFullBackward(asked) && isSplitBackward(kind)); }

// Words, those in double quotes kept together.
QStringList wordsOf(const QString& text)
{
    QStringList words;
    static const QRegularExpression form(u"\"([^\"]*)\"?|(\\S+)"_s);
    for (auto it = form.globalMatch(text); it.hasNext();) {
        const auto match = it.next();
        words << (match.capturedLength(2) > 0 ? match.captured(2) : u'"' + match.captured(1));
    }
    return words;
}

} // namespace

bool OpQuery::empty() const
{
    return durations.empty() && !lane && !rank && !stage && !microbatch && !slice && kinds.empty() && !op &&
           words.isEmpty();
}

bool OpQuery::matches(const Timeline& timeline, const Track& track, const Span& span) const
{
    if (empty() || !fault.isEmpty()) return false;
    const Op& o = span.op;
    // a kernel or range that belongs to no op: it has neither kind nor stage
    const bool named = span.label != 0 && o == Op{};
    if (named && (stage || microbatch || slice || op || !kinds.empty())) return false;
    if (rank && track.rank != *rank) return false;
    if (stage && o.stage != *stage) return false;
    if (microbatch && (o.microbatch < 0 || *microbatch < o.microbatch || *microbatch >= o.microbatch + o.count))
        return false;
    if (slice && o.slice != *slice) return false;
    if (lane && track.lane != *lane) return false;
    for (const Bound& bound : durations) {
        const double value =
            static_cast<double>(span.duration()) / (bound.units ? static_cast<double>(timeline.timeUnit()) : 1);
        if (bound.above ? !(value > bound.value || (bound.equal && value == bound.value))
                        : !(value < bound.value || (bound.equal && value == bound.value)))
            return false;
    }
    if (!kinds.empty() && std::none_of(kinds.begin(), kinds.end(), [&](OpKind kind) { return isKind(kind, o.kind); }))
        return false;
    if (op && (!isKind(op->kind, o.kind) || o.stage != op->stage || o.microbatch != op->microbatch ||
               (op->slice >= 0 && o.slice != op->slice)))
        return false;
    if (words.isEmpty()) return true;
    const QString name = QString::fromStdString(timeline.nameOf(span));
    return std::all_of(words.begin(), words.end(),
                       [&](const QString& word) { return name.contains(word, Qt::CaseInsensitive); });
}

OpQuery parseOpQuery(const QString& text)
{
    OpQuery query;
    for (const QString& word : wordsOf(text)) {
        if (word.startsWith(u'"')) {
            if (word.size() > 1) query.words << word.mid(1);
            continue;
        }
        if (const auto bound = boundOf(word, query.fault)) {
            query.durations.push_back(*bound);
            continue;
        }
        const int colon = static_cast<int>(word.indexOf(u':'));
        if (colon > 0) {
            const QString key = word.left(colon).toLower();
            bool number = false;
            const int value = word.mid(colon + 1).toInt(&number);
            std::optional<int>* target = nullptr;
            if (key == "rank"_L1 || key == "r"_L1) target = &query.rank;
            if (key == "stage"_L1 || key == "s"_L1) target = &query.stage;
            if (key == "mb"_L1 || key == "microbatch"_L1) target = &query.microbatch;
            if (key == "slice"_L1) target = &query.slice;
            if (key == "lane"_L1) {
                query.lane = laneOf(word.mid(colon + 1).toLower().toStdString());
                if (!query.lane && word.size() > colon + 1)
                    query.fault = u"%1: unknown; use compute, send, receive, wait, kernel, copy or other"_s.arg(word);
                continue;
            }
            if (target == nullptr) {
                query.fault = u"%1: unknown; use rank, stage, mb, slice, lane or >2ms"_s.arg(word.left(colon));
            } else if (word.size() > colon + 1 && !number) {
                query.fault = u"%1: a number is needed"_s.arg(word);
            } else if (number) {
                *target = value;
            }
            continue;
        }
        const std::string upper = word.toUpper().toStdString();
        bool known = false;
        for (std::size_t k = 0; k < allKinds().size(); ++k) {
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

std::vector<SpanId> findSpans(const Timeline& timeline, const OpQuery& query, int step, const std::stop_token& stop)
{
    std::vector<SpanId> found;
    if (query.empty()) return found;
    for (const Track& track : timeline.tracks()) {
        auto [first, last] = step < 0 ? std::pair(track.begin, track.end) : timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            if (id % 65536 == 0 && stop.stop_requested()) return {};
            const Span& span = timeline.spans()[id];
            if ((step < 0 || span.step == step) && query.matches(timeline, track, span)) found.push_back(id);
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [&](SpanId a, SpanId b) { return timeline.spans()[a].start < timeline.spans()[b].start; });
    return found;
}

} // namespace stagewright
