// StepRecord: one step as its ranks recorded it, decoded and matched: ops with times, messages between ranks, memory
// changes attached to ops. On the wall clock its times are what was stamped; placeOnVirtualClock() overwrites them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/record/message_key.h"
#include "profiler/record/rank_recorder.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

struct RecordedOp {
    Op op;
    // in the rank's list; −1: gradient norm (kind ReduceGrad) and optimizer, outside the list
    std::int32_t position = -1;
    Nanos begin = 0;
    Nanos end = 0;
    Nanos cpu = -1; // −1: unknown
    // Times of an UNSHARD or REDUCE_GRAD of ranks that share state: between begin and end the rank let its pieces go;
    // the others' came by `arrived` and were copied or added up from takeBegin to takeEnd. −1: not such an op.
    Nanos arrived = -1;
    Nanos takeBegin = -1;
    Nanos takeEnd = -1;
    Nanos taken = 0; // virtual clock: CPU time of that, and emulated time of the link
    Bytes bytes = 0; // that came
};

// A message between two ranks. Times of one clock; −1: did not happen.
struct RecordedMessage {
    MessageKey key;
    int fromRank = 0;
    int toRank = 0;
    std::size_t fromOp = 0; // index into ops[fromRank]
    std::size_t toOp = 0;
    Bytes bytes = 0;
    Nanos sendPosted = -1;           // rendezvous: the sender waited at it from here to sent
    Nanos receivePosted = -1;        // rendezvous
    Nanos sent = -1;                 // handed over
    Nanos available = -1;            // may be taken from now on: sent + the link's delay
    Nanos waitBegin = -1;            // the receiver had to wait from here …
    Nanos takeBegin = -1;            // … to here, and copied it …
    Nanos takeEnd = -1;              // … until here: the sender's buffer is free
    Bytes released = 0;              // what the sender's buffer held …
    std::int64_t releasedAfter = -1; // … until behind this op of its rank; −1: none
    // when the input was there for the consumer: a message waited for arrives with its copy
    Nanos arrival = -1;
};

struct MemoryChange {
    enum class When : std::uint8_t {
        StepBegin,
        OpBegin,
        OpEnd,
    };
    When when = When::StepBegin;
    std::size_t op = 0; // index into ops[rank]
    Bytes delta = 0;
    std::int32_t microbatch = -1;
    std::uint16_t stage = 0;
    MemoryCategory category = MemoryCategory::Activations;
    bool onHost = false; // else the rank's own
};

// A kernel, copy or collective that ran below an op, or overhead of a rank (cupti/correlate.h).
struct RecordedWork {
    int rank = 0;
    // index into ops[rank]: its own op; of a message, the producer or consumer on this rank; −1: nobody's
    std::int32_t op = -1;
    std::uint32_t name = 0;   // index into StepRecord::workNames
    Lane lane = Lane::Kernel; // Kernel, Copy, Other
    bool collective = false;
    Nanos begin = 0;
    Nanos end = 0;
    Nanos launched = -1; // when the host called for it, at most `begin`; −1: not recorded
};

struct StepRecord {
    int step = 0;
    std::shared_ptr<const CheckedSchedule> schedule; // its compute() was run
    std::string clock = "wall";
    Nanos begin = 0;                          // of the step: times of MemoryChange::StepBegin
    std::vector<std::vector<RecordedOp>> ops; // by rank, in the order of the list, those outside it behind
    std::vector<RecordedMessage> messages;
    std::vector<std::vector<MemoryChange>> memory; // by rank
    std::vector<RecordedWork> work;                // of devices; usually empty
    std::vector<std::string> workNames;

    Nanos end() const; // of the last op; begin where there is none
    // 1 − CPU time / wall time over busy ops; 0 where no CPU time is known. Ask before placeOnVirtualClock().
    double contention() const;
};

// The messages between ranks that every step of a schedule has, without times, by key. Made once for all steps.
class ExpectedMessages {
public:
    explicit ExpectedMessages(const CheckedSchedule& schedule);

    const std::vector<RecordedMessage>& all() const { return m_all; } // by rank and op that takes them
    std::optional<std::size_t> find(const MessageKey& key) const      // in all(); O(1)
    {
        if (!m_space.contains(key)) return std::nullopt;
        const std::int64_t i = m_at[at(key)];
        return i < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(i));
    }

private:
    std::size_t at(const MessageKey& key) const { return key.stage * m_space.perStage() + m_space.within(key); }

    MessageSpace m_space;
    std::vector<RecordedMessage> m_all;
    std::vector<std::int64_t> m_at; // index into m_all, −1: none
};

// Decodes what the ranks recorded since the last step. messages: the schedule's. begin: when the ranks were let go, on
// CLOCK_MONOTONIC. Times become relative to origin. Fails (Failed) where a rank's record is not whole, naming the rank
// and the op.
Result<StepRecord> decodeStep(int step, std::shared_ptr<const CheckedSchedule> schedule,
                              const ExpectedMessages& messages,
                              const std::vector<std::vector<RecordedEvent>>& eventsByRank, Nanos begin, Nanos origin);

} // namespace stagewright
