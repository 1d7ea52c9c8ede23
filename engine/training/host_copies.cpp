#include "engine/training/host_copies.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "profiler/record/clock.h"
#include "schedules/base/op_number.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

MemoryTag tagOf(int stage, int microbatch)
{
    return {MemoryCategory::Activations, static_cast<std::uint16_t>(stage), microbatch};
}

Bytes bytesOf(const Buffer& buffer) { return static_cast<Bytes>(buffer.size() * sizeof(float)); }

} // namespace

HostCopies::HostCopies(Allocator& device, const Copies& speeds, bool paced, Bytes limit, std::function<bool()> stopped)
    : m_device(device), m_speeds(speeds), m_paced(paced), m_stopped(std::move(stopped))
{
    m_device.share();
    m_host.share();
    m_host.setLimit(limit);
    for (std::size_t lane = 0; lane < (speeds.fullDuplex ? 2U : 1U); ++lane)
        m_threads.emplace_back([this, lane] { work(lane); });
}

HostCopies::~HostCopies()
{
    {
        const std::lock_guard lock(m_mutex);
        m_ends = m_dropping = true;
    }
    m_changed.notify_all();
    for (std::thread& thread : m_threads) thread.join();
}

void HostCopies::offload(const Op& op, int position, std::span<const Part> parts,
                         std::vector<std::vector<Buffer*>> kept)
{
    Job job;
    job.out = true;
    job.done.op = op;
    job.done.position = position;
    job.parts.assign(parts.begin(), parts.end());
    {
        const std::lock_guard lock(m_mutex);
        for (std::size_t i = 0; i < parts.size(); ++i) m_held[{op.stage, parts[i]}] = {std::move(kept[i]), {}, false};
    }
    issue(std::move(job));
}

void HostCopies::reload(const Op& op, int position, std::span<const Part> parts)
{
    Job job;
    job.done.op = op;
    job.done.position = position;
    job.parts.assign(parts.begin(), parts.end());
    issue(std::move(job));
}

void HostCopies::issue(Job job)
{
    const std::lock_guard lock(m_mutex);
    m_queue[m_threads.size() > 1 && !job.out ? 1 : 0].push_back(std::move(job));
    m_changed.notify_all();
}

bool HostCopies::concerns(const Job& job, int stage, int microbatch, int slice) const
{
    return job.done.op.stage == stage && std::any_of(job.parts.begin(), job.parts.end(), [&](const Part& part) {
               return part.microbatch == microbatch && (slice < 0 || part.slice < 0 || part.slice == slice);
           });
}

bool HostCopies::busy(int stage, int microbatch, int slice)
{
    const std::lock_guard lock(m_mutex);
    return under(stage, microbatch, slice) || !m_failure.empty();
}

bool HostCopies::under(int stage, int microbatch, int slice) const
{
    for (std::size_t lane = 0; lane < 2; ++lane) {
        if (m_running[lane] != nullptr && concerns(*m_running[lane], stage, microbatch, slice)) return true;
        for (const Job& job : m_queue[lane])
            if (concerns(job, stage, microbatch, slice)) return true;
    }
    return false;
}

bool HostCopies::await(int stage, int microbatch, int slice)
{
    std::unique_lock lock(m_mutex);
    return awaitUntil(lock, [&] { return !under(stage, microbatch, slice); });
}

// What stops the training is looked for every millisecond.
template <typename Until>
bool HostCopies::awaitUntil(std::unique_lock<std::mutex>& lock, Until&& until)
{
    m_awaited = true;
    m_changed.notify_all();
    bool done = false;
    while (!(done = until()) && m_failure.empty() && !m_stopped())
        m_changed.wait_for(lock, std::chrono::milliseconds(1));
    m_awaited = false;
    if (!m_failure.empty()) throw std::runtime_error(m_failure);
    return done;
}

bool HostCopies::awaitAll()
{
    std::unique_lock lock(m_mutex);
    return awaitUntil(lock, [this] {
        return m_queue[0].empty() && m_queue[1].empty() && m_running[0] == nullptr && m_running[1] == nullptr;
    });
}

bool HostCopies::awaitRoom()
{
    std::unique_lock lock(m_mutex);
    const auto leaving = [this](std::size_t lane) {
        const bool queued = std::any_of(m_queue[lane].begin(), m_queue[lane].end(), [](const Job& j) { return j.out; });
        return queued || (m_running[lane] != nullptr && m_running[lane]->out);
    };
    if (!leaving(0) && !leaving(1)) return false;
    const std::uint64_t before = m_freed;
    return awaitUntil(lock, [&] { return m_freed != before; });
}

std::vector<HostCopies::Done> HostCopies::ended()
{
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_ended, {});
}

void HostCopies::drop()
{
    std::unique_lock lock(m_mutex);
    m_dropping = true;
    m_queue[0].clear();
    m_queue[1].clear();
    m_changed.notify_all();
    m_changed.wait(lock, [this] { return m_running[0] == nullptr && m_running[1] == nullptr; });
    m_held.clear();
    m_ended.clear();
    m_dropping = false;
}

