#include "engine/cuda/device_links.h"

#include <stdexcept>

namespace stagewright::cuda {

DeviceLinks::~DeviceLinks()
{
    for (const auto& [ends, team] : m_teams) m_table.closeTeam(team);
}

StagewrightTeam* DeviceLinks::between(StagewrightQueue* from, StagewrightQueue* to)
{
    const std::lock_guard lock(m_mutex);
    if (m_aborted) throw std::runtime_error("the connections between devices were aborted");
    StagewrightTeam*& team = m_teams[{from, to}];
    if (team != nullptr) return team;
    StagewrightQueue* const ends[] = {from, to};
    if (m_table.openTeam(ends, 2, &team) != 0) {
        m_teams.erase({from, to});
        throw std::runtime_error(m_table.lastError());
    }
    return team;
}

void DeviceLinks::poll()
{
    const std::lock_guard lock(m_mutex);
    for (const auto& [ends, team] : m_teams)
        if (m_table.pollTeam(team) != 0) throw std::runtime_error(m_table.lastError());
}

void DeviceLinks::close(StagewrightQueue* queue)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_teams, [&](const auto& entry) {
        if (entry.first.first != queue && entry.first.second != queue) return false;
        m_table.closeTeam(entry.second);
        return true;
    });
}

void DeviceLinks::abort()
{
    const std::lock_guard lock(m_mutex);
    m_aborted = true;
    for (const auto& [ends, team] : m_teams) m_table.abortTeam(team);
}

} // namespace stagewright::cuda
