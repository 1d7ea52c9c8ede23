#include "engine/transport/processes_transport.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "profiler/record/clock.h"

namespace stagewright {

namespace {

constexpr std::int64_t controlKinds = static_cast<std::int64_t>(ControlKey::Kind::Weights) + 1;
// at messages on their way on one host, where the receiver fetches them by itself
constexpr Nanos nextLook = 1'000'000;
constexpr Nanos nextLookAcross = 100'000; // between hosts they go on only when both sides look after them
constexpr Nanos lastWait = 200'000'000;   // for them, after a stop
constexpr Nanos longestNap = 10'000'000;  // of a rank whose message is on its way, to see a stop

struct Outgoing {
    SentMessage message;
    std::vector<std::byte> staged;        // the bytes of a message that lies on a device
    Processes::Request request = nullptr; // null: it has not begun
    int process = 0;
    int tag = 0;
    Nanos due = 0;
    bool met = false; // gone only once its receiver takes it
    bool begun = false;
    bool gone = false;
};

// On the receiver's side.
struct Incoming {
    Processes::Arrived arrived; // null: nothing
    bool offered = false;       // rendezvous: it may be taken
    Nanos due = 0;              // rendezvous: it is on its way until then; 0: not yet
    bool here = false;          // and is in `bytes`
    std::vector<std::byte> bytes;
};

// From one rank to another, where their number is limited.
struct Direction {
    std::vector<Nanos> free;       // when each channel is
    std::vector<MessageKey> order; // rendezvous: of its messages in a step
    std::size_t begun = 0;         // so many of them
};

class Transports final : public ProcessesTransport {
public:
    Transports(std::shared_ptr<ProcessJob> job, const RanksByProcess& where, int stages, const CellSpace& cells,
               const Channels& channels, const Links& links, std::unique_ptr<Transport> threads,
               std::function<void()> wake)
        : m_job(std::move(job)), m_processes(m_job->processes()), m_where(where), m_stages(stages), m_space(cells),
          m_met(channels.sends == SendMode::Rendezvous), m_links(links), m_threads(std::move(threads)),
          m_wake(std::move(wake)), m_outboxes(static_cast<std::size_t>(where.ranks)),
          m_from(static_cast<std::size_t>(stages) * m_space.perStage(), -1), m_to(m_from.size(), -1),
          m_incoming(m_from.size()), m_control(static_cast<std::size_t>(where.ranks)), m_received(where.ranks)
    {
        if (channels.perDirection == 0) return;
        m_directions.assign(static_cast<std::size_t>(where.ranks * where.ranks),
                            {std::vector<Nanos>(static_cast<std::size_t>(channels.perDirection), 0), {}, 0});
    }

    Result<void> prepare(const std::vector<ExpectedMessage>& expected)
    {
        const std::int64_t control = controlKinds * m_stages * m_where.ranks * m_where.ranks;
        STAGEWRIGHT_TRY(m_firstTag, m_job->reserveTags(static_cast<std::int64_t>(m_from.size()) + control));
        for (const ExpectedMessage& message : expected) {
            m_from[at(message.key)] = message.fromRank;
            m_to[at(message.key)] = message.toRank;
            if (m_met && !m_directions.empty() && !isHere(message.fromRank))
                directionOf(message.fromRank, message.toRank).order.push_back(message.key);
        }
        return {};
    }

    ~Transports() override
    {
        // A stopped step leaves messages that nobody takes; their bytes are the library's until the job ends.
        const auto out = [this] {
            static_cast<void>(pump(monotonicNow()));
            return std::all_of(m_outboxes.begin(), m_outboxes.end(), [](const Outbox& box) {
                return std::all_of(box.messages.begin(), box.messages.end(),
                                   [](const Outgoing& one) { return one.gone || !one.begun; });
            });
        };
        try {
            m_job->await(
                out, [] { return false; }, lastWait);
        } catch (const std::exception&) { // the job has failed, and says so elsewhere
        }
    }

    std::string_view name() const override { return m_processes.name(); }

