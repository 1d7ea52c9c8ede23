// Schedule CSV: one line per rank, one cell per op, no titles. The convention of torch.distributed.pipelining, and
// ours, which can express more. Placement is inferred from the rows. Blank cells are idle slots without meaning and are
// dropped.
//
//   form      cells                                                        blank cells
//   compute   F B I W                                                      allowed
//   lowered   also SEND_F RECV_F SEND_B RECV_B UNSHARD RESHARD REDUCE_GRAD refused where PyTorch's rules apply
//   ours      both forms, and R OPT OFFLOAD RELOAD FILLER, slices, counts, halves, copies of a stage, groups of
//             messages, REDUCE_GRAD in either form, and a first line with what a list of ops can't express:
//                 # weights=stashed slices=6,4,3,3 replicas=2 ranks=4    (written only where they are not the defaults)
//             With replicas the lines are those of one of them, and all are alike. A line without ops, of commas or
//             not, does not count as one; with ranks=N, which is written where a rank has no ops, every line is one.
//
// A file with a SEND or RECV cell is lowered (schedules/messages/lower.h), any other is compute-only. Overlapped pair:
// (0F7;7B3)OVERLAP_F_B; messages posted together, any number: (1SEND_B0;1RECV_F1)GROUPED, which PyTorch's files call
// BATCH_P2P. Cells may be in quotation marks, as spreadsheets write them. Two dialects:
//   New   F, I, W, B (full backward)          Old   F, B (input gradient), W, BW (full backward)
// Auto detects: a BW cell, or W cells without any I, means Old.
// Strict: trailing characters in a cell and unknown kinds are errors naming line, cell and remedy.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

enum class CsvDialect {
    Auto,
    New,
    Old,
};

struct CsvOptions {
    CsvDialect dialect = CsvDialect::Auto; // writing: Auto is New
    bool pytorch = false;                  // refuse what PyTorch can't express
    bool everyRow = false;                 // a line without ops is a rank, too: of a text that is being written
};

// Text in parts: at most `size` bytes to `to`; 0: the end.
using TextSource = std::function<std::size_t(char* to, std::size_t size)>;

// Parses only: counts and order are validate()'s matter. name becomes Schedule::name. Of a source memory for a megabyte
// of text and 16 bytes an op; a cell has at most a megabyte.
Result<Schedule> readScheduleCsv(std::string_view text, const CsvOptions& options = {}, std::string name = {});
Result<Schedule> readScheduleCsv(const TextSource& source, const CsvOptions& options = {}, std::string name = {});
Result<std::string> writeScheduleCsv(const Schedule& schedule, const CsvOptions& options = {});

} // namespace stagewright
