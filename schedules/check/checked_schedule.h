// CheckedSchedule: a schedule that validate() accepted, with what its users would each work out again: its lists
// without sends and receives (and without gathers and reductions that no ranks share), their cells and their index, and
// its lists as lowered by each rule that somebody asked for. Made once where a schedule enters, and travels as that;
// immutable, shared between threads.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/check/validate.h"
#include "schedules/messages/lower.h"
#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class CheckedSchedule {
public:
    // given: with or without sends and receives. Fails (Invalid) with the first fault of validate(). O(ops).
    static Result<std::shared_ptr<const CheckedSchedule>> of(Schedule given);
    // The same for who shows more than the first fault: null where `found` has any, and `given` is then left as it is.
    static std::shared_ptr<const CheckedSchedule> ifValid(Schedule&& given, Validation& found);
    // What options made of a schedule: `before` itself where the lists are still those it was given, else of(now), as
    // an edit is checked again. before: null where none was checked yet.
    static Result<std::shared_ptr<const CheckedSchedule>> after(const std::shared_ptr<const CheckedSchedule>& before,
                                                                Schedule now);

    const Schedule& given() const { return m_given ? *m_given : m_compute; }
    const Schedule& compute() const { return m_compute; } // without sends and receives
    const OpIndex& index() const { return m_index; }      // of compute()
    const CellSpace& cells() const { return m_index.cells(); }
    bool cameLowered() const { return m_given != nullptr; }
    // With sends and receives: as given, else by the rule, or why lower() can't. Worked out when the rule is first
    // asked for, then kept; a second thread that asks meanwhile waits for the first.
    Result<std::shared_ptr<const Schedule>> lowered(const Lowering& rule) const;

private:
    CheckedSchedule(Schedule compute, std::shared_ptr<const Schedule> given, OpIndex index);

    Schedule m_compute;
    std::shared_ptr<const Schedule> m_given; // where it has sends and receives; else null
    OpIndex m_index;
    mutable std::mutex m_mutex; // of m_lowered
    mutable std::vector<std::pair<Lowering, std::shared_ptr<const Schedule>>> m_lowered;
};

// checked->compute(), alive as long as either pointer.
std::shared_ptr<const Schedule> computeOf(const std::shared_ptr<const CheckedSchedule>& checked);

} // namespace stagewright
