#include "engine/cuda/device_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace stagewright::cuda {

namespace {

// Elapsed times come from floats: the farther the origin, the coarser they are.
constexpr Nanos originLives = 1'000'000'000;

constexpr auto nap = std::chrono::microseconds(50);

// Marks that are kept for blocks freed before them; of a block freed earlier the oldest of these is waited for.
constexpr std::size_t keptMarks = 64;

// What a Mark is here, and whose.
struct DeviceMark {
    StagewrightMark* mark;
    std::shared_ptr<OpenQueue> queue;
    int device;
};

const DeviceMark& markOf(const Mark& mark) { return *static_cast<const DeviceMark*>(mark.get()); }

StagewrightMark* raw(const Mark& mark) { return markOf(mark).mark; }

Mark owned(const StagewrightCudaTable& table, StagewrightMark* mark, const std::shared_ptr<OpenQueue>& queue,
           int device)
{
    return Mark(new DeviceMark{mark, queue, device}, [drop = table.dropMark](void* gone) {
        const std::unique_ptr<DeviceMark> last(static_cast<DeviceMark*>(gone)); // and then perhaps the queue
        drop(last->mark);
    });
}

} // namespace

class DeviceOrigin {
public:
    Mark mark;
    Nanos time = 0;
};

OpenQueue::OpenQueue(const StagewrightCudaTable& table, const StagewrightQueueRequest& request) : m_table(table)
{
    if (m_table.openQueue(&request, &m_queue) != 0) throw std::runtime_error(m_table.lastError());
}

std::shared_ptr<const DeviceOrigin> DeviceOrigins::current(const StagewrightCudaTable& table,
                                                           const std::shared_ptr<OpenQueue>& queue)
{
    const std::lock_guard lock(m_mutex);
    if (m_newest && monotonicNow() - m_newest->time < originLives) return m_newest;
    auto origin = std::make_shared<DeviceOrigin>();
    StagewrightMark* mark = nullptr;
    if (table.finish(queue->get()) != 0 || table.mark(queue->get(), STAGEWRIGHT_COMPUTE, &mark) != 0)
        throw std::runtime_error(table.lastError());
    origin->mark = owned(table, mark, queue, 0);
    if (table.finish(queue->get()) != 0) throw std::runtime_error(table.lastError());
    origin->time = monotonicNow();
    m_newest = std::move(origin);
    return m_newest;
}

DeviceMemory::DeviceMemory(const StagewrightCudaTable& table, const StagewrightQueueRequest& request,
                           std::shared_ptr<DeviceOrigins> origins, std::shared_ptr<DeviceLinks> links, bool connects)
    : m_table(table), m_request(request), m_queue(std::make_shared<OpenQueue>(table, request)),
      m_origins(std::move(origins)), m_origin(m_origins->current(table, m_queue)), m_links(std::move(links)),
      m_connects(connects)
{
}

DeviceMemory::~DeviceMemory()
{
    (void)m_table.finish(queue()); // marks may keep it open for longer
    if (m_links) m_links->close(queue());
    if (m_communicator) m_table.closeCommunicator(m_communicator);
    if (m_hello) give(m_hello);
}

void DeviceMemory::done(int status) const
{
    if (status != 0) throw std::runtime_error(m_table.lastError());
}

void* DeviceMemory::take(std::size_t bytes)
{
    void* block = nullptr;
    done(m_table.take(m_request.device, bytes, &block));
    if (!block) throw std::bad_alloc();
    return block;
}

void DeviceMemory::give(void* block) noexcept
{
    (void)m_table.give(m_request.device, block); // a device that is gone has taken its memory along
}

void DeviceMemory::copyRows(void* to, std::size_t toStride, const void* from, std::size_t fromStride, std::size_t bytes,
                            std::size_t rows)
{
    done(m_table.copyRows(queue(), STAGEWRIGHT_COMPUTE, to, toStride, from, fromStride, bytes, rows));
}

