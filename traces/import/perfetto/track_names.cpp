#include "traces/import/perfetto/track_names.h"

#include <algorithm>

#include <fmt/format.h>
#include <protozero/pbf_message.hpp>

#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;
constexpr int mostParents = 64;

} // namespace

void PerfettoTracks::add(std::string_view descriptor)
{
    protozero::pbf_message<pf::Track> message(descriptor.data(), descriptor.size());
    Track track;
    std::uint64_t uuid = 0;
    while (message.next()) {
        const bool number = isNumber(message), bytes = isBytes(message);
        if (message.tag() == pf::Track::uuid && number) {
            uuid = message.get_uint64();
        } else if (message.tag() == pf::Track::parent && number) {
            track.parent = message.get_uint64();
        } else if ((message.tag() == pf::Track::name || message.tag() == pf::Track::staticName) && bytes) {
            track.place.name = message.get_string();
        } else if (message.tag() == pf::Track::process && bytes) {
            protozero::pbf_message<pf::Process> process(message.get_message());
            track.isProcess = true;
            while (process.next())
                if (process.tag() == pf::Process::pid && isNumber(process))
                    track.pid = process.get_int32();
                else if (process.tag() == pf::Process::name && isBytes(process))
                    track.processName = process.get_string();
                else
                    process.skip();
        } else if (message.tag() == pf::Track::thread && bytes) {
            protozero::pbf_message<pf::Thread> thread(message.get_message());
            track.isThread = true;
            while (thread.next())
                if (thread.tag() == pf::Thread::pid && isNumber(thread))
                    track.pid = thread.get_int32();
                else if (thread.tag() == pf::Thread::tid && isNumber(thread))
                    track.tid = thread.get_int64();
                else if (thread.tag() == pf::Thread::name && isBytes(thread))
                    track.place.name = thread.get_string();
                else
                    thread.skip();
        } else if (message.tag() == pf::Track::counter && bytes) {
            protozero::pbf_message<pf::Counter> counter(message.get_message());
            while (counter.next())
                if (counter.tag() == pf::Counter::unit && isNumber(counter)) {
                    const std::int32_t unit = counter.get_enum();
                    if (unit == pf::inBytes) track.place.unit = "bytes";
                    if (unit == pf::inNanos) track.place.unit = "ns";
                } else if (counter.tag() == pf::Counter::unitName && isBytes(counter)) {
                    track.place.unit = counter.get_string();
                } else if (counter.tag() == pf::Counter::multiplier && isNumber(counter)) {
                    track.place.multiplier = counter.get_int64();
                } else if (counter.tag() == pf::Counter::isIncremental && isNumber(counter)) {
                    track.place.incremental = counter.get_bool();
                } else {
                    counter.skip();
                }
        } else {
            message.skip();
        }
    }
    if (track.isProcess)
        m_processNames[std::to_string(track.pid)] = track.processName.empty() ? track.place.name : track.processName;
    if (m_tracks.size() >= most && !m_tracks.contains(uuid)) return;
    const auto [entry, added] = m_tracks.try_emplace(uuid, track);
    if (added) {
        m_order.push_back(uuid);
    } else { // said again: what is given replaces what was
        const std::int64_t sum = entry->second.place.sum;
        if (track.isProcess || track.isThread || !track.place.name.empty() || track.parent != 0) entry->second = track;
        entry->second.place.sum = sum;
    }
    ++m_said; // parents may be other ones now
}

void PerfettoTracks::place(std::uint64_t uuid, Track& track)
{
    track.placed = m_said;
    if (track.isThread) {
        track.place.process = std::to_string(track.pid);
        track.place.thread = std::to_string(track.tid);
        return;
    }
    const Track* at = &track;
    for (int i = 0; i < mostParents && !at->isProcess && !at->isThread && at->parent != 0; ++i) {
        const auto parent = m_tracks.find(at->parent);
        if (parent == m_tracks.end()) break;
        at = &parent->second;
    }
    track.place.process = std::to_string(at->pid);
    if (!track.isProcess)
        track.place.thread = fmt::format("track {}", uuid);
    else
        track.place.thread = "0";
    if (track.isProcess && track.place.name.empty()) track.place.name = track.processName;
}

PerfettoTracks::Place& PerfettoTracks::placeOf(std::uint64_t uuid)
{
    if (m_tracks.size() >= most && !m_tracks.contains(uuid)) uuid = 0;
    const auto [entry, added] = m_tracks.try_emplace(uuid);
    if (added) m_order.push_back(uuid);
    if (entry->second.placed != m_said) place(uuid, entry->second);
    return entry->second.place;
}

std::string_view PerfettoTracks::processName(const std::string& process) const
{
    const auto found = m_processNames.find(process);
    return found == m_processNames.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<PerfettoTracks::Named> PerfettoTracks::names() const
{
    std::vector<Named> out;
    for (const std::uint64_t uuid : m_order) {
        const Track& track = m_tracks.at(uuid);
        if (track.isProcess)
            out.push_back(
                {std::to_string(track.pid), {}, track.processName.empty() ? track.place.name : track.processName});
        else if (track.placed > 0 && !track.place.name.empty())
            out.push_back({track.place.process, track.place.thread, track.place.name});
    }
    return out;
}

} // namespace stagewright
