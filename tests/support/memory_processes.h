// Processes that are threads of a test: messages by sender and tag over memory. A long one has gone out only when it
// was received, as MPI's are; what is lost or late can be chosen.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/transport/process_job.h"

namespace stagewright::test {

class MemoryProcesses final : public Processes {
public:
    struct Message {
        std::vector<std::byte> copy; // of a short one
        const void* data = nullptr;
        std::size_t bytes = 0;
        std::atomic<bool> received = false;
    };
    struct Net {
        std::mutex mutex;
        std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<Message>>> boxes; // from, to, tag
        std::vector<std::shared_ptr<Message>> messages;
        std::atomic<int> aborted = 0;
        bool foundLate = false; // a message is found by the second who looks, as MPI's may be
        std::set<std::tuple<int, int, int>> looked;
    };
    MemoryProcesses(std::shared_ptr<Net> net, int index, int count)
        : m_net(std::move(net)), m_index(index), m_count(count)
    {
    }

    std::string_view name() const override { return "memory"; }
    int index() const override { return m_index; }
    int count() const override { return m_count; }
    int tagLimit() const override { return 1 << 24; }

    Request send(int to, int tag, const void* data, std::size_t bytes, bool met) override
    {
        auto message = std::make_shared<Message>();
        message->bytes = bytes;
        message->data = data;
        if (bytes < 64 && !met) {
            message->copy.resize(bytes + 1);
            if (bytes > 0) std::memcpy(message->copy.data(), data, bytes);
            message->data = message->copy.data();
            message->received = true;
        }
        const std::lock_guard lock(m_net->mutex);
        m_net->boxes[{m_index, to, tag}].push_back(message);
        return kept(std::move(message));
    }
    std::optional<Arrived> arrived(int from, int tag) override
    {
        const std::lock_guard lock(m_net->mutex);
        const auto found = m_net->boxes.find({from, m_index, tag});
        if (found == m_net->boxes.end() || found->second.empty()) return std::nullopt;
        if (m_net->foundLate && m_net->looked.insert(found->first).second) return std::nullopt;
        m_net->looked.erase(found->first);
        auto message = std::move(found->second.front());
        found->second.pop_front();
        const std::size_t bytes = message->bytes;
        return Arrived{kept(std::move(message)), bytes};
    }
    Request receive(const Arrived& arrived, void* to) override
    {
        auto* message = static_cast<Message*>(arrived.message);
        if (arrived.bytes > 0) std::memcpy(to, message->data, arrived.bytes);
        message->received = true;
        return nullptr;
    }
    bool done(Request& request) override
    {
        if (!request) return true;
        if (!static_cast<Message*>(request)->received) return false;
        request = nullptr;
        return true;
    }
    std::vector<std::pair<std::string, std::string>> facts() const override { return {{"memory", "yes"}}; }
    void close() override {}
    void abort(int) override { ++m_net->aborted; }

private:
    // Until the end of the net: what a stopped training leaves behind is nobody's. Under the net's mutex.
    void* kept(std::shared_ptr<Message> message)
    {
        m_net->messages.push_back(std::move(message));
        return m_net->messages.back().get();
    }

    std::shared_ptr<Net> m_net;
    int m_index;
    int m_count;
};

// The same body in each of `count` processes, at once; ends when all have.
template <typename Body>
void inMemoryProcesses(int count, Body&& body, bool foundLate = false)
{
    auto net = std::make_shared<MemoryProcesses::Net>();
    net->foundLate = foundLate;
    std::vector<std::thread> threads;
    for (int index = 0; index < count; ++index)
        threads.emplace_back([&body, net, index, count] {
            auto job = ProcessJob::meet(std::make_unique<MemoryProcesses>(net, index, count), "1");
            if (!job) throw std::runtime_error(job.error().message);
            body(*job);
        });
    for (std::thread& thread : threads) thread.join();
}

} // namespace stagewright::test
