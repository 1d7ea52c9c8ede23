#include "traces/import/perfetto/packets.h"

#include <algorithm>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

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
        protozero::pbf_reader reader(packet.data(), packet.size());
        while (reader.next()) {
            if (reader.tag() > 4096) return false;
            for (const pf::Packet field :
                 {pf::Packet::clockSnapshot, pf::Packet::timestamp, pf::Packet::sequence, pf::Packet::trackDescriptor,
                  pf::Packet::compressed, pf::Packet::zstdCompressed, pf::Packet::trustedUser, pf::Packet::config,
                  pf::Packet::uuid})
                known = known || reader.tag() == static_cast<protozero::pbf_tag_type>(field);
            reader.skip();
        }
    } catch (const protozero::exception&) {
        return false;
    }
    return known;
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
            protozero::pbf_reader reader(m_inside.data() + m_insideAt, m_inside.size() - m_insideAt);
            if (!reader.next()) break;
            if (reader.tag() == static_cast<protozero::pbf_tag_type>(pf::Trace::packet) && isBytes(reader)) {
                const auto view = reader.get_view();
                packet = {view.data(), view.size()};
                m_insideAt = static_cast<std::size_t>(view.data() + view.size() - m_inside.data());
                return true;
            }
            reader.skip();
            m_insideAt = m_inside.size() - reader.length();
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
    protozero::pbf_reader reader(packet.data(), packet.size());
    while (reader.next()) {
        const auto tag = static_cast<pf::Packet>(reader.tag());
        if ((tag != pf::Packet::compressed && tag != pf::Packet::zstdCompressed) || !isBytes(reader)) {
            reader.skip();
            continue;
        }
        const auto view = reader.get_view();
        const std::string_view bytes(view.data(), view.size());
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

bool PerfettoPackets::next(std::string_view& packet)
{
    while (true) {
        if (nextInside(packet)) return true;
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
        try {
            bool compressed = false;
            // The field of a compressed packet is its only one, but for the sequence's.
            protozero::pbf_reader reader(packet.data(), packet.size());
            for (int fields = 0; fields < 4 && !compressed && reader.next(); ++fields) {
                compressed = static_cast<pf::Packet>(reader.tag()) == pf::Packet::compressed ||
                             static_cast<pf::Packet>(reader.tag()) == pf::Packet::zstdCompressed;
                reader.skip();
            }
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
