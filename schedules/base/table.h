// Tables of figures as values: columns that say what they hold, and rows of cells. Reports and surveys are made of them;
// text, JSON, CSV, pages and panels render them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/quantity.h"

namespace stagewright {

enum class ColumnKind {
    Text,
    Whole, // a rank, stage or position: a number that is not added up
    Count,
    Time,  // in ns, which count rank shares where the table's units are of unit-cost work
    Size,  // likewise in bytes
    Share, // 1 is 100 %
    Real,
    Truth, // 1 is yes, 0 no
};
struct TableColumn {
    std::string key;   // "idle_ns"
    std::string title; // "Idle"
    ColumnKind kind = ColumnKind::Text;
    std::string meaning = {};                                   // one sentence; may be empty
    std::string_view (*words)(std::string_view text) = nullptr; // a text of it as people say it; null: as it is
    // "ns", "bytes", "fraction", "" for names, counts and numbers (their titles name a unit)
    std::string_view unit() const;
};
using TableCell = std::variant<std::monostate, std::int64_t, double, std::string>; // monostate: unknown
using TableRow = std::vector<TableCell>;                                           // as long as the columns

template <typename Value>
TableCell cellOf(const std::optional<Value>& value)
{
    return value ? TableCell(*value) : TableCell();
}

// "none", "3", "12.4 ms", "16.7 %", as text and pages print it.
std::string cellText(const TableColumn& column, const TableCell& cell, const Units& units = {});
// The value itself, times and sizes in the units: "33.5" rank shares, "1200" ns, "0.166667"; "" where it is unknown.
std::string cellValue(const TableColumn& column, const TableCell& cell, const Units& units = {});
// A line of keys, then one for each row, of cellValue().
std::string csvOf(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows, const Units& units = {});

} // namespace stagewright
