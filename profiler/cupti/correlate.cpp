#include "profiler/cupti/correlate.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "profiler/cupti/external_id.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr Nanos clockNoise = 1'000;                // how much earlier than its launch a kernel may seem to start
constexpr Nanos secondsBefore = 1'000'000'000;     // the step: what starts earlier has a damaged stamp
constexpr Nanos longAfter = 1'000 * secondsBefore; // and what starts later
// CUPTI's overhead kinds from here on are its own, but for code loading
constexpr std::uint32_t instrumentation = 1 << 16;

std::uint64_t streamKey(const GpuRecord& record)
{
    return static_cast<std::uint64_t>(record.context) << 32 | record.stream;
}

bool isLoading(std::uint32_t overhead)
{
    return overhead < instrumentation || overhead == 4 * instrumentation || overhead == 5 * instrumentation;
}

std::string_view synchronizationName(std::uint32_t type)
{
    switch (type) {
    case 1: return "wait for an event";
    case 2: return "stream waits for an event";
    case 3: return "wait for a stream";
    case 4: return "wait for the device";
    default: return "synchronization";
    }
}

// The ids that were on the stacks around one launch.
struct Owners {
    std::int32_t op = -1;   // number of the op over all ranks
    std::int32_t send = -1; // index into messages
    std::int32_t receive = -1;
    std::int32_t rank = -1; // of work that belongs to no op
    bool delivered = false; // work of it was seen
};

struct Launch {
    std::int64_t start;
    std::uint32_t thread;
    bool launches;
};

class Correlator {
public:
    Correlator(const GpuTrace& trace, const StepRecord& step, const MessageNumbers& numbers, Nanos origin)
        : m_trace(trace), m_step(step), m_origin(origin)
    {
        Nanos last = step.begin;
        for (std::size_t rank = 0; rank < step.ops.size(); ++rank) {
            m_firstOp.push_back(static_cast<std::int32_t>(m_rankOf.size()));
            m_device.ops.emplace_back(step.ops[rank].size());
            std::map<std::pair<ExternalRole, int>, int> beside; // ops after the list so far, by role and stage
            for (const RecordedOp& op : step.ops[rank]) {
                ExternalId id;
                id.rank = static_cast<int>(rank);
                id.position = op.position;
                if (op.position < 0) {
                    id.role = isReduction(op.op.kind) ? ExternalRole::Norm : ExternalRole::Optimizer;
                    id.position = besidePosition(op.op.stage, beside[{id.role, op.op.stage}]++);
                }
                m_ops.emplace(pack(id), static_cast<std::int32_t>(m_rankOf.size()));
                m_rankOf.push_back(static_cast<std::int32_t>(rank));
                last = std::max(last, op.end);
            }
        }
        m_pieces.resize(m_rankOf.size());
        m_device.messages.resize(step.messages.size());
        m_copied.resize(step.messages.size());
        for (std::size_t i = 0; i < step.messages.size(); ++i)
            m_messages.emplace(numbers(step.messages[i].key), static_cast<std::int32_t>(i));
        m_earliest = step.begin + origin - secondsBefore;
        m_latest = last + origin + longAfter;
        m_last = last;
    }

    DeviceStep run()
    {
        sortRecords();
        findOwners();
        findLaunches();
        findRanks();
        for (const GpuRecord& record : m_records) {
            if (!record.isWork()) continue;
            if (const auto owners = m_owners.find(record.correlation); owners != m_owners.end())
                addWork(record, &owners->second);
        }
        for (const GpuRecord& record : m_records) { // now that it is known how long the step lasted on the device
            if (record.isWork() && !m_owners.contains(record.correlation))
                addWork(record, nullptr);
            else if (record.kind == GpuRecordKind::Overhead || record.kind == GpuRecordKind::Synchronization)
                addOther(record);
        }
        countMissing();
        finishOps();
        finishMessages();
        std::sort(m_device.work.begin(), m_device.work.end());
        return std::move(m_device);
    }

private:
    GpuTraceCounts& counts() { return m_device.counts; }
    std::string_view nameOf(const GpuRecord& record) const
    {
        return record.name < m_trace.names.size() ? std::string_view(m_trace.names[record.name]) : std::string_view();
    }

    // Each record once, in an order that does not depend on that of delivery: names compare as texts, their numbers
    // depend.
    void sortRecords()
    {
        m_records = m_trace.records;
        std::sort(m_records.begin(), m_records.end(), [this](GpuRecord a, GpuRecord b) {
            const std::string_view nameA = nameOf(a);
            const std::string_view nameB = nameOf(b);
            a.name = b.name = 0;
            const auto order = a <=> b;
            return order != 0 ? order < 0 : nameA < nameB;
        });
        const auto last = std::unique(m_records.begin(), m_records.end());
        for (auto at = last; at != m_records.end(); ++at) counts().repeated += 1;
        m_records.erase(last, m_records.end());
    }

