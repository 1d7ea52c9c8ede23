// Messages between devices by NCCL: a connection for each direction between two ranks, opened at its first message.
// Shared by the ranks of a training; each direction is used by its receiver's thread alone. Failures throw
// std::runtime_error with the module's words.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/cuda/module_abi.h"

namespace stagewright::cuda {

class DeviceLinks {
public:
    explicit DeviceLinks(const StagewrightCudaTable& table) : m_table(table) {}
    ~DeviceLinks();
    DeviceLinks(const DeviceLinks&) = delete;
    DeviceLinks& operator=(const DeviceLinks&) = delete;

    // End 0 is at the sender's queue, end 1 at the receiver's.
    StagewrightCommunicator* between(StagewrightQueue* from, StagewrightQueue* to);
    void poll();                         // what went wrong on a device or between them
    void close(StagewrightQueue* queue); // its connections, before it is closed itself
    void abort();                        // any thread: waits for another device end, and so does every later message

private:
    const StagewrightCudaTable& m_table;
    std::mutex m_mutex;
    bool m_aborted = false;
    std::map<std::pair<StagewrightQueue*, StagewrightQueue*>, StagewrightCommunicator*> m_communicators;
};

} // namespace stagewright::cuda
