#include "widgets/edit/text_sync.h"

#include <QRegularExpression>

#include "schedules/check/validate.h"
#include "schedules/messages/messages.h"
#include "schedules/model/op_index.h"
#include "schedules/text/csv.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

bool isSpace(QChar c) { return c == u' ' || c == u'\t' || c == u'\r'; }

// Calls visit(begin, end, cell) for each op's text of a line, blanks trimmed; the ops of a pair or group belong to one
// cell. False stops.
template <typename Visit>
void eachOp(const QString& line, Visit&& visit)
{
    int cell = 1;
    const auto size = static_cast<int>(line.size());
    auto tell = [&](int begin, int end) {
        while (begin < end && isSpace(line[begin])) ++begin;
        while (end > begin && isSpace(line[end - 1])) --end;
        return begin == end || visit(begin, end, cell);
    };
    for (int begin = 0; begin <= size; ++cell) {
        auto end = static_cast<int>(line.indexOf(u',', begin));
        if (end < 0) end = size;
        const auto open = static_cast<int>(line.indexOf(u'(', begin));
        if (open >= 0 && open < end) {
            auto close = static_cast<int>(line.indexOf(u')', open));
            if (close < 0 || close > end) close = end;
            for (int from = open + 1; from <= close;) {
                auto middle = static_cast<int>(line.indexOf(u';', from));
                if (middle < 0 || middle > close) middle = close;
                if (!tell(from, middle)) return;
                from = middle + 1;
            }
        } else if (!tell(begin, end)) {
            return;
        }
        begin = end + 1;
    }
}

TextSpan spanNamedBy(const std::string& message, const QStringList& lines)
{
    static const QRegularExpression place(u"line (\\d+)(?:, cell (\\d+))?"_s);
    const auto match = place.match(QString::fromStdString(message));
    if (!match.hasMatch()) return {};
    const int line = match.captured(1).toInt() - 1;
    if (line < 0 || line >= lines.size()) return {};
    TextSpan span{line, 0, static_cast<int>(lines[line].size())};
    if (match.capturedLength(2) > 0) {
        const TextSpan cell = spanOfCell(lines[line], match.captured(2).toInt());
        if (cell.valid()) span = {line, cell.column, cell.length};
    }
    return span;
}

} // namespace

Result<QStringList> textLinesOf(const Schedule& schedule)
{
    STAGEWRIGHT_TRY(auto text, writeScheduleCsv(schedule, {CsvDialect::Auto, false, true}));
    QStringList lines = QString::fromStdString(text).split(u'\n');
    if (!lines.isEmpty() && lines.last().isEmpty()) lines.removeLast();
    return lines;
}

int settingsLines(const QString& firstLine) { return firstLine.trimmed().startsWith(u'#') ? 1 : 0; }

int opAtColumn(const QString& line, int column)
{
    int position = -1, found = -1;
    eachOp(line, [&](int begin, int end, int) {
        ++position;
        if (column >= begin && column <= end) found = position;
        return found < 0 && begin <= column;
    });
    return found;
}

TextSpan spanOfOp(const QString& line, int position)
{
    int at = -1;
    TextSpan span;
    eachOp(line, [&](int begin, int end, int) {
        if (++at == position) span = {0, begin, end - begin};
        return at < position;
    });
    return span;
}

TextSpan spanOfCell(const QString& line, int cell)
{
    TextSpan span;
    eachOp(line, [&](int begin, int end, int at) {
        if (at == cell) span = {0, span.valid() ? span.column : begin, end - (span.valid() ? span.column : begin)};
        return at <= cell;
    });
    return span;
}

TypedOrder readTypedOrder(const QString& text, const Schedule& frame)
{
    const QStringList lines = text.split(u'\n');
    auto refuse = [](std::string message, std::string remedy, TextSpan where) {
        return TypedOrder{Result<Schedule>(fail(ErrorCode::Invalid, std::move(message), std::move(remedy))), where};
    };
    static const QRegularExpression blank(u"\\A(\\s*#[^\\n]*\\n)?[\\s,]*\\z"_s);
    Schedule out = frame;
    if (blank.match(text).hasMatch()) { // all ops were removed
        for (auto& row : out.order) row.clear();
        for (auto& row : out.paired) row.clear();
        return {std::move(out), {}};
    }
    // The dialect of the shown text; only a cell that it can't express switches to the old dialect.
    auto read = readScheduleCsv(text.toStdString(), {CsvDialect::New, false, true}, frame.name);
    if (!read && text.contains("BW"_L1))
        read = readScheduleCsv(text.toStdString(), {CsvDialect::Auto, false, true}, frame.name);
    if (!read) return {tl::unexpected(read.error()), spanNamedBy(read.error().message, lines)};
    const int skipped = settingsLines(lines.first());
    if (isLowered(*read)) {
        for (std::size_t r = 0; r < read->order.size(); ++r)
            for (std::size_t i = 0; i < read->order[r].size(); ++i)
                if (isMessage(read->order[r][i].kind)) {
                    const int line = static_cast<int>(r) + skipped;
                    TextSpan span = line < lines.size() ? spanOfOp(lines[line], static_cast<int>(i)) : TextSpan();
                    if (span.valid()) span.line = line;
                    return refuse("line " + std::to_string(line + 1) + " (" + toText(read->order[r][i]) +
                                      "): sends and receives are inserted when the order is lowered",
                                  "leave them out", span);
                }
    }
    const bool fits = read->order.size() <= frame.order.size() && read->stages <= frame.stages &&
                      read->microbatches <= frame.microbatches;
    if (!fits || !frame.placement.hasCopies()) {
        const bool otherShape = !fits || read->order.size() < frame.order.size() || read->stages < frame.stages ||
                                read->microbatches < frame.microbatches || !(read->placement == frame.placement);
        if (otherShape && validate(*read).valid()) return {std::move(*read), {}};
    }
    if (!fits) {
        for (std::size_t r = 0; r < read->order.size(); ++r) {
            const int line = static_cast<int>(r) + skipped;
            if (r >= frame.order.size())
                return refuse("line " + std::to_string(line + 1) + ": rank " + std::to_string(r) +
                                  ", but ranks are 0 to " + std::to_string(frame.ranks - 1),
                              "one line per rank", {line, 0, std::max(1, static_cast<int>(lines.value(line).size()))});
            for (std::size_t i = 0; i < read->order[r].size(); ++i) {
                const std::string fault = opFault(frame, read->order[r][i]);
                if (fault.empty()) continue;
                TextSpan span = spanOfOp(lines.value(line), static_cast<int>(i));
                if (span.valid()) span.line = line;
                return refuse("line " + std::to_string(line + 1) + " (" + toText(read->order[r][i]) + "): " + fault,
                              "correct it, or change the number of microbatches first", span);
            }
        }
    }
    out.order = std::move(read->order);
    out.order.resize(frame.order.size());
    out.paired = std::move(read->paired);
    out.paired.resize(frame.order.size());
    out.weights = read->weights;
    out.sliceLengths = std::move(read->sliceLengths);
    if (frame.placement.hasCopies() && read->placement.stages() == frame.stages && unplacedOps(out).empty())
        out.placement = read->placement;
    return {std::move(out), {}};
}

} // namespace stagewright
