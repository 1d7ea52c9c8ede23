#include "traces/import/kineto/kineto_launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "traces/foreign/json_events.h"
#include "traces/import/kineto/kineto_event.h"
#include "traces/import/kineto/process_ranks.h"

namespace stagewright {

namespace {

constexpr std::int64_t smallFile = 64 << 20;
constexpr std::int64_t madeUp = std::int64_t{1} << 62; // correlations of work that has none

struct HostPlace {
    Nanos time = 0;
    std::uint32_t thread = 0;
};

bool isHostRange(std::string_view category)
{
    return category == "cpu_op" || category == "user_annotation" || category == "Operator" || category == "operator";
}

class Tying {
public:
    Tying(const std::vector<std::int64_t>& external, const IdOfProcess& idOf, TraceThreads& threads, ForeignRank& rank)
        : m_external(external), m_idOf(idOf), m_threads(threads), m_rank(rank)
    {
        const auto less = [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; };
        if (!std::is_sorted(rank.launches.begin(), rank.launches.end(), less))
            std::stable_sort(rank.launches.begin(), rank.launches.end(), less);
        findOwners();
        for (std::uint32_t i = 0; i < rank.device.size(); ++i) {
            const DeviceSpan& span = rank.device[i];
            if (span.launchedFrom != noThread || hasLaunch(span)) continue;
            m_alone.push_back(i);
            if (external[i] > 0)
                m_wanted.try_emplace(external[i]);
            else
                m_flowsInto.try_emplace({span.thread, span.start}, -1);
        }
    }

    // Work at the start of a trace was launched before it: not worth reading a large file twice.
    bool worth(std::int64_t bytes) const
    {
        return !m_alone.empty() && (bytes < smallFile || m_alone.size() * 100 >= m_rank.device.size());
    }

    Result<void> read(ByteSource& source, const Progress& progress)
    {
        if (!source.restart()) return {};
        JsonEvents events(source, progress.stop);
        JsonEvents::Item item;
        KinetoEventParser parser;
        KinetoEvent event;
        const auto take = [&] {
            look(event);
            return true;
        };
        while (true) {
            const auto more = events.next(item);
            if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            if (!more || !*more) return {};
            if (item.member) continue;
            std::size_t done = parser.parseAll(item.text, event, isHostEvent, take);
            for (; done < item.events; ++done) {
                if (parser.parse(events.event(done), event, isHostEvent)) {
                    look(event);
                } else {
                    events.reject(done);
                    break;
                }
            }
        }
    }

    void tie()
    {
        std::int64_t tied = 0;
        std::unordered_map<std::uint32_t, std::int64_t> changed;         // correlation by device span
        std::map<std::pair<std::int64_t, std::string>, HostPlace> added; // by correlation and process
        for (const std::uint32_t i : m_alone) {
            const auto place = placeOf(i);
            if (!place) continue;
            DeviceSpan& span = m_rank.device[i];
            if (span.correlation < 0) span.correlation = madeUp + i;
            changed[i] = span.correlation;
            added.try_emplace({span.correlation, processOf(place->thread)}, *place);
            ++tied;
        }
        for (const auto& [key, place] : added) m_rank.launches.push_back({key.first, place.time, place.thread});
        for (ForeignMessage& message : m_rank.messages)
            if (const auto found = message.device && message.work >= 0
                                       ? changed.find(static_cast<std::uint32_t>(message.work))
                                       : changed.end();
                found != changed.end())
                message.correlation = found->second;
        m_rank.notes.push_back(fmt::format(
            "{} of {} kernels and copies have no launch record: {} of these are matched by External id or flow",
            m_alone.size(), m_rank.device.size(), tied));
    }

private:
    const std::string& processOf(std::uint32_t thread) const { return m_threads.processes()[thread]; }

    template <typename Visit>
    void eachLaunch(std::int64_t correlation, Visit visit) const
    {
        auto at = std::lower_bound(m_rank.launches.begin(), m_rank.launches.end(), correlation,
                                   [](const Launch& a, std::int64_t b) { return a.correlation < b; });
        for (; correlation >= 0 && at != m_rank.launches.end() && at->correlation == correlation; ++at)
            visit(processOf(at->thread));
    }

