#include "engine/cuda/device_links.h"

#include <stdexcept>

namespace stagewright::cuda {

DeviceLinks::~DeviceLinks()
{
    for (const auto& [ends, communicator] : m_communicators) m_table.closeCommunicator(communicator);
}

StagewrightCommunicator* DeviceLinks::between(StagewrightQueue* from, StagewrightQueue* to)
{
    const std::lock_guard lock(m_mutex);
    if (m_aborted) throw std::runtime_error("the connections between devices were aborted");
    StagewrightCommunicator*& communicator = m_communicators[{from, to}];
    if (communicator != nullptr) return communicator;
    StagewrightQueue* const ends[] = {from, to};
    if (m_table.openCommunicator(ends, 2, &communicator) != 0) {
        m_communicators.erase({from, to});
        throw std::runtime_error(m_table.lastError());
    }
    return communicator;
}

void DeviceLinks::poll()
{
    const std::lock_guard lock(m_mutex);
    for (const auto& [ends, communicator] : m_communicators)
        if (m_table.pollCommunicator(communicator) != 0) throw std::runtime_error(m_table.lastError());
}

void DeviceLinks::close(StagewrightQueue* queue)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_communicators, [&](const auto& entry) {
        if (entry.first.first != queue && entry.first.second != queue) return false;
        m_table.closeCommunicator(entry.second);
        return true;
    });
}

void DeviceLinks::abort()
{
    const std::lock_guard lock(m_mutex);
    m_aborted = true;
    for (const auto& [ends, communicator] : m_communicators) m_table.abortCommunicator(communicator);
}

} // namespace stagewright::cuda
