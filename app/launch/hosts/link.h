// This end's pipe to the program on a host, or to another process of this program that does the same on this computer.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/launch/hosts/frames.h"
#include "app/launch/hosts/host_list.h"
#include "schedules/base/result.h"

namespace stagewright {

class HostLink {
public:
    // No host: this computer. Returns when the other end has said who it is. Unavailable: not reached, no program
    // there, or another version, with the older end named. Cancelled.
    // scratch: the folder of its jobs where it is not the host's.
    static Result<std::unique_ptr<HostLink>> open(const std::optional<Host>& host, const std::stop_token& stop = {},
                                                  const std::string& scratch = {});
    ~HostLink();

    // The other end does what it was asked for, and ends then by itself: nothing more is heard of it.
    void leave();
    void send(FrameKind kind, std::string_view bytes, std::uint64_t offset = 0); // a lost connection shows in next()
    // Waits so long at most; none where nothing came. Unavailable: the connection is lost. Unreadable: damaged bytes.
    Result<std::optional<Frame>> next(double seconds);

private:
    struct State;
    explicit HostLink(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
