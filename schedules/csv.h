// Schedule CSV of torch.distributed.pipelining, compute-only form: one line per rank, one cell per op, no header.
// Blank cells are idle slots without meaning and are dropped. Placement is inferred from the rows. Two dialects:
//   New   F, I, W, B (full backward)          Old   F, B (input gradient), W, BW (full backward)
// Auto detects: a BW cell, or W cells without any I, means Old. Overlapped pair: (0F7;7B3)OVERLAP_F_B.
// Strict: trailing characters in a cell, unknown kinds and communication cells are errors naming line, cell and remedy.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/schedule.h"

namespace stagewright {

enum class CsvDialect { Auto, New, Old };

struct CsvOptions {
    CsvDialect dialect = CsvDialect::Auto; // writing: Auto is New
    bool pytorch = false; // refuse what PyTorch can't hold: two copies of a stage, fillers, slices, counts, halves
};

// Parses only: counts and order are validate()'s matter. name becomes Schedule::name.
Result<Schedule> readScheduleCsv(std::string_view text, const CsvOptions& options = {}, std::string name = {});
Result<std::string> writeScheduleCsv(const Schedule& schedule, const CsvOptions& options = {});

} // namespace stagewright
