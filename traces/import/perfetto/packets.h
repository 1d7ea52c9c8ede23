// The packets of a Perfetto trace (protos/perfetto/trace/trace.proto), whatever its size: a window moves over the
// bytes. Packets that are compressed inside the file (compressed_packets, zstd_compressed_packets) come one after the
// other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"

namespace stagewright {

class PerfettoPackets {
public:
    static constexpr std::size_t mostPacketBytes = std::size_t{64} << 20;
    static constexpr std::size_t mostUnpackedBytes = std::size_t{256} << 20; // of one compressed packet

    explicit PerfettoPackets(ByteSource& source, std::size_t window = std::size_t{1} << 20);

    // False: the end. The packet is valid until the next call, and so are views of it.
    bool next(std::string_view& packet);
    bool cutOff() const { return m_cutOff; } // the bytes ended within a packet
    std::int64_t damaged() const
    {
        return m_damaged;
    } // compressed packets that can't be unpacked, packets that are too large
    const std::string& lastDamage() const { return m_lastDamage; } // of them, in words; "": none

private:
    bool fill(std::size_t wanted); // so many bytes from m_at on; false: there are fewer
    bool readVarint(std::uint64_t& value);
    bool skip(std::uint64_t bytes);
    bool nextInside(std::string_view& packet);
    bool nextWhole(std::string_view& packet);
    void unpack(std::string_view packet);

    ByteSource& m_source;
    std::size_t m_window;
    std::string m_buffer;
    std::size_t m_at = 0;
    std::string m_inside; // an unpacked packet's packets
    std::size_t m_insideAt = 0;
    bool m_ended = false, m_cutOff = false;
    std::int64_t m_damaged = 0;
    std::string m_lastDamage;
};

// Whether a file that starts like this is such a trace.
bool startsLikePerfetto(std::string_view head);

} // namespace stagewright
