#include "schedules/text/draw_text.h"
#include "schedules/base/shown_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/base/ticks.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

struct Colour {
    int red, green, blue;
};
struct Ink {
    Colour fill;
    Colour label;
};

constexpr Colour darkLabel{0x14, 0x17, 0x1C};

// The palette's dark column: legible on dark and light terminals, as every cell brings its own background.
Ink inkOf(OpKind kind)
{
    switch (ruleOf(kind).colour) {
    case ColourClass::Forward: return {{0x48, 0x95, 0xEE}, darkLabel};
    case ColourClass::Backward: return {{0xF7, 0xC0, 0x33}, darkLabel};
    case ColourClass::Weight: return {{0x8A, 0xE2, 0xB8}, darkLabel};
    case ColourClass::Other: return {{0x3A, 0x41, 0x4D}, {0xE8, 0xEB, 0xF0}};
    default: return {{0xC9, 0xD0, 0xE0}, darkLabel};
    }
}

// What fills gaps has a long name.
std::string letterOf(OpKind kind)
{
    return isDelay(kind) ? "~" : std::string(fillsGaps(kind) ? ruleOf(kind).letter : ruleOf(kind).text);
}

std::string background(const Colour& c) { return colourCode(fmt::format("48;2;{};{};{}", c.red, c.green, c.blue)); }
std::string foreground(const Colour& c) { return colourCode(fmt::format("38;2;{};{};{}", c.red, c.green, c.blue)); }
std::string plainAgain() { return colourCode("0"); }
constexpr Colour faint{0x6F, 0x78, 0x87};

// Which op a column shows: the one that takes most of it, or none where idle time does.
struct Row {
    std::vector<std::int32_t> owner; // by column: index into spans, −1: idle
    std::vector<const Span*> spans;
    Nanos busy = 0;
};

struct Picture {
    const Timeline& timeline;
    int step;
    bool colour;
    bool utf8;
    Nanos begin = 0;
    Nanos end = 0;
    std::size_t gutter = 0; // columns before the cells
    std::size_t width = 0;  // columns of cells
    std::vector<Row> rows;  // by rank

    bool collect();
    void chooseWidth(int columns);
    void rasterise();
    std::string ruler() const;
    std::string rowText(std::size_t rank) const;
    std::string cellText(const Span& span, std::size_t room) const;
    std::string legend() const;
    double timeAt(std::size_t column) const
    {
        return static_cast<double>(end - begin) * static_cast<double>(column) / static_cast<double>(width);
    }
};

bool Picture::collect()
{
    rows.resize(static_cast<std::size_t>(std::max(timeline.ranks(), 0)));
    bool first = true;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        Row& row = rows[static_cast<std::size_t>(track.rank)];
        const auto [from, to] = timeline.stepRange(track, step);
        Nanos busyUntil = 0;
        for (SpanId id = from; id < to; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step || (span.flags & SpanDiscarded)) continue;
            row.spans.push_back(&span);
            if (!isBusy(span.op.kind)) continue;
            // The members of a pair share one interval.
            const Nanos start = row.spans.size() > 1 && busyUntil > span.start ? busyUntil : span.start;
            row.busy += std::max<Nanos>(0, span.end - start);
            busyUntil = std::max(busyUntil, span.end);
            begin = first ? span.start : std::min(begin, span.start);
            end = first ? span.end : std::max(end, span.end);
            first = false;
        }
    }
    return !first && end > begin;
}

// As wide as fits; where the ops' lengths have a common measure, a whole number of columns for it, so that equal ops
// look equal.
void Picture::chooseWidth(int columns)
{
    gutter = fmt::format("rank {} ", rows.size() - 1).size() + 1;
    constexpr std::size_t shareWidth = 7; // "│ 100 %"
    const std::size_t least = 8;
    const auto all = static_cast<std::size_t>(std::max(columns, 40));
    const std::size_t room = all > gutter + shareWidth + least ? all - gutter - shareWidth : least;
    Nanos measure = 0;
    for (const Row& row : rows)
        for (const Span* span : row.spans) {
            measure = std::gcd(measure, span->end - span->start);
            measure = std::gcd(measure, span->start - begin);
        }
    width = room;
    if (measure <= 0) return;
    const auto parts = static_cast<std::size_t>((end - begin) / measure);
    if (parts > 0 && parts <= room) width = room / parts * parts;
}

void Picture::rasterise()
{
    const double perColumn = static_cast<double>(end - begin) / static_cast<double>(width);
    for (Row& row : rows) {
        row.owner.assign(width, -1);
        std::vector<double> best(width, 0.0);
        std::vector<double> busy(width, 0.0);
        for (std::size_t s = 0; s < row.spans.size(); ++s) {
            const Span& span = *row.spans[s];
            const double from = static_cast<double>(span.start - begin) / perColumn;
            const double to = static_cast<double>(span.end - begin) / perColumn;
            const auto first = static_cast<std::int64_t>(std::floor(from));
            const auto last =
                std::min<std::int64_t>(static_cast<std::int64_t>(std::ceil(to)), static_cast<std::int64_t>(width));
            for (std::int64_t c = std::max<std::int64_t>(first, 0); c < last; ++c) {
                const auto at = static_cast<std::size_t>(c);
                const double share = std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
                busy[at] += share;
                if (share > best[at] + 1e-9) {
                    best[at] = share;
                    row.owner[at] = static_cast<std::int32_t>(s);
                }
            }
        }
        for (std::size_t c = 0; c < width; ++c)
            if (busy[c] < 0.5) row.owner[c] = -1;
    }
}

