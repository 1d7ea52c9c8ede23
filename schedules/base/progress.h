// Progress and cancelling of long work. The callback may come from any one thread at a time; it must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace stagewright {

struct Progress {
    std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> report; // may be empty
    std::stop_token stop;

    void tell(std::string_view what, std::int64_t done, std::int64_t total) const
    {
        if (report) report(what, done, total);
    }
    bool cancelled() const { return stop.stop_requested(); }
};

} // namespace stagewright
