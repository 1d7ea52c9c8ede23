// Bells: how a process of one machine wakes another that sleeps until a message comes: a counter for each in memory
// that they share. Who has none looks again and again instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "schedules/base/units.h"

namespace stagewright {

class Bells {
public:
    // Null where shared memory can't be had. create: the first process; the others open what it has created; remove()
    // once they have.
    static std::unique_ptr<Bells> open(const std::string& name, int processes, bool create);
    ~Bells();
    Bells(const Bells&) = delete;
    Bells& operator=(const Bells&) = delete;

    void remove() const; // the name; the memory stays until all are gone
    std::uint32_t count(int process) const { return at(process).load(std::memory_order_acquire); }
    void ring(int process);
    // Until the count is another one than that, for so long at most.
    void await(int process, std::uint32_t seen, Nanos atMost);

private:
    Bells(std::string name, void* memory, int processes)
        : m_name(std::move(name)), m_memory(memory), m_processes(processes)
    {
    }
    std::atomic<std::uint32_t>& at(int process) const;

    std::string m_name;
    void* m_memory;
    int m_processes;
};

} // namespace stagewright
