#include "traces/import/perfetto/track_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;
constexpr int mostParents = 64;

} // namespace

void PerfettoTracks::add(std::string_view descriptor)
{
    Fields<pf::Track> message(descriptor.data(), descriptor.size());
    Track track;
    std::uint64_t uuid = 0;
    while (message.next()) {
        const bool number = message.isNumber(), bytes = message.isBytes();
        if (message.tag() == pf::Track::uuid && number) {
            uuid = message.number();
        } else if (message.tag() == pf::Track::parent && number) {
            track.parent = message.number();
        } else if ((message.tag() == pf::Track::name || message.tag() == pf::Track::staticName) && bytes) {
            track.place.name = std::string(message.bytes());
        } else if (message.tag() == pf::Track::process && bytes) {
            Fields<pf::Process> process(message.bytes());
            track.isProcess = true;
            while (process.next())
                if (process.tag() == pf::Process::pid && process.isNumber())
                    track.pid = process.small();
                else if (process.tag() == pf::Process::name && process.isBytes())
                    track.processName = std::string(process.bytes());
        } else if (message.tag() == pf::Track::thread && bytes) {
            Fields<pf::Thread> thread(message.bytes());
            track.isThread = true;
            while (thread.next())
                if (thread.tag() == pf::Thread::pid && thread.isNumber())
                    track.pid = thread.small();
                else if (thread.tag() == pf::Thread::tid && thread.isNumber())
                    track.tid = thread.whole();
                else if (thread.tag() == pf::Thread::name && thread.isBytes())
                    track.place.name = std::string(thread.bytes());
        } else if (message.tag() == pf::Track::counter && bytes) {
            Fields<pf::Counter> counter(message.bytes());
            while (counter.next())
                if (counter.tag() == pf::Counter::unit && counter.isNumber()) {
                    const std::int32_t unit = counter.small();
                    if (unit == pf::inBytes) track.place.unit = "bytes";
                    if (unit == pf::inNanos) track.place.unit = "ns";
                } else if (counter.tag() == pf::Counter::unitName && counter.isBytes()) {
                    track.place.unit = std::string(counter.bytes());
                } else if (counter.tag() == pf::Counter::multiplier && counter.isNumber()) {
                    track.place.multiplier = counter.whole();
                } else if (counter.tag() == pf::Counter::isIncremental && counter.isNumber()) {
                    track.place.incremental = (counter.number() != 0);
                }
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
    track.place.numbers = {};
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
