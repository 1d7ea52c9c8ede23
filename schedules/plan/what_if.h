// What if: a schedule simulated again with one thing changed. Text form, changes separated by ',':
//
//     F*0.5           every forward takes half as long (kinds F B I W R)
//     B@stage2*0.8    … of stage 2 only; F@rank1*1.5 of rank 1 only
//     stage2*0.8      every op of stage 2; rank1*1.25 every op of rank 1
//     UNSHARD*2       every gather; REDUCE_GRAD*0.5 every reduction, OPT*2 every optimizer step; @stage and @rank as
//                     above
//     link*0          every link, and what gathers and reductions take on them; link1-2*2 the messages between ranks 1
//                     and 2, either way: latency times, bandwidth divided
//     launch*0        the launch delays
//     jitter*0        the jitter (its σ)
//     lower=pytorch   lowered to sends and receives by a rule (schedules/messages/lower.h), with the receives meant for
//                     it unless others were asked for; receives=posted; sends=rendezvous without buffers, channels=1 at
//                     most one message at once each way, channels=one, shared or 0 as in schedules/messages/channels.h:
//                     sends and limits lower just in time if the order is not lowered yet
//     m=16, m+8       that many microbatches, that many more: of library schedules only
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct WhatIfChange {
    enum class What {
        Ops,
        Links,
        Launch,
        Jitter,
        Lower,
        Sends,
        Receives,
        Channels,
        Microbatches,
    };
    What what = What::Ops;
    int kind = -1;   // Ops: an OpKind, −1: every kind
    int stage = -1;  // −1: every stage
    int rank = -1;   // −1: every rank; Links: one end
    int toRank = -1; // Links: the other end
    double factor = 1;
    int microbatches = 0; // Microbatches: the number, or how many more
    Lowering lowering;    // Lower
    SendMode sends = SendMode::Buffered;
    ReceiveMode receives = ReceiveMode::Blocking;
    stagewright::Channels channels; // Channels: its limits
    bool more = false;
    bool operator==(const WhatIfChange&) const = default;
};

Result<std::vector<WhatIfChange>> parseWhatIf(std::string_view text);
std::string toText(const WhatIfChange& change);

struct WhatIfAnswer {
    Nanos makespanBefore = 0; // of whole steps: gathers, reductions and optimizers count (SimFigures::step)
    Nanos makespanAfter = 0;
    double bubbleBefore = 0; // bubble_fraction
    double bubbleAfter = 0;
    std::vector<Bytes> peakBefore; // activations by rank; both empty: the costs have no sizes
    std::vector<Bytes> peakAfter;
    int microbatchesBefore = 0;
    int microbatchesAfter = 0;
};

// What is simulated under some changes, and the result.
struct WhatIfCase {
    Schedule schedule; // of other microbatches, lowered, or as it was
    CostModel costs;
    Channels channels;
    SimResult result;
};

// A schedule and its costs, simulated once; each question then takes one more simulation (O(ops)).
class WhatIf {
public:
    // lowering: the rule by which the schedule's messages were inserted; one that has none gets them.
    static Result<WhatIf> create(Schedule schedule, CostModel costs, const Channels& channels = {},
                                 const std::optional<Lowering>& lowering = {});

    // All changes together. Usage error where one names a stage, rank or link that is not there, or changes the
    // microbatches of a schedule that is not in the library. Invalid where it could not complete.
    Result<WhatIfAnswer> answer(const std::vector<WhatIfChange>& changes) const;
    // What the answer is read off; fails as answer() does.
    Result<WhatIfCase> caseOf(const std::vector<WhatIfChange>& changes) const;
    // The same schedule with another number of microbatches.
    Result<Schedule> repeated(int microbatches) const;

private:
    Schedule m_schedule;
    CostModel m_costs;
    Channels m_channels;
    std::optional<Lowering> m_lowering;
    SimResult m_result;
    SimFigures m_figures;
};

} // namespace stagewright
