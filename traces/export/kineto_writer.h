// A run as PyTorch's profiler would have written it: one Kineto JSON per rank, for tools that read those files.
//
//   ops            user_annotation "PP:2F0" on the rank's host thread; an overlapped pair is one,
//                  "PP:(0F3;7B1)OVERLAP_F_B"
//   steps          user_annotation "ProfilerStep#0" around them; on a thread of their own if steps overlap
//   sends          user_annotation "PP:2SEND_F0" on a thread of their own, in it cpu_op record_param_comms with Src
//                  Rank, Dst Rank
//   and receives   and Seq
//   kernels        kernel, copies gpu_memcpy, of device 0, with correlation; a cuda_runtime launch in the op they
//                  belong to, and the ac2g arrow between, if the run knows who launched them
//   memory         cpu_instant_event "[memory]" with Bytes and Total Allocated, if the run counts bytes
//
// Times are microseconds from baseTimeNanoseconds, the time when the run was stored, on every rank.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/format/atomic_file.h"
#include "traces/run/run.h"

namespace stagewright {

struct KinetoCounts { // what was written over all ranks
    std::int64_t ranks = 0;
    std::int64_t spans = 0; // of the run: all are in the files, those of an overlapped pair as one
    std::int64_t launches = 0;
    std::int64_t memoryEvents = 0;
};
std::string toText(const KinetoCounts& counts);

// One rank to `out`; adds to counts. A false return of out stops with an Error (Failed). Cancelled within a megabyte.
Result<void> writeKinetoRank(const Run& run, int rank, const Sink& out, KinetoCounts& counts,
                             const Progress& progress = {});
// rank0.pt.trace.json and so on in a folder, completely or not at all (writeFolderAtomically).
Result<KinetoCounts> writeKinetoFolder(const Run& run, const std::string& folder, const Progress& progress = {});

} // namespace stagewright
