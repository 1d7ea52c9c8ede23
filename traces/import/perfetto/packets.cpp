#include "traces/import/perfetto/packets.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/export/perfetto_fields.h"
#include "traces/foreign/archive.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;

// Only what Trace and its packets have; false: it is something else, or damaged.
bool hasKnownFields(std::string_view packet)
{
    bool known = false;
    try {
        Fields<pf::Packet> fields(packet);
        while (fields.next()) {
            if (static_cast<std::uint32_t>(fields.tag()) > 4096) return false;
            for (const pf::Packet field :
                 {pf::Packet::clockSnapshot, pf::Packet::timestamp, pf::Packet::sequence, pf::Packet::trackDescriptor,
                  pf::Packet::compressed, pf::Packet::zstdCompressed, pf::Packet::trustedUser, pf::Packet::config,
                  pf::Packet::uuid})
                known = known || fields.tag() == field;
        }
    } catch (const protozero::exception&) {
        return false;
    }
    return known;
}

// Whether the field of a compressed packet is its first, or comes behind its sequence and user.
bool mayBeCompressed(std::string_view packet)
{
    constexpr char sequenceKey = 10 << 3, userKey = 3 << 3;
    std::size_t at = 0;
    while (at < packet.size() && (packet[at] == sequenceKey || packet[at] == userKey)) {
        for (++at; at < packet.size() && static_cast<unsigned char>(packet[at]) >= 0x80;) ++at;
        ++at;
    }
    return at < packet.size() && static_cast<unsigned char>(packet[at]) >= 0x80; // a number above 15: looked at closely
}

} // namespace

PerfettoPackets::PerfettoPackets(ByteSource& source, std::size_t window) : m_source(source), m_window(window) {}

bool PerfettoPackets::fill(std::size_t wanted)
{
    while (m_buffer.size() - m_at < wanted && !m_ended) {
        if (m_at > 0) {
            m_buffer.erase(0, m_at);
            m_at = 0;
        }
        const std::size_t before = m_buffer.size();
        m_buffer.resize(before + std::max(m_window, wanted - std::min(wanted, before)));
        const std::size_t got = m_source.read(m_buffer.data() + before, m_buffer.size() - before);
        m_buffer.resize(before + got);
        m_ended = got == 0;
    }
    return m_buffer.size() - m_at >= wanted;
}