    void findOwners()
    {
        const int step = m_step.step & (ExternalId::steps - 1);
        for (const GpuRecord& record : m_records) { // of one correlation by value: the lower id first
            if (record.kind != GpuRecordKind::ExternalId) continue;
            std::optional<ExternalId> id = unpackExternalId(record.value);
            if (!id) {
                ++counts().foreignIds;
                continue;
            }
            if (id->step != step) continue;
            if (id->role == ExternalRole::Other) {
                if (id->rank < static_cast<int>(m_device.ops.size())) m_owners[record.correlation].rank = id->rank;
                continue;
            }
            id->step = 0;
            const std::int32_t found = id->isMessage() ? find(m_messages, id->message) : find(m_ops, pack(*id));
            if (found < 0) continue; // of another schedule
            Owners& owners = m_owners[record.correlation];
            std::int32_t& owner = id->role == ExternalRole::Send      ? owners.send
                                  : id->role == ExternalRole::Receive ? owners.receive
                                                                      : owners.op;
            if (owner < 0)
                owner = found;
            else if (owner != found)
                ++counts().ambiguous;
        }
    }
    static std::int32_t find(const std::unordered_map<std::uint64_t, std::int32_t>& numbers, std::uint64_t key)
    {
        const auto at = numbers.find(key);
        return at == numbers.end() ? -1 : at->second;
    }

    // Correlations are used again after 2^32 calls, so only API calls of this step count.
    bool isNear(std::int64_t start) const { return start >= m_earliest && start <= m_latest; }
    void findLaunches()
    {
        // by thread: until when its last launch through the runtime lasts
        std::unordered_map<std::uint32_t, std::int64_t> inRuntime;
        for (const GpuRecord& record : m_records) { // by start
            if (!record.isApi() || record.start == 0 || !isNear(record.start)) continue;
            bool launches = (record.flags & GpuLaunches) != 0 && (record.flags & GpuFailed) == 0;
            if (record.kind == GpuRecordKind::RuntimeApi && launches) inRuntime[record.stream] = record.end;
            if (record.kind == GpuRecordKind::DriverApi) { // the runtime calls the driver: the same launch again
                const auto within = inRuntime.find(record.stream);
                launches = launches && (within == inRuntime.end() || within->second < record.end);
            }
            const auto [at, added] =
                m_launches.try_emplace(record.correlation, Launch{record.start, record.stream, launches});
            if (added) continue;
            at->second.start = std::min(at->second.start, record.start);
            at->second.launches = at->second.launches || launches;
        }
    }

    // One thread requested both ends of a message. A copy is both at once; for the two kernels of a group, the device
    // says which is which.
    std::int32_t rankOf(const Owners& owners, const GpuRecord& record) const
    {
        if (owners.send >= 0 && owners.send == owners.receive) {
            const RecordedMessage& message = m_step.messages[static_cast<std::size_t>(owners.send)];
            const bool sends =
                record.kind == GpuRecordKind::Kernel && rankIn(m_deviceRank, record.device) == message.fromRank;
            return sends ? message.fromRank : message.toRank;
        }
        if (owners.send >= 0) return m_step.messages[static_cast<std::size_t>(owners.send)].fromRank;
        if (owners.receive >= 0) return m_step.messages[static_cast<std::size_t>(owners.receive)].toRank;
        return owners.op >= 0 ? m_rankOf[static_cast<std::size_t>(owners.op)] : owners.rank;
    }
    // Devices, streams and threads belong to the rank most of whose launches they carry; of equals, the first. Devices
    // by ops alone.
    void findRanks()
    {
        const auto most = [](const auto& votes, auto& winners) {
            for (const auto& [key, ranks] : votes) {
                const auto better = [](const auto& a, const auto& b) { return a.second < b.second; };
                winners[key] = std::max_element(ranks.begin(), ranks.end(), better)->first;
            }
        };
        std::map<std::uint64_t, std::map<std::int32_t, std::int64_t>> devices;
        for (const GpuRecord& record : m_records) {
            const auto at = record.isWork() ? m_owners.find(record.correlation) : m_owners.end();
            if (at != m_owners.end() && at->second.op >= 0 && at->second.send < 0 && at->second.receive < 0)
                ++devices[record.device][rankOf(at->second, record)];
        }
        most(devices, m_deviceRank);
        std::map<std::uint64_t, std::map<std::int32_t, std::int64_t>> streams;
        std::map<std::uint64_t, std::map<std::int32_t, std::int64_t>> threads;
        for (const GpuRecord& record : m_records) {
            if (!record.isWork()) continue;
            const auto at = m_owners.find(record.correlation);
            if (at == m_owners.end()) continue;
            const std::int32_t rank = rankOf(at->second, record);
            ++streams[streamKey(record)][rank];
            const auto launch = m_launches.find(record.correlation);
            if (launch != m_launches.end()) ++threads[launch->second.thread][rank];
        }
        most(streams, m_streamRank);
        most(threads, m_threadRank);
    }
    static std::int32_t rankIn(const std::unordered_map<std::uint64_t, std::int32_t>& ranks, std::uint64_t key)
    {
        const auto at = ranks.find(key);
        return at == ranks.end() ? -1 : at->second;
    }