void HostCopies::work(std::size_t lane)
{
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [&] { return m_ends || (!m_queue[lane].empty() && m_failure.empty()); });
        if (m_ends) return;
        Job job = std::move(m_queue[lane].front());
        m_queue[lane].pop_front();
        m_running[lane] = &job;
        try {
            run(job, lock);
        } catch (const std::exception& e) {
            if (!lock.owns_lock()) lock.lock();
            m_failure = fmt::format("op {} ({}): {}", opNumber(job.done.position), toText(job.done.op), e.what());
        }
        m_running[lane] = nullptr;
        m_changed.notify_all();
    }
}

// Under the lock but while bytes move.
void HostCopies::run(Job& job, std::unique_lock<std::mutex>& lock)
{
    const Unreported unreported; // until the rank asks
    if (!job.out) {
        m_changed.wait(lock, [&] {
            return m_dropping || std::all_of(job.parts.begin(), job.parts.end(), [&](const Part& part) {
                       const auto held = m_held.find({job.done.op.stage, part});
                       return held != m_held.end() && held->second.out;
                   });
        });
        if (m_dropping) return;
    }
    const Nanos cpu = threadCpuNow();
    job.done.begin = monotonicNow();
    job.out ? moveOut(job, lock) : moveIn(job, lock);
    if (m_dropping) return;
    Bytes bytes = 0;
    for (const Done::Moved& moved : job.done.moved) bytes += moved.bytes;
    const Nanos slow = emulated(job, bytes);
    job.done.cpu = slow > 0 ? slow : threadCpuNow() - cpu;
    job.done.end = std::max(job.done.end, job.done.begin);
    m_ended.push_back(job.done);
}

Nanos HostCopies::emulated(const Job& job, Bytes bytes) const
{
    return m_speeds.known() ? m_speeds.duration(job.out, bytes) : m_speeds.latency;
}

void HostCopies::pace(const Job& job, Bytes bytes, std::unique_lock<std::mutex>& lock)
{
    if (!m_paced) return;
    const Nanos until = job.done.begin + emulated(job, bytes);
    for (Nanos now = monotonicNow(); now < until && !m_dropping; now = monotonicNow())
        m_changed.wait_for(lock, std::chrono::nanoseconds(until - now));
}

void HostCopies::moveOut(Job& job, std::unique_lock<std::mutex>& lock)
{
    const int stage = job.done.op.stage;
    std::vector<Held*> held;
    Bytes all = 0;
    for (const Part& part : job.parts) {
        Held& one = m_held.at({stage, part});
        Bytes bytes = 0;
        for (const Buffer* place : one.places) {
            one.onHost.push_back(m_host.take(place->size(), tagOf(stage, part.microbatch)));
            bytes += bytesOf(*place);
        }
        job.done.moved.push_back({part.microbatch, bytes});
        all += bytes;
        held.push_back(&one);
    }
    lock.unlock();
    for (const Held* one : held)
        for (std::size_t i = 0; i < one->places.size(); ++i)
            std::memcpy(one->onHost[i].data(), one->places[i]->data(), one->places[i]->size() * sizeof(float));
    lock.lock();
    pace(job, all, lock);
    if (m_dropping) return;
    for (Held* one : held) {
        for (Buffer* place : one->places) place->reset();
        one->out = true;
    }
    job.done.end = monotonicNow();
    ++m_freed;
}

void HostCopies::moveIn(Job& job, std::unique_lock<std::mutex>& lock)
{
    const int stage = job.done.op.stage;
    std::vector<std::vector<Buffer>> back;
    for (;;) { // the rank may make room, unless it waits for this
        try {
            back.clear();
            for (const Part& part : job.parts) {
                std::vector<Buffer>& buffers = back.emplace_back();
                for (const Buffer& from : m_held.at({stage, part}).onHost)
                    buffers.push_back(m_device.take(from.size(), tagOf(stage, part.microbatch)));
            }
            break;
        } catch (const MemoryLimitExceeded&) {
            back.clear();
            if (m_awaited) throw;
            m_changed.wait_for(lock, std::chrono::microseconds(200));
            if (m_dropping) return;
            job.done.begin = monotonicNow();
        }
    }
    std::vector<Held*> held;
    Bytes all = 0;
    for (std::size_t p = 0; p < job.parts.size(); ++p) {
        held.push_back(&m_held.at({stage, job.parts[p]}));
        Bytes bytes = 0;
        for (const Buffer& from : held.back()->onHost) bytes += bytesOf(from);
        job.done.moved.push_back({job.parts[p].microbatch, bytes});
        all += bytes;
    }
    lock.unlock();
    for (std::size_t p = 0; p < held.size(); ++p)
        for (std::size_t i = 0; i < held[p]->onHost.size(); ++i)
            std::memcpy(back[p][i].data(), held[p]->onHost[i].data(), back[p][i].size() * sizeof(float));
    lock.lock();
    pace(job, all, lock);
    if (m_dropping) return;
    for (std::size_t p = 0; p < held.size(); ++p)
        for (std::size_t i = 0; i < held[p]->places.size(); ++i) *held[p]->places[i] = std::move(back[p][i]);
    for (const Part& part : job.parts) m_held.erase({stage, part});
    job.done.end = monotonicNow();
}

} // namespace stagewright