    // The owner of a merged rank's device: the process on the host that made nine of ten of those of its calls that
    // only one process can have made.
    void findOwners()
    {
        const auto& launches = m_rank.launches;
        if (std::all_of(launches.begin(), launches.end(), [&](const Launch& launch) {
                return processOf(launch.thread) == processOf(launches.front().thread);
            }))
            return;
        std::map<std::string, std::map<std::string, std::int64_t>> votes;
        for (const DeviceSpan& span : m_rank.device) {
            const std::string* caller = nullptr;
            bool several = false;
            eachLaunch(span.correlation, [&](const std::string& process) {
                several = several || (caller != nullptr && *caller != process);
                caller = &process;
            });
            if (caller != nullptr && !several) ++votes[processOf(span.thread)][*caller];
        }
        for (const auto& [device, counts] : votes) {
            std::int64_t all = 0;
            for (const auto& [host, count] : counts) all += count;
            const auto most = std::max_element(counts.begin(), counts.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
            if (most->second * 10 >= all * 9) m_owners[device] = most->first;
        }
    }

    // By its tag, else by the other calls; null: not known.
    const std::string* ownerOf(const DeviceSpan& span) const
    {
        const auto found = m_owners.find(processOf(span.thread));
        return found == m_owners.end() ? nullptr : &found->second;
    }
    static bool haveTheSameTag(const std::string& device, const std::string& host)
    {
        return !processTag(device).empty() && processTag(device) == processTag(host);
    }

    bool hasLaunch(const DeviceSpan& span) const
    {
        const std::string* owner = ownerOf(span);
        bool found = false;
        eachLaunch(span.correlation,
                   [&](const std::string& process) { found = found || owner == nullptr || *owner == process; });
        return found;
    }

    static bool isHostEvent(std::string_view category, std::string_view) { return isHostRange(category); }

    void look(const KinetoEvent& event)
    {
        if (!event.time) return;
        if (event.phase == 'X' && event.args.external > 0 && isHostRange(event.category)) {
            const auto wanted = m_wanted.find(m_idOf(event.pid, event.args.external));
            if (wanted == m_wanted.end()) return;
            auto& places = wanted->second;
            if (std::none_of(places.begin(), places.end(),
                             [&](const HostPlace& place) { return processOf(place.thread) == event.pid; }))
                places.push_back(
                    {*event.time, m_threads.of(event.pid, event.tid, false, m_rank)}); // the first of each process
            return;
        }
        if (m_flowsInto.empty() || (event.phase != 's' && event.phase != 'f') || event.category == "fwdbwd" ||
            event.category == "forward_backward")
            return;
        const auto id = wholeNumberOf(event.id);
        if (!id || *id <= 0) return; // 0 is of none
        if (event.phase == 's') {
            m_flowsFrom.try_emplace(*id, HostPlace{*event.time, m_threads.of(event.pid, event.tid, false, m_rank)});
        } else if (const auto into = m_flowsInto.find({m_threads.of(event.pid, event.tid, true, m_rank), *event.time});
                   into != m_flowsInto.end()) {
            into->second = *id;
        }
    }

    std::optional<HostPlace> placeOf(std::uint32_t i) const
    {
        if (m_external[i] > 0) return ofItsProcess(m_wanted.at(m_external[i]), m_rank.device[i]);
        const auto into = m_flowsInto.find({m_rank.device[i].thread, m_rank.device[i].start});
        const auto from = into == m_flowsInto.end() ? m_flowsFrom.end() : m_flowsFrom.find(into->second);
        return from == m_flowsFrom.end() ? std::nullopt : std::optional(from->second);
    }

    std::optional<HostPlace> ofItsProcess(const std::vector<HostPlace>& places, const DeviceSpan& span) const
    {
        const std::string* owner = ownerOf(span);
        std::optional<HostPlace> found;
        for (const HostPlace& place : places) {
            const bool own = owner != nullptr ? *owner == processOf(place.thread)
                                              : places.size() == 1 ||
                                                    haveTheSameTag(processOf(span.thread), processOf(place.thread));
            if (!own) continue;
            if (found) return std::nullopt; // of two processes, and nothing says of which
            found = place;
        }
        return found;
    }

    const std::vector<std::int64_t>& m_external;
    const IdOfProcess& m_idOf;
    TraceThreads& m_threads;
    ForeignRank& m_rank;
    std::map<std::string, std::string> m_owners;                       // by a device's process, of merged ranks
    std::vector<std::uint32_t> m_alone;                                // of ForeignRank::device
    std::unordered_map<std::int64_t, std::vector<HostPlace>> m_wanted; // by External id
    // by stream and start: the flow that ends there
    std::map<std::pair<std::uint32_t, Nanos>, std::int64_t> m_flowsInto;
    // by flow; only where something lacks an External id
    std::unordered_map<std::int64_t, HostPlace> m_flowsFrom;
};

} // namespace

Result<void> tieWithoutLaunches(ByteSource& source, const std::vector<std::int64_t>& external, const IdOfProcess& idOf,
                                TraceThreads& threads, ForeignRank& rank, const Progress& progress)
{
    Tying tying(external, idOf, threads, rank);
    if (!tying.worth(source.size())) return {};
    if (auto done = tying.read(source, progress); !done) return done;
    tying.tie();
    return {};
}

} // namespace stagewright