    void addWork(const GpuRecord& record, Owners* owners)
    {
        if (record.start == 0 || record.end == 0) {
            if (owners != nullptr) owners->delivered = true;
            ++counts().unstamped;
            return;
        }
        if (!isNear(record.start)) { // damaged, or of another step whose correlation was used again
            if (owners != nullptr) ++counts().offClock;
            return;
        }
        if (record.end < record.start) {
            if (owners != nullptr) owners->delivered = true;
            ++counts().reversed;
            return;
        }
        std::int64_t start = record.start;
        Nanos launched = -1;
        if (const auto at = m_launches.find(record.correlation); at != m_launches.end()) {
            launched = at->second.start - m_origin;
            if (start < at->second.start && at->second.start - start < clockNoise) {
                start = std::min(at->second.start, record.end);
                ++counts().clamped;
            } else if (start < at->second.start) {
                ++counts().early;
            }
        }
        DeviceWork work;
        work.begin = start - m_origin;
        work.end = record.end - m_origin;
        work.lane = record.kind == GpuRecordKind::Kernel ? Lane::Kernel : Lane::Copy;
        work.name = workName(m_trace, record);
        work.collective = record.kind == GpuRecordKind::Kernel && collectiveOf(nameOf(record)) != Collective::None;
        if (owners == nullptr) {
            work.rank = rankIn(m_streamRank, streamKey(record));
            if (inStep(work)) {
                ++counts().unowned;
                m_device.work.push_back(std::move(work));
            }
            return;
        }
        owners->delivered = true;
        const bool others = owners->op < 0 && owners->send < 0 && owners->receive < 0;
        if (others && work.end < m_step.begin) return; // it made ready for the step
        m_last = std::max(m_last, work.end);
        ++counts().work;
        const bool copied = record.kind != GpuRecordKind::Kernel;
        work.rank = rankOf(*owners, record);
        const bool oneEnd = !copied && owners->send >= 0 && owners->send == owners->receive;
        const bool sends = !oneEnd || work.rank == m_step.messages[static_cast<std::size_t>(owners->send)].fromRank;
        if (owners->send >= 0 && sends) join(m_device.messages[static_cast<std::size_t>(owners->send)].send, work);
        if (owners->receive >= 0 && !(oneEnd && sends))
            join(m_device.messages[static_cast<std::size_t>(owners->receive)].receive, work);
        for (const std::int32_t message : {owners->send, owners->receive})
            if (message >= 0 && copied) m_copied[static_cast<std::size_t>(message)] = true;
        work.launched = launched;
        work.message = owners->send >= 0 ? owners->send : owners->receive;
        if (work.message < 0 && !others) {
            const auto rank = static_cast<std::size_t>(work.rank);
            work.op = owners->op - m_firstOp[rank];
            DeviceOp& op = m_device.ops[rank][static_cast<std::size_t>(work.op)];
            if (launched >= 0 && (op.launched < 0 || launched < op.launched)) op.launched = launched;
            m_pieces[static_cast<std::size_t>(owners->op)].push_back({work.begin, work.end});
        }
        m_device.work.push_back(std::move(work));
    }
    static void join(DeviceInterval& interval, const DeviceWork& work)
    {
        interval.begin = interval.known() ? std::min(interval.begin, work.begin) : work.begin;
        interval.end = std::max(interval.end, work.end);
    }

    // Work without an op belongs to the step it happened in: from the step's start to the end of its last op on either
    // side.
    bool inStep(const DeviceWork& work) const { return work.end >= m_step.begin && work.begin <= m_last; }
    void addOther(const GpuRecord& record)
    {
        if (record.start == 0 || record.end < record.start || !isNear(record.start)) return;
        DeviceWork work;
        work.begin = record.start - m_origin;
        work.end = record.end - m_origin;
        if (!inStep(work)) return;
        work.lane = Lane::Other;
        if (record.kind == GpuRecordKind::Overhead) {
            work.name = nameOf(record);
            work.rank = rankIn(m_threadRank, record.stream);
            if (!isLoading(record.detail)) m_device.overhead += work.end - work.begin;
        } else {
            work.name = synchronizationName(record.detail);
            work.rank = rankIn(m_streamRank, streamKey(record));
        }
        if (work.rank >= 0) m_device.work.push_back(std::move(work));
    }

