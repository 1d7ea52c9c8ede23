// Document: what is said of a run, a comparison or a question, once: ordered sections of figures, tables, plots,
// sentences and marks on the timeline. Text, JSON, CSV, Markdown, HTML and the window's panels render these five and
// know no section by name.
//
// A place is where a value is in the document's JSON: keys joined by dots ("overlap.comm_time"), a number being a place
// of a list ("by_rank.0.idle"). A cell's place is its table's with its column's key behind, in which # is the number of
// the row and * the text of its first cell, without which the row has none: the table "levers.#" is a list of objects, "over_steps.*" an object of
// objects, and the column "#" of the table "critical_path" a list of values. Without a place a value is not in JSON;
// what is not shown is in nothing else.
//
// Values only: copied and moved freely, for any thread. Times are in ns and sizes in bytes; the document's units say how
// they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/plot.h"
#include "schedules/base/table.h"
#include "schedules/timeline/timeline.h"

namespace stagewright::document {

enum class Tone : std::uint8_t { Plain, Strong, Good, Bad, Warn, Faint };

enum class Sign : std::uint8_t {
    Plain,
    Change,   // "+34 ms", "−9.9 points", "=" where nothing changes
    Relative, // of shares: what became of a value, "−16.7 %", "× 12"
};

struct Figure {
    std::string key;                    // its place
    std::string title;                  // "Step time"
    ColumnKind kind = ColumnKind::Time; // any but Text
    double value = 0;                   // in ns, bytes, 1 or shares; of figures by rank the largest; not finite: none
    std::vector<double> byRank = {};    // if there is one for each rank; of sizes JSON lists them
    std::string formula = {};           // its heading in docs/numbers.md
    std::string unknown = {};           // why there is no value: a clause, lower case; empty: it is known
    std::string words = {};             // the value as people read it; empty: as its kind is written
    std::string note = {};              // behind the value: "median of 8 steps 27.3 ms, 95 %: …"
    std::string meaning = {};           // what it is; pages and tooltips show it
    bool shown = true;
    Tone tone = Tone::Plain;
    bool moreIsBetter = false; // else less is, where it is a time, a size or a share
    bool summed = true;        // a time over ranks, which as many ranks compare by; else of one step or rank

    int fullestRank() const; // of figures by rank, the one with the largest value; −1: there is none
};
const Figure* findFigure(const std::vector<Figure>& figures, std::string_view key); // null: not among them

struct Column : TableColumn { // without a key it is not in JSON
    Column(TableColumn column, Sign signOf = Sign::Plain, bool isShown = true)
        : TableColumn(std::move(column)), sign(signOf), shown(isShown)
    {
    }
    Sign sign;
    bool shown;
    bool brief = false;  // names that may be long: text shortens them
    bool sparse = false; // left out where no row has anything in it
};
Column unshown(std::string key, ColumnKind kind = ColumnKind::Text); // in JSON only

struct Row {
    TableRow cells; // as long as the columns
    Tone tone = Tone::Plain;
    std::optional<ColumnKind> kind = {}; // of its cells in columns of kind Real
    bool shown = true;
    std::string meaning = {};     // of what the row is about
    SpanId op = noSpan;           // the span it is about
    std::string action = {};      // what a window can do about it, as a clause; the first cell says to what
    std::vector<Tone> tones = {}; // of its cells, where these differ
    Tone toneOf(std::size_t cell) const { return cell < tones.size() ? tones[cell] : tone; }
};

TableCell textCell(std::string text);                 // without a text unknown
TableCell numberCell(std::int64_t value, bool known); // likewise

struct Table {
    std::string place;
    std::vector<Column> columns;
    std::vector<Row> rows = {};
    std::string unknown = {}; // why there are no rows: a clause, lower case; empty: it is known, even if it has none
    bool shown = true;
    std::optional<Units> dataUnits = {};                             // of its values in JSON; nothing: the document's
    std::size_t mostShown = std::numeric_limits<std::size_t>::max(); // rows; JSON has all of them

    Row& add(TableRow cells, Tone tone = Tone::Plain) // valid until the next one is added
    {
        return rows.emplace_back(Row{std::move(cells), tone});
    }
};
// In JSON only, with columns of these keys: "rank busy:time amount:size busy_too:truth share:real", others text or counts;
// "-" is a column that JSON has not, such as the first one where * names it.
Table dataTable(std::string place, std::string_view columns, std::string unknown = {});

// A list of values: the table's only column.
Table listOf(std::string place, ColumnKind kind, std::vector<TableCell> values);

struct Chart {
    std::string place;
    std::string title;
    Plot plot;
};

struct Sentences {
    std::string place;
    std::vector<std::string> lines;
    bool listed = false; // JSON has a list of them; else the text of the first, null where there is none
    Tone tone = Tone::Plain;
    bool shown = true;
};

// What a picture of the timeline is to stress. Empty: the picture alone.
struct Marks {
    struct Stretch {
        int rank = 0;
        Nanos start = 0, end = 0; // from the timeline's origin
        std::string text = {};    // an op's name, or why the rank is idle
        SpanId span = noSpan;     // of ops
    };
    struct Arrow {
        Stretch from, to; // from the end of one to the start of the other
        std::string text = {};
    };
    std::string place;
    std::string title;
    int run = 0; // of a comparison: 0 is A
    std::vector<Stretch> spans = {}, gaps = {};
    std::vector<Arrow> arrows = {};

    bool empty() const { return spans.empty() && gaps.empty() && arrows.empty(); }
};
Marks::Stretch stretchOf(const Timeline& timeline, SpanId span);
// Each as a line: "rank 2, 3.1 ms to 5.2 ms: why", at most so many, and how many more there are.
std::vector<std::string> linesOf(const Marks& marks, const Units& units, std::size_t most = 8);

using Element = std::variant<Figure, Table, Chart, Sentences, Marks>;

struct Section {
    std::string title; // may be empty: it goes on where the one before ended
    std::vector<Element> elements = {};
    bool shown = true;   // false: in JSON only
    bool folded = false; // pages show its tables behind its title, and text leaves them out

    template <typename Part>
    Part& add(Part part) // valid until the next one is added
    {
        return std::get<Part>(elements.emplace_back(std::move(part)));
    }
    // In JSON only; a text that is empty and a number that is not there are null.
    void fact(std::string place, std::string text);
    void fact(std::string place, ColumnKind kind, std::optional<double> value);
    void say(std::string line, Tone tone = Tone::Plain); // a sentence without a place; "": none
    bool empty() const;                                  // nothing of it is shown
};

struct Document {
    std::string title, subtitle; // "1f1b", "4 ranks × 8 microbatches"
    Units units = {};
    std::vector<Section> sections = {};

    Section& add(std::string sectionTitle = {}) { return sections.emplace_back(Section{std::move(sectionTitle)}); }
};

// Its value as every rendering writes it, of figures by rank the largest: "27 units", "4 microbatches", "42", "27.3 %";
// unknown: "–".
std::string textOf(const Figure& figure, const Units& units, TimeUnit unit = TimeUnit::Automatic);
std::string textOf(const Column& column, const Row& row, const TableCell& cell, const Units& units);
std::string raised(std::string text); // with its first letter a capital
// Places of the columns that are shown.
std::vector<std::size_t> shownColumns(const Table& table);

// Why figures listed one after another are unknown: "unknown: REASON", the same again "unknown for the same reason";
// known: "".
class UnknownReasons {
public:
    std::string of(const Figure& figure);

private:
    std::string m_last;
};

} // namespace stagewright::document