void DeviceMemory::clear(void* to, std::size_t bytes) { done(m_table.clear(queue(), to, bytes)); }

void DeviceMemory::upload(void* to, const void* from, std::size_t bytes)
{
    done(m_table.upload(queue(), to, from, bytes));
}

void DeviceMemory::download(void* to, const void* from, std::size_t bytes)
{
    if (waitsForOthers()) finish(); // so that a device that is gone is noticed
    done(m_table.download(queue(), to, from, bytes));
}

Mark DeviceMemory::markOn(int lane)
{
    StagewrightMark* mark = nullptr;
    done(m_table.mark(queue(), lane, &mark));
    return owned(m_table, mark, m_queue, m_request.device);
}

void DeviceMemory::awaitOn(int lane, const Mark& mark)
{
    if (mark) done(m_table.await(queue(), lane, raw(mark)));
}

Mark DeviceMemory::mark()
{
    Mark made = markOn(STAGEWRIGHT_COMPUTE);
    ++m_made;
    m_newest.push_back(made);
    if (m_newest.size() > keptMarks) m_newest.pop_front();
    return made;
}

std::vector<Mark> DeviceMemory::marksOf(const BlockUse& use)
{
    std::vector<Mark> marks;
    if (use.read) marks.push_back(use.read);
    if (!use.used) return marks;
    if (use.position >= m_made) {
        marks.push_back(mark());
    } else {
        const std::uint64_t oldest = m_made - m_newest.size(); // the position before it
        marks.push_back(m_newest[static_cast<std::size_t>(std::max(use.position, oldest) - oldest)]);
    }
    return marks;
}

Mark DeviceMemory::copyFrom(void* to, const void* from, std::size_t bytes, const Mark& written, const BlockUse& before)
{
    const std::vector<Mark> free = marksOf(before);
    if (m_links && written && markOf(written).device != m_request.device)
        return receiveFrom(to, from, bytes, written, free);
    awaitOn(STAGEWRIGHT_TRANSFER, written);
    for (const Mark& each : free) awaitOn(STAGEWRIGHT_TRANSFER, each);
    done(m_table.copyRows(queue(), STAGEWRIGHT_TRANSFER, to, bytes, from, bytes, bytes, 1));
    Mark copied = markOn(STAGEWRIGHT_TRANSFER);
    awaitOn(STAGEWRIGHT_COMPUTE, copied);
    return copied;
}

// Both ends begin when both can, so that neither holds multiprocessors while it waits for the other.
Mark DeviceMemory::receiveFrom(void* to, const void* from, std::size_t bytes, const Mark& written,
                               const std::vector<Mark>& free)
{
    enum {
        Sender,
        Receiver,
    };
    const DeviceMark& there = markOf(written);
    StagewrightCommunicator* communicator = m_links->between(there.queue->get(), queue());
    for (const int end : {Sender, Receiver}) {
        done(m_table.communicatorAwait(communicator, end, raw(written)));
        for (const Mark& each : free) done(m_table.communicatorAwait(communicator, end, raw(each)));
    }
    done(m_table.transfer(communicator, Sender, from, Receiver, to, bytes));
    const auto passed = [&](int end, const std::shared_ptr<OpenQueue>& queue, int device) {
        StagewrightMark* mark = nullptr;
        done(m_table.communicatorMark(communicator, end, &mark));
        return owned(m_table, mark, queue, device);
    };
    Mark sent = passed(Sender, there.queue, there.device);
    awaitOn(STAGEWRIGHT_COMPUTE, passed(Receiver, m_queue, m_request.device));
    return sent;
}

void DeviceMemory::await(const Mark& mark) { awaitOn(STAGEWRIGHT_COMPUTE, mark); }

void DeviceMemory::poll()
{
    if (m_links) m_links->poll();
    if (m_communicator) done(m_table.pollCommunicator(m_communicator));
}