    void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) override
    {
        if (isHere(toRank)) return m_threads->send(fromRank, toRank, key, std::move(message), availableAt);
        if (m_met) // its way starts once its receiver has offered to take it, who knows how long it is
            availableAt = 0;
        else if (!m_directions.empty())
            availableAt = throughChannel(directionOf(fromRank, toRank), monotonicNow(), availableAt);
        enqueue(fromRank, toRank, m_firstTag + static_cast<int>(at(key)), {key, std::move(message), false, {}, {}},
                availableAt, m_met);
    }

    void offer(int rank, const MessageKey& key) override
    {
        if (!m_met || isHere(sourceOf(key))) return m_threads->offer(rank, key);
        {
            const std::lock_guard lock(m_incomingMutex);
            m_incoming[at(key)].offered = true;
            m_open.push_back(key);
        }
        if (!look(key)) m_wake();
    }
    TransportStatus waitSent(int toRank, const MessageKey& key) override
    {
        if (isHere(toRank)) return m_threads->waitSent(toRank, key);
        if (!m_met) return TransportStatus::Ready;
        const auto out = [&] {
            for (Outbox& box : m_outboxes) {
                const std::lock_guard lock(box.mutex);
                for (Outgoing& one : box.messages)
                    if (!one.message.control && one.message.key == key && !isGone(one)) return false;
            }
            return true; // or given back already
        };
        return m_job->await(out, [this] { return interrupted(); }) ? TransportStatus::Ready
                                                                   : TransportStatus::Interrupted;
    }

    bool ready(int rank, const MessageKey& key) const override
    {
        if (isHere(sourceOf(key))) return m_threads->ready(rank, key);
        return !m_interrupted.load(std::memory_order_acquire) && look(key);
    }

    TransportStatus wait(int rank, const MessageKey& key) override
    {
        if (isHere(sourceOf(key))) return m_threads->wait(rank, key);
        for (;;) {
            Nanos due = 0;
            const bool came =
                m_job->await([&] { return look(key) || (due = dueOf(key)) > 0; }, [this] { return interrupted(); });
            if (!came || interrupted()) return TransportStatus::Interrupted;
            if (due == 0) return TransportStatus::Ready;
            std::this_thread::sleep_for(
                std::chrono::nanoseconds(std::clamp<Nanos>(due - monotonicNow(), 0, longestNap)));
        }
    }

    Buffer take(int rank, const MessageKey& key, Allocator& allocator) override
    {
        if (isHere(sourceOf(key))) return m_threads->take(rank, key, allocator);
        const MemoryTag tag = messageTag(key.stage, key.microbatch);
        Incoming incoming;
        {
            const std::lock_guard lock(m_incomingMutex);
            incoming = std::exchange(m_incoming[at(key)], {});
        }
        assert(incoming.here || incoming.arrived.message != nullptr);
        m_received.addMessage(rank, incoming.here ? incoming.bytes.size() : incoming.arrived.bytes);
        if (!incoming.here) return receive(incoming.arrived, m_where.processOf(sourceOf(key)), allocator, tag);
        Buffer buffer = allocator.take(incoming.bytes.size() / sizeof(float), tag);
        buffer.memory().upload(buffer.data(), incoming.bytes.data(), incoming.bytes.size());
        return buffer;
    }