std::string timeText(const Timeline& timeline, double nanos, bool utf8)
{
    if (timeline.timeUnit() > 1) return fmt::format("{:.4g}", nanos / static_cast<double>(timeline.timeUnit()));
    if (nanos >= 1e9) return fmt::format("{:.4g} s", nanos / 1e9);
    if (nanos >= 1e6) return fmt::format("{:.4g} ms", nanos / 1e6);
    if (nanos >= 1e3) return fmt::format("{:.4g} {}", nanos / 1e3, utf8 ? "µs" : "us");
    return fmt::format("{:.4g} ns", nanos);
}

std::size_t glyphs(std::string_view text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Marks at 1-2-5 steps with their times, as many as have room.
std::string Picture::ruler() const
{
    const double unit = timeline.timeUnit() > 1 ? static_cast<double>(timeline.timeUnit()) : 1.0;
    const double total = static_cast<double>(end - begin) / unit;
    const double stepSize = roundStep(total * 10.0 / static_cast<double>(width)).size;
    std::string out;
    std::size_t at = 0; // columns written
    for (int i = 0;; ++i) {
        const double t = i * stepSize;
        const auto column = static_cast<std::size_t>(std::llround(t / total * static_cast<double>(width)));
        if (t > total + 1e-9 || column >= width) break;
        const std::string text = fmt::format("{}{}", utf8 ? "╵" : "'", timeText(timeline, t * unit, utf8));
        if (column < at || column + glyphs(text) > width + 6) continue;
        out.append(column - at, ' ');
        out += text;
        at = column + glyphs(text);
    }
    return out;
}

// A label of an op in `room` columns: "F12", "F12 ──", "2" or a letter, always filled up to the room.
std::string Picture::cellText(const Span& span, std::size_t room) const
{
    const std::string letter = letterOf(span.op.kind);
    const std::string number = span.op.microbatch >= 0 ? std::to_string(span.op.microbatch) : std::string();
    const std::string name = span.label != 0 ? std::string(timeline.labelOf(span)) : letter + number;
    std::string text;
    if (name.size() <= room && (!colour || number.empty() || span.label != 0 || name.size() < room))
        text = name;
    else if (colour && !number.empty() && number.size() <= room)
        text = number;
    else if (colour && !number.empty())
        text = number.substr(number.size() - room);
    else
        text = letter.substr(0, room);
    const bool whole = text == name;
    for (std::size_t used = text.size(); used < room; ++used) {
        if (colour || (whole && used + 1 == room))
            text += ' ';
        else
            text += utf8 ? "─" : "-";
    }
    return text;
}

std::string Picture::rowText(std::size_t rank) const
{
    const Row& row = rows[rank];
    std::string out = fmt::format("{:>{}}{}", fmt::format("rank {} ", rank), gutter - 1, utf8 ? "│" : "|");
    const std::string idle = utf8 ? "·" : ".";
    for (std::size_t c = 0; c < width;) {
        std::size_t to = c;
        while (to < width && row.owner[to] == row.owner[c]) ++to;
        const std::size_t room = to - c;
        if (row.owner[c] < 0) {
            if (colour) out += foreground(faint);
            for (std::size_t i = 0; i < room; ++i) out += idle;
            if (colour) out += plainAgain();
        } else {
            const Span& span = *row.spans[static_cast<std::size_t>(row.owner[c])];
            const Ink ink = inkOf(span.op.kind);
            std::string text = cellText(span, room);
            if (colour) {
                // The last column carries the edge to the next op of the same colour.
                const bool edge = utf8 && room > 1 && text.back() == ' ';
                if (edge) {
                    text.pop_back();
                    text += "▕";
                }
                out += fmt::format("{}{}{}{}", background(ink.fill), foreground(ink.label), text, plainAgain());
            } else {
                out += text;
            }
        }
        c = to;
    }
    const double share = static_cast<double>(row.busy) / static_cast<double>(end - begin);
    out += fmt::format("{}{:4.0f} %", utf8 ? "│" : "|", 100.0 * share);
    return out;
}

std::string Picture::legend() const
{
    std::array<bool, opKindRoom> present{};
    for (const Row& row : rows)
        for (const Span* span : row.spans) present[static_cast<std::size_t>(span->op.kind)] = true;
    std::string out;
    for (const KindTraits& rule : allKinds()) {
        if (!present[static_cast<std::size_t>(rule.kind)]) continue;
        const std::string letter = letterOf(rule.kind);
        if (!out.empty()) out += "  ";
        if (colour) {
            const Ink ink = inkOf(rule.kind);
            out += fmt::format("{}{} {} {}", background(ink.fill), foreground(ink.label), letter, plainAgain());
        } else {
            out += letter;
        }
        out += fmt::format(" {}", rule.title);
    }
    const std::string column = timeText(timeline, timeAt(1), utf8);
    out +=
        fmt::format("  {} idle   one column = {}{}", utf8 ? "·" : ".", column, timeline.timeUnit() > 1 ? " units" : "");
    return out;
}

} // namespace

std::string drawTimeline(const Timeline& timeline, int step, int columns, bool colour, bool utf8)
{
    Picture picture{timeline, step, colour, utf8, 0, 0, 0, 0, {}};
    if (!picture.collect()) return fmt::format("step {}: nothing ran\n", stepNumber(step));
    picture.chooseWidth(columns);
    picture.rasterise();
    std::string out = std::string(picture.gutter, ' ') + picture.ruler() + "\n";
    for (std::size_t rank = 0; rank < picture.rows.size(); ++rank) out += picture.rowText(rank) + "\n";
    out += std::string(picture.gutter, ' ') + picture.legend() + "\n";
    return out;
}

} // namespace stagewright
