#include "engine/transport/bells.h"

#include <climits>
#include <ctime>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stagewright {

namespace {

constexpr std::size_t lineBytes = 64; // a cache line each

std::size_t bytesFor(int processes) { return static_cast<std::size_t>(processes) * lineBytes; }

} // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

std::unique_ptr<Bells> Bells::open(const std::string& name, int processes, bool create)
{
    const int file = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0) return nullptr;
    void* memory = MAP_FAILED;
    if (!create || ::ftruncate(file, static_cast<off_t>(bytesFor(processes))) == 0)
        memory = ::mmap(nullptr, bytesFor(processes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) {
        if (create) ::shm_unlink(name.c_str());
        return nullptr;
    }
    return std::unique_ptr<Bells>(new Bells(name, memory, processes));
}

Bells::~Bells() { ::munmap(m_memory, bytesFor(m_processes)); }

void Bells::remove() const { ::shm_unlink(m_name.c_str()); }

std::atomic<std::uint32_t>& Bells::at(int process) const
{
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<char*>(m_memory) +
                                                          static_cast<std::size_t>(process) * lineBytes);
}

void Bells::ring(int process)
{
    at(process).fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &at(process), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bells::await(int process, std::uint32_t seen, Nanos atMost)
{
    const timespec longest{static_cast<time_t>(atMost / 1'000'000'000), static_cast<long>(atMost % 1'000'000'000)};
    ::syscall(SYS_futex, &at(process), FUTEX_WAIT, seen, &longest, nullptr, 0);
}

} // namespace stagewright