    void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) override
    {
        if (isHere(toRank)) return m_threads->post(toRank, key, std::move(message), availableAt);
        enqueue(key.fromRank, toRank, tagOf(toRank, key), {{}, std::move(message), true, {}, {}}, availableAt, false);
    }

    Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) override
    {
        if (isHere(key.fromRank)) return m_threads->collect(rank, key, allocator, tag);
        const std::optional<Processes::Arrived> arrived = awaitControl(rank, key);
        if (!arrived) return {};
        return receive(*arrived, m_where.processOf(key.fromRank), allocator, tag);
    }

    bool collectInto(int rank, const ControlKey& key, Memory& memory, std::span<float> to, Nanos& arrivedAt) override
    {
        if (isHere(key.fromRank)) return m_threads->collectInto(rank, key, memory, to, arrivedAt);
        const std::optional<Processes::Arrived> arrived = awaitControl(rank, key);
        if (!arrived) return false;
        assert(arrived->bytes == to.size_bytes());
        arrivedAt = monotonicNow();
        return receiveInto(*arrived, m_where.processOf(key.fromRank), memory, to);
    }

    bool hasCome(int rank, const ControlKey& key) override
    {
        if (isHere(key.fromRank)) return m_threads->hasCome(rank, key);
        auto& known = m_control[static_cast<std::size_t>(rank)];
        if (known.contains(key)) return true;
        const auto found = m_processes.arrived(m_where.processOf(key.fromRank), tagOf(rank, key));
        if (found) known.emplace(key, *found);
        return found.has_value();
    }

    ReceivedBytes received(int rank) const override
    {
        ReceivedBytes all = m_threads->received(rank);
        const ReceivedBytes& own = m_received.of(rank);
        all.messages += own.messages;
        all.weights += own.weights;
        all.gradients += own.gradients;
        return all;
    }

    std::optional<SentMessage> giveBack(int rank) override
    {
        if (std::optional<SentMessage> message = m_threads->giveBack(rank)) return message;
        Outbox& box = m_outboxes[static_cast<std::size_t>(rank)];
        const std::lock_guard lock(box.mutex);
        for (std::size_t i = 0; i < box.messages.size(); ++i) {
            if (!isGone(box.messages[i])) continue;
            SentMessage message = std::move(box.messages[i].message);
            box.messages.erase(box.messages.begin() + static_cast<std::ptrdiff_t>(i));
            return message;
        }
        return std::nullopt;
    }

    bool settle(int rank) override
    {
        Outbox& box = m_outboxes[static_cast<std::size_t>(rank)];
        const auto out = [&] {
            static_cast<void>(pump(monotonicNow()));
            const std::lock_guard lock(box.mutex);
            return std::all_of(box.messages.begin(), box.messages.end(), [](const Outgoing& one) { return one.gone; });
        };
        return m_job->await(out, [this] { return interrupted(); });
    }

    void interrupt() override
    {
        m_interrupted.store(true, std::memory_order_release);
        m_threads->interrupt();
    }

    Nanos pump(Nanos now) override
    {
        Nanos next = -1;
        const auto until = [&next](Nanos time) { next = next < 0 ? time : std::min(next, time); };
        for (Outbox& box : m_outboxes) {
            const std::lock_guard lock(box.mutex);
            for (Outgoing& one : box.messages) {
                if (one.staged.empty()) one.message.buffer.memory().enter();
                if (!one.begun && one.due <= now) begin(one);
                if (!one.begun)
                    until(one.due);
                else if (!isGone(one))
                    until(now + (m_job->oneHost() ? nextLook : nextLookAcross));
            }
        }
        std::vector<MessageKey> open;
        {
            const std::lock_guard lock(m_incomingMutex);
            std::erase_if(m_open, [this](const MessageKey& key) {
                return m_incoming[at(key)].here || !m_incoming[at(key)].offered;
            });
            open = m_open;
        }
        for (const MessageKey& key : open) {
            if (look(key)) continue;
            const Nanos due = dueOf(key);
            until(due > 0 ? due : now + nextLookAcross);
        }
        return next;
    }

