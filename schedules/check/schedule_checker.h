// ScheduleChecker: the parts of validate(), which share the list of faults. Internal to schedules.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "schedules/check/validate.h"
#include "schedules/messages/messages.h"
#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright {

inline constexpr std::size_t nowhere = static_cast<std::size_t>(-1); // of a position

struct ScheduleChecker {
    const Schedule& schedule;
    Validation out{};
    // the index that run() went by; none where ops or shape allow none, which are faults
    std::optional<OpIndex> made{};
    bool lastDropped = false;                                // the last fault was only counted
    std::optional<std::set<std::pair<bool, int>>> skipped{}; // isSkipped() keeps: forward or not, microbatch

    void run(const Channels& channels); // all of validate(): fills `out`
    void add(FaultKind kind, int rank, std::size_t position, const Op& op, const std::string& message,
             std::string remedy);
    void addOther(int rank, std::size_t position, const Op& op); // the other op of the last fault

    bool checkOps(); // false: the tables can't be made
    void checkPlaces(const OpIndex& index);
    void checkCounts(const OpIndex& index);
    template <typename Holds>
    bool hasAny(Holds&& holds, int stage = -1) const; // validate.cpp
    void checkDeadlock(const OpIndex& index, const Channels& channels);
    // schedule_checker_messages.cpp
    void checkMessages(const OpIndex& index); // of a lowered schedule
    void checkMessage(const OpIndex& index, const MessageIndex& pairs, int rank, std::size_t position);
    void checkReceived(const OpIndex& index, const MessageIndex& pairs, int rank, std::size_t position);
    bool isSkipped(const Op& message); // whether it goes past a stage
    // schedule_checker_stages.cpp
    void checkStageOps();                      // OPT, REDUCE_GRAD of a whole batch
    void checkRecompute(const OpIndex& index); // R is between F and B
    void checkSlices(const OpIndex& index);    // forwards in rising, gradients in falling order
    // schedule_checker_shards.cpp
    void checkShards();             // UNSHARD, RESHARD: weights are there when they are needed
    void checkLeftOut();            // stages that are not gathered or reduced, where others are
    void checkReductions();         // REDUCE_GRAD of microbatches
    void checkMembers(OpKind kind); // the ranks of a stage do as many of them
};

} // namespace stagewright
