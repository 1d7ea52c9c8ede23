// Devices of several processes that are threads of a test: each goes through what its rank posted in order, and on only
// once a batch has gone over. A rank may wait for that where it posts, which is more than it does for a device: so an
// order that could hang hangs. The memory is the host's.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/device_end.h"

namespace stagewright::test {

struct EndsMeeting {
    struct Posted {
        std::vector<std::byte> data;
        bool gone = false;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Posted>>> sends; // from, to: not yet received
    bool ranksWait = true;
    int joined = 0;
    int messages = 0;
    int connections = 0;
    std::string missing;      // why there is no connection
    bool oneDevice = false;   // of all ranks
    int failsAfter = 1 << 30; // messages
};

class MeetingMemory final : public Memory, private DeviceEnd {
public:
    MeetingMemory(std::shared_ptr<EndsMeeting> meeting, int rank) : m_meeting(std::move(meeting)), m_rank(rank)
    {
        m_device = std::thread([this] { work(); });
    }
    ~MeetingMemory() override
    {
        MeetingMemory::interrupt();
        m_device.join();
    }

    bool isHost() const override { return true; }
    void* take(std::size_t bytes) override { return hostMemory().take(bytes); }
    void give(void* block) noexcept override { hostMemory().give(block); }
    void copyRows(void* to, std::size_t toStride, const void* from, std::size_t fromStride, std::size_t bytes,
                  std::size_t rows) override
    {
        hostMemory().copyRows(to, toStride, from, fromStride, bytes, rows);
    }
    void clear(void* to, std::size_t bytes) override { hostMemory().clear(to, bytes); }
    void upload(void* to, const void* from, std::size_t bytes) override { hostMemory().upload(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override { hostMemory().download(to, from, bytes); }
    Mark mark() override { return nullptr; }
    Mark copyFrom(void* to, const void* from, std::size_t bytes, const Mark& written, const BlockUse& before) override
    {
        return hostMemory().copyFrom(to, from, bytes, written, before);
    }
    void await(const Mark& mark) override
    {
        std::unique_lock lock(m_meeting->mutex);
        if (mark) awaitBatch(lock, *static_cast<Batch*>(mark.get()));
    }
    void finish() override {}
    void interrupt() override
    {
        const std::lock_guard lock(m_meeting->mutex);
        m_interrupted = true;
        m_meeting->changed.notify_all();
    }
    DeviceEnd* end() override { return this; }

private:
    std::string device() const override
    {
        return m_meeting->oneDevice ? "the one" : "device " + std::to_string(m_rank);
    }
    std::vector<std::byte> newConnection() override
    {
        if (!m_meeting->missing.empty()) throw std::runtime_error(m_meeting->missing);
        return std::vector<std::byte>(static_cast<std::size_t>(++m_meeting->connections));
    }
    void join(std::span<const std::byte> connection, int rank, int ranks, std::span<const int>,
              std::span<const int>) override
    {
        std::unique_lock lock(m_meeting->mutex);
        if (connection.size() != static_cast<std::size_t>(m_meeting->connections) || rank != m_rank)
            throw std::runtime_error("another connection");
        const int all = (m_meeting->joined / ranks + 1) * ranks;
        ++m_meeting->joined;
        m_meeting->changed.notify_all();
        m_meeting->changed.wait(lock, [&] { return m_interrupted || m_meeting->joined >= all; });
        if (m_interrupted) throw std::runtime_error("aborted");
    }
    struct Batch {
        std::vector<std::shared_ptr<EndsMeeting::Posted>> sent;
        std::vector<int> to;
        std::vector<EndMessage> open;
        bool done = false;
    };
    Mark exchange(std::span<const EndMessage> messages) override
    {
        std::unique_lock lock(m_meeting->mutex);
        auto batch = std::make_shared<Batch>();
        for (const EndMessage& message : messages) {
            if (++m_meeting->messages > m_meeting->failsAfter) throw std::runtime_error("the connection failed");
            if (!message.sends) {
                batch->open.push_back(message);
                continue;
            }
            const auto* first = static_cast<const std::byte*>(message.data);
            batch->sent.push_back(
                std::make_shared<EndsMeeting::Posted>(EndsMeeting::Posted{{first, first + message.bytes}}));
            batch->to.push_back(message.peer);
        }
        const bool receives = !batch->open.empty();
        m_batches.push_back(batch);
        m_meeting->changed.notify_all();
        if (m_meeting->ranksWait) awaitBatch(lock, *batch);
        return receives ? batch : nullptr;
    }
    void awaitBatch(std::unique_lock<std::mutex>& lock, const Batch& batch)
    {
        m_meeting->changed.wait(lock, [&] { return batch.done || m_interrupted; });
        if (!batch.done) throw std::runtime_error(m_fault.empty() ? "aborted" : m_fault);
    }
    // Receives of a batch are taken as they come, those from one rank in order.
    bool over(Batch& batch)
    {
        std::set<int> behind;
        std::erase_if(batch.open, [&](const EndMessage& message) {
            auto& there = m_meeting->sends[{message.peer, m_rank}];
            if (there.empty()) behind.insert(message.peer);
            if (behind.contains(message.peer)) return false;
            const auto one = there.front();
            there.pop_front();
            if (one->data.size() != message.bytes) {
                m_fault = "a message is not as long as its receive";
                m_interrupted = true;
                return false;
            }
            std::memcpy(message.data, one->data.data(), message.bytes);
            one->gone = true;
            m_meeting->changed.notify_all();
            return true;
        });
        return batch.open.empty() &&
               std::all_of(batch.sent.begin(), batch.sent.end(), [](const auto& one) { return one->gone; });
    }
    void work()
    {
        std::unique_lock lock(m_meeting->mutex);
        for (;;) {
            m_meeting->changed.wait(lock, [this] { return m_interrupted || !m_batches.empty(); });
            if (m_interrupted) return;
            Batch& batch = *m_batches.front();
            for (std::size_t i = 0; i < batch.sent.size(); ++i)
                m_meeting->sends[{m_rank, batch.to[i]}].push_back(batch.sent[i]);
            m_meeting->changed.notify_all();
            m_meeting->changed.wait(lock, [&] { return over(batch) || m_interrupted; });
            batch.done = !m_interrupted;
            m_batches.pop_front();
            m_meeting->changed.notify_all();
        }
    }

    std::shared_ptr<EndsMeeting> m_meeting;
    int m_rank;
    bool m_interrupted = false;
    std::string m_fault;
    std::deque<std::shared_ptr<Batch>> m_batches; // what is under way is in front
    std::thread m_device;
};

} // namespace stagewright::test