private:
    struct Outbox { // of a rank that is here
        std::mutex mutex;
        std::vector<Outgoing> messages;
    };

    Direction& directionOf(int fromRank, int toRank) const
    {
        return m_directions[static_cast<std::size_t>(fromRank * m_where.ranks + toRank)];
    }

    // The first of the key's; none after interrupt().
    std::optional<Processes::Arrived> awaitControl(int rank, const ControlKey& key)
    {
        auto& known = m_control[static_cast<std::size_t>(rank)];
        if (interrupted() || !m_job->await([&] { return hasCome(rank, key); }, [this] { return interrupted(); }))
            return std::nullopt;
        const Processes::Arrived arrived = known.at(key);
        known.erase(key);
        m_received.add(rank, key.kind, arrived.bytes);
        return arrived;
    }

    // On the channel that is free first: when a message that could arrive at `arrival` without limit does.
    static Nanos throughChannel(Direction& direction, Nanos now, Nanos arrival)
    {
        Nanos& first = *std::min_element(direction.free.begin(), direction.free.end());
        first = std::max(first, now) + std::max<Nanos>(0, arrival - now);
        return first;
    }

    // Rendezvous, under the mutex: puts on its way what has been sent and may be taken; where channels are limited,
    // behind those before it.
    void advance(const MessageKey& key) const
    {
        const auto begin = [this](const MessageKey& one) {
            Incoming& incoming = m_incoming[at(one)];
            const int from = m_from[at(one)];
            const int to = m_to[at(one)];
            if (!incoming.offered) return false;
            const auto found = m_processes.arrived(m_where.processOf(from), m_firstTag + static_cast<int>(at(one)));
            if (!found) return false;
            incoming.arrived = *found;
            const Nanos now = monotonicNow();
            const Nanos arrival = now + m_links.delay(from, to, static_cast<Bytes>(found->bytes));
            incoming.due = m_directions.empty() ? arrival : throughChannel(directionOf(from, to), now, arrival);
            return true;
        };
        if (m_directions.empty()) {
            static_cast<void>(begin(key));
            return;
        }
        Direction& direction = directionOf(m_from[at(key)], m_to[at(key)]);
        while (direction.begun < direction.order.size() && begin(direction.order[direction.begun])) ++direction.begun;
        if (direction.begun == direction.order.size()) direction.begun = 0; // the next step's
    }

    Nanos dueOf(const MessageKey& key) const // 0: it is here, or not on its way
    {
        const std::lock_guard lock(m_incomingMutex);
        const Incoming& incoming = m_incoming[at(key)];
        return incoming.here ? 0 : incoming.due;
    }

    bool isHere(int rank) const { return m_where.processOf(rank) == m_job->index(); }
    bool interrupted() const { return m_interrupted.load(std::memory_order_acquire); }
    std::size_t at(const MessageKey& key) const { return key.stage * m_space.perStage() + m_space.within(key); }
    int sourceOf(const MessageKey& key) const { return m_from[at(key)]; }
    int tagOf(int toRank, const ControlKey& key) const
    {
        const auto kind = static_cast<std::int64_t>(key.kind);
        const std::int64_t number =
            ((kind * m_stages + key.stage) * m_where.ranks + key.fromRank) * m_where.ranks + toRank;
        return m_firstTag + static_cast<int>(static_cast<std::int64_t>(m_from.size()) + number);
    }

    // Once it has arrived it stays so until it is taken. Under rendezvous only what is offered arrives, for its sender
    // to go on.
    bool look(const MessageKey& key) const
    {
        const std::lock_guard lock(m_incomingMutex);
        Incoming& incoming = m_incoming[at(key)];
        if (incoming.here) return true;
        if (!m_met) {
            if (incoming.arrived.message != nullptr) return true;
            const auto found =
                m_processes.arrived(m_where.processOf(sourceOf(key)), m_firstTag + static_cast<int>(at(key)));
            if (found) incoming.arrived = *found;
            return found.has_value();
        }
        if (incoming.due == 0) advance(key);
        if (incoming.due == 0 || monotonicNow() < incoming.due) return false;
        incoming.bytes.resize(incoming.arrived.bytes);
        Processes::Request request = m_processes.receive(incoming.arrived, incoming.bytes.data());
        incoming.here = m_job->await([&] { return m_processes.done(request); }, [this] { return interrupted(); });
        m_job->taken(m_where.processOf(sourceOf(key)));
        return incoming.here;
    }

    Buffer receive(const Processes::Arrived& arrived, int from, Allocator& allocator, const MemoryTag& tag)
    {
        Buffer buffer = allocator.take(arrived.bytes / sizeof(float), tag);
        static_cast<void>(receiveInto(arrived, from, buffer.memory(), buffer.span()));
        return buffer;
    }

    // False after interrupt().
    bool receiveInto(const Processes::Arrived& arrived, int from, Memory& memory, std::span<float> to)
    {
        const bool direct = memory.isHost() || m_processes.takesDeviceMemory();
        std::vector<std::byte> staged(direct ? 0 : arrived.bytes);
        if (direct) memory.finish(); // of a device: what used these floats before
        Processes::Request request =
            m_processes.receive(arrived, staged.empty() ? static_cast<void*>(to.data()) : staged.data());
        const bool whole = m_job->await([&] { return m_processes.done(request); }, [this] { return interrupted(); });
        m_job->taken(from);
        if (whole && !staged.empty()) memory.upload(to.data(), staged.data(), staged.size());
        return whole;
    }

    void enqueue(int fromRank, int toRank, int tag, SentMessage message, Nanos availableAt, bool met)
    {
        Outbox& box = m_outboxes[static_cast<std::size_t>(fromRank)];
        Outgoing one{std::move(message), {}, nullptr, m_where.processOf(toRank), tag, availableAt, met, false, false};
        // Here, as a device's memory is for its rank's thread.
        if (const Buffer& buffer = one.message.buffer; !buffer.memory().isHost() && m_processes.takesDeviceMemory()) {
            buffer.memory().finish();
        } else if (!buffer.memory().isHost()) {
            one.staged.resize(buffer.size() * sizeof(float));
            buffer.memory().download(one.staged.data(), buffer.data(), one.staged.size());
        }
        const bool now = availableAt <= monotonicNow();
        {
            const std::lock_guard lock(box.mutex);
            if (now) // behind those that are due: messages of one tag arrive in the order in which they begin
                for (Outgoing& earlier : box.messages)
                    if (!earlier.begun && earlier.due <= availableAt) begin(earlier);
            if (now) begin(one);
            box.messages.push_back(std::move(one));
        }
        if (!now || !m_job->oneHost()) m_wake();
    }

    void begin(Outgoing& one)
    {
        const Buffer& buffer = one.message.buffer;
        const void* data = one.staged.empty() ? static_cast<const void*>(buffer.data()) : one.staged.data();
        one.request = m_job->send(one.process, one.tag, data, buffer.size() * sizeof(float), one.met);
        one.begun = true;
    }

    bool isGone(Outgoing& one)
    {
        one.gone = one.gone || (one.begun && m_processes.done(one.request));
        return one.gone;
    }

    std::shared_ptr<ProcessJob> m_job;
    Processes& m_processes;
    RanksByProcess m_where;
    int m_stages;
    MessageSpace m_space;
    bool m_met;
    Links m_links;
    std::unique_ptr<Transport> m_threads;
    std::function<void()> m_wake;
    int m_firstTag = 0;
    std::atomic<bool> m_interrupted = false;
    std::vector<Outbox> m_outboxes;                                  // by rank
    std::vector<int> m_from;                                         // by message: the rank that sends it here
    std::vector<int> m_to;                                           // and the one that takes it
    mutable std::mutex m_incomingMutex;                              // of the receivers' threads and pump()
    mutable std::vector<Incoming> m_incoming;                        // by message
    std::vector<MessageKey> m_open;                                  // offered
    std::vector<std::map<ControlKey, Processes::Arrived>> m_control; // by rank, on its thread: come, not yet collected
    ReceivedCounts m_received;
    // by sender and receiver, where channels are limited: buffered, its sender's; else under the mutex
    mutable std::vector<Direction> m_directions;
};

} // namespace

Result<std::unique_ptr<ProcessesTransport>>
makeProcessesTransport(std::shared_ptr<ProcessJob> job, const RanksByProcess& where, const Placement& placement,
                       const CellSpace& cells, const std::vector<ExpectedMessage>& expected, const Channels& channels,
                       const Links& links, std::unique_ptr<Transport> threads, std::function<void()> wake)
{
    auto transport = std::make_unique<Transports>(std::move(job), where, placement.stages(), cells, channels, links,
                                                  std::move(threads), std::move(wake));
    STAGEWRIGHT_CHECK(transport->prepare(expected));
    return transport;
}

} // namespace stagewright
