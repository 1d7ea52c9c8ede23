// A rank's share of a CUDA device: its queue, its memory, its clock. Failures throw std::runtime_error with the
// module's words.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/device_links.h"
#include "engine/cuda/module_abi.h"
#include "engine/device/device_end.h"
#include "engine/device/memory.h"
#include "profiler/record/device_clock.h"

namespace stagewright::cuda {

// When a device's time and the host's were the same; shared by the ranks of a device, so that their times agree.
class DeviceOrigin;
class OpenQueue;
class DeviceOrigins {
public:
    std::shared_ptr<const DeviceOrigin> current(const StagewrightCudaTable& table,
                                                const std::shared_ptr<OpenQueue>& queue);

private:
    std::mutex m_mutex;
    std::shared_ptr<const DeviceOrigin> m_newest;
};

// A queue, closed when neither its memory nor a mark of it is left: a mark's event belongs to the queue's context.
class OpenQueue {
public:
    OpenQueue(const StagewrightCudaTable& table, const StagewrightQueueRequest& request); // throws
    ~OpenQueue() { m_table.closeQueue(m_queue); }
    OpenQueue(const OpenQueue&) = delete;
    OpenQueue& operator=(const OpenQueue&) = delete;
    StagewrightQueue* get() const { return m_queue; }

private:
    const StagewrightCudaTable& m_table;
    StagewrightQueue* m_queue = nullptr;
};

class DeviceMemory : public Memory, private DeviceClock, private DeviceEnd {
public:
    // origins: of this device. links: messages from other devices of this process come by NCCL; null: by copies.
    // connects: it has an end() for those of other processes.
    DeviceMemory(const StagewrightCudaTable& table, const StagewrightQueueRequest& request,
                 std::shared_ptr<DeviceOrigins> origins, std::shared_ptr<DeviceLinks> links = nullptr,
                 bool connects = false);
    ~DeviceMemory() override;

    const StagewrightCudaTable& table() const { return m_table; }
    StagewrightQueue* queue() const { return m_queue->get(); }
    const StagewrightQueueRequest& request() const { return m_request; }
    void done(int status) const; // throws where it is not 0

    bool isHost() const override { return false; }
    void* take(std::size_t bytes) override;
    void give(void* block) noexcept override;
    void copyRows(void* to, std::size_t toStride, const void* from, std::size_t fromStride, std::size_t bytes,
                  std::size_t rows) override;
    void clear(void* to, std::size_t bytes) override;
    void upload(void* to, const void* from, std::size_t bytes) override;
    void download(void* to, const void* from, std::size_t bytes) override;
    Mark mark() override;
    std::uint64_t position() const override { return m_made; }
    // From another device with links: by their connection, whose two ends wait for the same. Else on the transfer lane.
    Mark copyFrom(void* to, const void* from, std::size_t bytes, const Mark& written, const BlockUse& before) override;
    void await(const Mark& mark) override;
    void finish() override;
    void enter() override { done(m_table.enter(queue())); }
    void interrupt() override;
    DeviceClock* clock() override { return this; }
    DeviceEnd* end() override { return m_connects ? this : nullptr; }

private:
    Mark markOn(int lane);
    void awaitOn(int lane, const Mark& mark);
    std::vector<Mark> marksOf(const BlockUse& use); // all of them passed: the block is free
    Mark receiveFrom(void* to, const void* from, std::size_t bytes, const Mark& written, const std::vector<Mark>& free);
    bool waitsForOthers() const { return m_links || m_connects; }
    void poll(); // what went wrong on a device or between them
    std::string device() const override;
    std::vector<std::byte> newConnection() override;
    void join(std::span<const std::byte> connection, int rank, int ranks, std::span<const int> sendsTo,
              std::span<const int> receivesFrom) override;
    Mark exchange(std::span<const EndMessage> batch) override;
    std::int64_t stamp() override;
    Nanos timeOf(std::int64_t stamp) override;
    void forget() override;

    const StagewrightCudaTable& m_table;
    StagewrightQueueRequest m_request;
    std::shared_ptr<OpenQueue> m_queue;
    std::shared_ptr<DeviceOrigins> m_origins;
    std::shared_ptr<const DeviceOrigin> m_origin;
    std::shared_ptr<DeviceLinks> m_links;
    bool m_connects;
    std::mutex m_endMutex; // of what interrupt() sees of the end
    bool m_interrupted = false;
    StagewrightCommunicator* m_communicator = nullptr; // null: not joined
    void* m_hello = nullptr;                           // sent and received when it is joined
    std::vector<Mark> m_stamps;
    std::uint64_t m_made = 0;  // marks
    std::deque<Mark> m_newest; // of them, the last in back
};

} // namespace stagewright::cuda