bool PerfettoPackets::readVarint(std::uint64_t& value)
{
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (!fill(1)) return false;
        const auto byte = static_cast<unsigned char>(m_buffer[m_at++]);
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool PerfettoPackets::skip(std::uint64_t bytes)
{
    while (bytes > 0) {
        if (!fill(1)) return false;
        const std::size_t part = std::min<std::uint64_t>(bytes, m_buffer.size() - m_at);
        m_at += part;
        bytes -= part;
    }
    return true;
}

bool PerfettoPackets::nextInside(std::string_view& packet)
{
    while (m_insideAt < m_inside.size()) {
        try {
            Fields<pf::Trace> inside(std::string_view(m_inside).substr(m_insideAt));
            if (!inside.next()) break;
            m_insideAt = static_cast<std::size_t>(inside.position() - m_inside.data());
            if (inside.tag() != pf::Trace::packet || !inside.isBytes()) continue;
            packet = inside.bytes();
            return true;
        } catch (const protozero::exception&) {
            ++m_damaged;
            m_lastDamage = "a compressed packet holds no packets";
            break;
        }
    }
    m_inside.clear();
    m_insideAt = 0;
    return false;
}

void PerfettoPackets::unpack(std::string_view packet)
{
    Fields<pf::Packet> fields(packet);
    while (fields.next()) {
        const pf::Packet tag = fields.tag();
        if ((tag != pf::Packet::compressed && tag != pf::Packet::zstdCompressed) || !fields.isBytes()) continue;
        const std::string_view bytes = fields.bytes();
        auto unpacked = tag == pf::Packet::compressed ? unpackedDeflate(bytes, mostUnpackedBytes)
                                                      : unpackedZstd(bytes, mostUnpackedBytes);
        if (unpacked) {
            m_inside = std::move(*unpacked);
            m_insideAt = 0;
            return;
        }
        ++m_damaged;
        m_lastDamage = fmt::format("a compressed packet can't be unpacked: {}", unpacked.error().message);
    }
}

// A packet that lies in the buffer and is not compressed, as almost all do; false: it may be anything else.
bool PerfettoPackets::nextWhole(std::string_view& packet)
{
    constexpr unsigned char packetKey = 0x0A;
    constexpr std::size_t mostHead = 4, mostSize = 1 << 20;
    if (m_buffer.size() - m_at < mostHead + 1) return false;
    const auto* const at = reinterpret_cast<const unsigned char*>(m_buffer.data()) + m_at;
    if (at[0] != packetKey) return false;
    std::size_t size = at[1] & 0x7FU, head = 2;
    for (int shift = 7; at[head - 1] >= 0x80; ++head, shift += 7) {
        if (head == mostHead) return false;
        size |= std::size_t{at[head] & 0x7FU} << shift;
    }
    if (size > mostSize || size > m_buffer.size() - m_at - head) return false;
    const std::string_view inner(m_buffer.data() + m_at + head, size);
    if (mayBeCompressed(inner)) return false;
    packet = inner;
    m_at += head + size;
    return true;
}

bool PerfettoPackets::next(std::string_view& packet)
{
    while (true) {
        if (!m_inside.empty() && nextInside(packet)) return true;
        if (nextWhole(packet)) return true;
        if (!fill(1)) return false;
        std::uint64_t key = 0, size = 0;
        m_cutOff = true; // unless this one ends
        if (!readVarint(key)) return false;
        switch (key & 7) {
        case 0:
            if (!readVarint(size)) return false;
            m_cutOff = false;
            continue;
        case 1:
        case 5:
            if (!skip((key & 7) == 1 ? 8 : 4)) return false;
            m_cutOff = false;
            continue;
        case 2: break;
        default: return false; // there is no such field: where the next one starts is unknown
        }
        if (!readVarint(size)) return false;
        if (size > mostPacketBytes || key >> 3 != static_cast<std::uint64_t>(pf::Trace::packet)) {
            if (key >> 3 == static_cast<std::uint64_t>(pf::Trace::packet)) {
                ++m_damaged;
                m_lastDamage = fmt::format("a packet is larger than {} MiB", mostPacketBytes >> 20);
            }
            if (!skip(size)) return false;
            m_cutOff = false;
            continue;
        }
        if (!fill(size)) return false;
        m_cutOff = false;
        packet = std::string_view(m_buffer).substr(m_at, size);
        m_at += size;
        if (!mayBeCompressed(packet)) return true;
        try {
            bool compressed = false;
            // The field of a compressed packet is its only one, but for the sequence's.
            Fields<pf::Packet> fields(packet);
            for (int i = 0; i < 4 && !compressed && fields.next(); ++i)
                compressed = fields.tag() == pf::Packet::compressed || fields.tag() == pf::Packet::zstdCompressed;
            if (!compressed) return true;
            unpack(packet);
        } catch (const protozero::exception&) {
            return true; // damage that the caller sees, too
        }
    }
}

bool startsLikePerfetto(std::string_view head)
{
    int packets = 0;
    for (std::size_t at = 0; at < head.size();) {
        if (head[at] != 0x0A) return false;
        std::uint64_t size = 0;
        std::size_t digit = at + 1;
        for (int shift = 0; digit < head.size() && shift < 35; shift += 7) {
            const auto byte = static_cast<unsigned char>(head[digit++]);
            size |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) break;
        }
        if (digit + size > head.size()) return packets > 0;
        if (!hasKnownFields(head.substr(digit, size))) return false;
        if (++packets == 3) return true;
        at = digit + size;
    }
    return packets > 0;
}

} // namespace stagewright
