// What has been fetched of a job: its steps and events as they are over there, up to some byte, and the run file that
// the steps are replayed into.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/launch/hosts/job_list.h"
#include "schedules/base/result.h"
#include "traces/store/step_stream.h"

namespace stagewright {

class JobCopy {
public:
    // Replays what is here already, so that a run file that lost steps has them again. Holds the run file as its
    // writer.
    static Result<std::unique_ptr<JobCopy>> open(HostJob& job, std::function<void(const std::string& line)> event);
    ~JobCopy();

    std::uint64_t steps() const; // bytes here
    std::uint64_t events() const;
    std::uint32_t stepsSum() const; // CRC-32 of the last bytes of them, at most 4,096

    // Bytes that follow at the offset. Unreadable: a gap, damaged steps, or far more than were
    // asked for; what was complete before stays.
    Result<void> takeSteps(std::uint64_t offset, std::string_view bytes);
    Result<void> rewind(); // forgets what follows the last whole step, which may have been cut off over there
    // Unreadable where there are more than a job of its size has, so that no host fills the disk.
    Result<void> takeEvents(std::uint64_t offset, std::string_view bytes);
    const std::string& lastError() const; // the message and remedy of the last event of that kind; "" if there was none

private:
    struct State;
    explicit JobCopy(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