    void countMissing()
    {
        for (const auto& [correlation, owners] : m_owners) {
            if (owners.delivered) continue;
            const auto launch = m_launches.find(correlation);
            if (launch != m_launches.end() && launch->second.launches) ++counts().launchesWithout;
        }
    }

    void finishOps()
    {
        for (std::size_t number = 0; number < m_pieces.size(); ++number) {
            const auto rank = static_cast<std::size_t>(m_rankOf[number]);
            const std::size_t at = number - static_cast<std::size_t>(m_firstOp[rank]);
            DeviceOp& op = m_device.ops[rank][at];
            std::vector<DeviceInterval>& pieces = m_pieces[number];
            op.pieces = static_cast<std::int32_t>(pieces.size());
            if (pieces.empty()) {
                if (isBusy(m_step.ops[rank][at].op.kind)) ++counts().opsWithout;
                continue;
            }
            std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
            op.interval = pieces.front();
            Nanos covered = op.interval.begin;
            for (const DeviceInterval& piece : pieces) {
                op.busy += std::max<Nanos>(0, piece.end - std::max(covered, piece.begin));
                covered = std::max(covered, piece.end);
            }
            op.interval.end = covered;
        }
    }

    void finishMessages()
    {
        for (std::size_t i = 0; i < m_device.messages.size(); ++i) {
            DeviceMessage& message = m_device.messages[i];
            if (!message.send.known() && !message.receive.known()) continue;
            if (!message.send.known() || !message.receive.known()) {
                if (!m_copied[i]) ++counts().halfMessages;
                const DeviceInterval only = message.send.known() ? message.send : message.receive;
                message.send = message.receive = only;
                message.transferBegin = only.begin;
                continue;
            }
            const Nanos met = std::max(message.send.begin, message.receive.begin);
            // never both there: the message was buffered between them
            if (met > std::min(message.send.end, message.receive.end)) {
                message.transferBegin = message.send.begin;
                continue;
            }
            message.transferBegin = met;
            message.sendWait = met - message.send.begin;
            message.receiveWait = met - message.receive.begin;
        }
    }

    const GpuTrace& m_trace;
    const StepRecord& m_step;
    Nanos m_origin;
    Nanos m_earliest = 0; // of the records' clock
    Nanos m_latest = 0;
    Nanos m_last = 0; // end of the step, from origin
    DeviceStep m_device;
    std::vector<GpuRecord> m_records;
    std::vector<std::int32_t> m_firstOp;                        // number of each rank's first op
    std::vector<std::int32_t> m_rankOf;                         // by number
    std::vector<std::vector<DeviceInterval>> m_pieces;          // by number
    std::vector<bool> m_copied;                                 // by message: by a copy, which is both ends at once
    std::unordered_map<std::uint64_t, std::int32_t> m_ops;      // by id
    std::unordered_map<std::uint64_t, std::int32_t> m_messages; // by number
    std::unordered_map<std::uint32_t, Owners> m_owners;         // by correlation
    std::unordered_map<std::uint32_t, Launch> m_launches;
    std::unordered_map<std::uint64_t, std::int32_t> m_deviceRank;
    std::unordered_map<std::uint64_t, std::int32_t> m_streamRank;
    std::unordered_map<std::uint64_t, std::int32_t> m_threadRank;
};

} // namespace

GpuTraceCounts& GpuTraceCounts::operator+=(const GpuTraceCounts& other)
{
    work += other.work;
    clamped += other.clamped;
    early += other.early;
    unstamped += other.unstamped;
    reversed += other.reversed;
    offClock += other.offClock;
    repeated += other.repeated;
    ambiguous += other.ambiguous;
    foreignIds += other.foreignIds;
    unowned += other.unowned;
    launchesWithout += other.launchesWithout;
    opsWithout += other.opsWithout;
    halfMessages += other.halfMessages;
    overlapping += other.overlapping;
    return *this;
}

Result<DeviceStep> correlate(const GpuTrace& trace, const StepRecord& step, Nanos origin)
{
    STAGEWRIGHT_TRY(MessageNumbers numbers, MessageNumbers::of(*step.schedule));
    return Correlator(trace, step, numbers, origin).run();
}

} // namespace stagewright
