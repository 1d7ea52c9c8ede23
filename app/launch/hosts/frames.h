// What goes through the pipe between the two ends of a host: frames of a kind, an offset and bytes, with length and
// checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

inline constexpr int linkProtocol = 2;

enum class FrameKind : std::uint8_t {
    Message = 1, // JSON: a request or an answer
    File = 2,    // bytes of the file that is being sent
    Steps = 3,   // of the stream of steps, from `offset`
    Events = 4,  // of the events, from `offset`
    Out = 5,     // standard output of a program that runs in the foreground
    Err = 6,
};

struct Frame {
    FrameKind kind = FrameKind::Message;
    std::uint64_t offset = 0;
    std::string bytes;
};

// What both ends have of the stream of steps before the offset from which a fetch goes on is compared over these bytes.
inline constexpr std::size_t checkedBytes = 4096;
inline constexpr std::size_t mostFrame = std::size_t{4} << 20;

std::string frameBytes(FrameKind kind, std::string_view bytes, std::uint64_t offset = 0); // at most mostFrame bytes

// Takes bytes as they come and gives whole frames. What a shell's start-up files print before the first frame is
// skipped, up to 64 KiB.
class FrameReader {
public:
    void add(std::string_view bytes) { m_rest.append(bytes); }
    // None: more bytes are needed. Unreadable: what came is not a frame.
    Result<std::optional<Frame>> next();
    std::string_view rest() const { return m_rest; } // not taken yet

private:
    std::string m_rest;
    bool m_begun = false;
};

} // namespace stagewright
