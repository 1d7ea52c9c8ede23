// A linear program over 0 and 1, solved by COIN-OR CBC (Debian's coinor-libcbc3), which is loaded when it is first used.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct IntegerProgram { // least cost such that every row's sum is in its range
    struct Row {
        double least = 0, most = 0;
        std::vector<std::pair<int, double>> terms; // column, factor
    };
    std::vector<double> cost; // by column
    std::vector<bool> whole;  // by column: 0 or 1; else any number between
    std::vector<Row> rows;
};
struct IntegerSolution {
    std::vector<double> values; // by column
    double cost = 0;
    bool proven = true; // the least; else what was found within the limit
};
bool hasIntegerSolver();
std::string integerSolver(); // "CBC 2.10.8"; "" where there is none
// None: no values are possible. Unavailable: no CBC is installed, or it found nothing within so many seconds.
// Calls wait for each other.
Result<std::optional<IntegerSolution>> solveInteger(const IntegerProgram& program, int seconds);

} // namespace stagewright
