// Devices in traces of XLA (JAX), Chrome's JSON without categories: a process for each, "/device:GPU:0", with a thread
// for each of its lines, and one for the host. Metadata names them before their events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "traces/foreign/foreign_trace.h"

namespace stagewright {

struct KinetoEvent;
class TraceThreads;

inline constexpr std::string_view xlaDevicePrefix = "/device:";

// What a line of a device holds.
enum class XlaLine : std::uint8_t {
    None,    // not of such a device
    Work,    // "Stream #14(Compute)" of a GPU, "XLA Ops" of a TPU
    Steps,   // "Steps"
    Repeats, // "XLA Modules", "Framework Ops" …: the time of the others once more
};

class XlaDevices {
public:
    explicit XlaDevices(const TraceThreads& threads) : m_threads(threads) {} // which outlives it
    XlaLine lineOf(std::string_view process, std::string_view thread);
    bool seen() const { return m_seen; } // some line was one of a device

private:
    XlaLine readLine(const std::string& process, const std::string& thread) const;

    const TraceThreads& m_threads;
    std::map<std::pair<std::string, std::string>, XlaLine> m_lines; // those that were asked for
    bool m_seen = false;
};

// The host says a step's number and the correlation of what it launches (below 0: none): {"step_num": "3"}.
void takeHostOfXla(const KinetoEvent& event, const ForeignSpan& span, std::int64_t correlation, ForeignRank& rank);
std::string profilerStep(std::string_view number); // a step's range as PyTorch names it

} // namespace stagewright