void DeviceMemory::finish()
{
    for (std::int32_t there = waitsForOthers() ? 0 : 1; there == 0;) {
        done(m_table.finished(queue(), &there));
        if (there != 0) break;
        poll();
        std::this_thread::sleep_for(nap);
    }
    done(m_table.finish(queue()));
    poll();
}

void DeviceMemory::interrupt()
{
    if (m_links) m_links->abort();
    const std::lock_guard lock(m_endMutex);
    m_interrupted = true;
    if (m_communicator) m_table.abortCommunicator(m_communicator);
}

std::string DeviceMemory::device() const
{
    StagewrightCudaDevice facts{};
    done(m_table.describe(m_request.device, &facts));
    return facts.unit;
}

std::vector<std::byte> DeviceMemory::newConnection()
{
    StagewrightCommunicatorId id{};
    done(m_table.newCommunicatorId(&id));
    const auto* first = reinterpret_cast<const std::byte*>(id.bytes);
    return {first, first + sizeof id.bytes};
}

// A first message to and from every rank that there will be messages with: it makes the connections, so that no later
// post waits for another rank.
void DeviceMemory::join(std::span<const std::byte> connection, int rank, int ranks, std::span<const int> sendsTo,
                        std::span<const int> receivesFrom)
{
    StagewrightCommunicatorId id{};
    if (connection.size() != sizeof id.bytes)
        throw std::runtime_error("the connection between devices: its name is damaged");
    std::memcpy(id.bytes, connection.data(), connection.size());
    {
        const std::lock_guard lock(m_endMutex);
        if (m_interrupted) throw std::runtime_error("the connection between devices was aborted");
        done(m_table.joinCommunicator(queue(), &id, rank, ranks, &m_communicator));
    }
    done(m_table.settleCommunicator(m_communicator));
    constexpr std::size_t apart = 256;
    m_hello = take(apart * (1 + receivesFrom.size()));
    clear(m_hello, apart);
    std::vector<EndMessage> batch;
    for (const int peer : sendsTo) batch.push_back({true, peer, m_hello, apart, mark()});
    auto* to = static_cast<std::byte*>(m_hello);
    for (const int peer : receivesFrom) batch.push_back({false, peer, to += apart, apart});
    if (batch.empty()) return;
    awaitOn(STAGEWRIGHT_COMPUTE, exchange(batch));
    finish();
}

Mark DeviceMemory::exchange(std::span<const EndMessage> batch)
{
    if (!m_communicator) throw std::runtime_error("the connection between devices is not open");
    constexpr std::int32_t own = 0;
    std::vector<StagewrightPost> posts;
    for (const EndMessage& message : batch) {
        if (message.written) done(m_table.communicatorAwait(m_communicator, own, raw(message.written)));
        for (const Mark& each : marksOf(message.before))
            done(m_table.communicatorAwait(m_communicator, own, raw(each)));
        posts.push_back({message.sends ? 1 : 0, message.peer, message.data, message.bytes});
    }
    done(m_table.post(m_communicator, posts.data(), static_cast<std::int32_t>(posts.size())));
    StagewrightMark* gone = nullptr;
    done(m_table.communicatorMark(m_communicator, own, &gone));
    return owned(m_table, gone, m_queue, m_request.device);
}

std::int64_t DeviceMemory::stamp()
{
    m_stamps.push_back(mark());
    return static_cast<std::int64_t>(m_stamps.size()) - 1;
}

// After a failure of the device there are no times: the step is dropped anyway.
Nanos DeviceMemory::timeOf(std::int64_t stamp)
{
    std::int64_t nanos = 0;
    const Mark& mark = m_stamps[static_cast<std::size_t>(stamp)];
    return m_table.nanosBetween(raw(m_origin->mark), raw(mark), &nanos) == 0 ? m_origin->time + nanos : m_origin->time;
}

void DeviceMemory::forget()
{
    m_stamps.clear();
    try {
        m_origin = m_origins->current(m_table, m_queue);
    } catch (const std::runtime_error&) { // the next call that computes says it
    }
}

} // namespace stagewright::cuda
