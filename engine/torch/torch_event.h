// What the driver says while it runs: one JSON object a line, among whatever else a rank prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/units.h"

namespace stagewright {

struct TorchEvent {
    enum class Kind : std::uint8_t {
        Beat,  // a sign of life: step, where, ops
        Ready, // torch, python, device
        Step,  // step, loss, stepTime: from the last stage's rank
        Check, // worst
        Error, // message, where, peer
        Done,  // steps, traced, profiling, writing
        Traced // step: this rank's trace holds it
    };
    Kind kind = Kind::Beat;
    int rank = -1;
    int step = 0;         // 0-based, warm-up included; Done: how many were complete
    std::int64_t ops = 0; // begun so far
    std::string where;    // "in 1F0", "after 2B3", "writing its trace"; of a beat
    double loss = 0;      // nats per token, mean over microbatches
    Nanos stepTime = 0;   // wall clock, on the rank that says it
    Nanos profiling = 0;  // beside the traced steps, PyTorch's profiler
    Nanos writing = 0;    // likewise, writing its traces
    double worst = 0;     // relative difference of gradients
    std::string message;
    bool peer = false; // the error came from another rank's end
    std::string torch, python, device;
};

// None: another line, or a damaged one.
std::optional<TorchEvent> parseTorchEvent(std::string_view line);

} // namespace stagewright
