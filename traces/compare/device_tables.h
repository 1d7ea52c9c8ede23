// What changed on the devices, as tables of text: the command line, the window and the HTML page show these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/compare/device_changes.h"

namespace stagewright {

struct DeviceTable {
    enum class Content : std::uint8_t {
        Figures,   // device time, summed over ranks
        Kernels,   // that run in both, largest change first
        OnlyInOne, // in the order of their time
    };
    struct Column {
        std::string title;
        std::string meaning; // a sentence without its stop
        bool figure = false; // else text
    };
    struct Row {
        std::vector<std::string> cells;       // as many as columns
        Nanos change = 0;                     // B − A
        const KernelChange* kernel = nullptr; // of the DeviceChanges; null: a row of figures
    };
    Content content = Content::Figures;
    std::string title; // "kernels and copies that changed most (25 of 112)"
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::size_t changeColumn = 0; // whose cells are Row::change; 0: none
};

// Tables without rows are left out, and so are the columns of sizes and shapes where none is known. `b` is the letter
// of the run compared with A; at most `most` kernels a table. Rows point into `changes`, which must outlive the tables.
std::vector<DeviceTable> deviceTables(const DeviceChanges& changes, char b = 'B', std::size_t most = 25);

} // namespace stagewright
