// CheckedSchedule: a schedule that validate() accepted, with what its users would each work out again: its lists without sends and
// receives, their cells and their index. Made once where a schedule enters; immutable, shared between threads.
#pragma once

#include <memory>
#include <optional>

#include "schedules/messages/lower.h"
#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class CheckedSchedule {
public:
    // given: with or without sends and receives. Fails (Invalid) with the first fault of validate(). O(ops).
    static Result<std::shared_ptr<const CheckedSchedule>> of(Schedule given);

    const Schedule& compute() const { return m_compute; } // without sends and receives
    const OpIndex& index() const { return m_index; }      // of compute()
    const CellSpace& cells() const { return m_index.cells(); }
    bool cameLowered() const { return m_given.has_value(); }
    // With sends and receives: as given, else by the rule, or why lower() can't. A copy.
    Result<Schedule> lowered(const Lowering& rule) const;

private:
    CheckedSchedule(Schedule compute, std::optional<Schedule> given, OpIndex index);

    Schedule m_compute;
    std::optional<Schedule> m_given; // where it has sends and receives
    OpIndex m_index;
};

// checked->compute(), alive as long as either pointer.
std::shared_ptr<const Schedule> computeOf(const std::shared_ptr<const CheckedSchedule>& checked);

} // namespace stagewright
