#include "app/launch/hosts/frames.h"

#include <algorithm>

#include <fmt/format.h>
#include <zlib.h>

namespace stagewright {

namespace {

constexpr std::string_view mark = "\x01SWFR\x02"; // no line of text has it
constexpr std::size_t headBytes = 24;             // mark, kind, a zero, offset, length, checksum
constexpr std::size_t mostNoise = std::size_t{64} << 10;

void put(std::string& bytes, std::uint64_t value, int size)
{
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t get(std::string_view bytes, std::size_t at, int size)
{
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]))
                 << (8 * i);
    return value;
}

std::uint32_t checksum(std::string_view head, std::string_view bytes)
{
    uLong sum = crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    return static_cast<std::uint32_t>(sum);
}

} // namespace

std::string frameBytes(FrameKind kind, std::string_view bytes, std::uint64_t offset)
{
    std::string frame(mark);
    put(frame, static_cast<std::uint64_t>(kind), 2);
    put(frame, offset, 8);
    put(frame, bytes.size(), 4);
    put(frame, checksum(frame, bytes), 4);
    return frame.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next()
{
    if (!m_begun) {
        const std::size_t at = m_rest.find(mark);
        if (at == std::string::npos) {
            if (m_rest.size() > mostNoise)
                return fail(ErrorCode::Unreadable, "what the host sends is not stagewright's",
                            "its shell's start-up files must print nothing without a terminal");
            return std::optional<Frame>();
        }
        m_rest.erase(0, at);
        m_begun = true;
    }
    const auto damaged = [](std::string_view what) {
        return fail(ErrorCode::Unreadable, fmt::format("what the host sends is damaged: {}", what));
    };
    if (!std::equal(m_rest.begin(), m_rest.begin() + static_cast<std::ptrdiff_t>(std::min(m_rest.size(), mark.size())),
                    mark.begin()))
        return damaged("no frame starts where one should");
    if (m_rest.size() < headBytes) return std::optional<Frame>();
    const std::uint64_t kind = get(m_rest, mark.size(), 2);
    const std::uint64_t length = get(m_rest, 16, 4);
    if (kind < 1 || kind > static_cast<std::uint64_t>(FrameKind::Err))
        return damaged(fmt::format("a frame of kind {}", kind));
    if (length > mostFrame) return damaged(fmt::format("a frame of {} bytes; at most {} are taken", length, mostFrame));
    if (m_rest.size() < headBytes + length) return std::optional<Frame>();
    const std::string_view all = m_rest;
    if (checksum(all.substr(0, headBytes - 4), all.substr(headBytes, length)) != get(all, headBytes - 4, 4))
        return damaged("a checksum is wrong");
    Frame frame{static_cast<FrameKind>(kind), get(all, 8, 8), std::string(all.substr(headBytes, length))};
    m_rest.erase(0, headBytes + length);
    return std::optional<Frame>(std::move(frame));
}

} // namespace stagewright
