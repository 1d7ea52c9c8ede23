#include "engine/cuda/ceilings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "profiler/record/clock.h"

namespace stagewright::cuda {

namespace {

constexpr std::int32_t narrowest = 256;
constexpr std::int32_t widest = 8192;
constexpr std::size_t smallestCopy = std::size_t{1} << 20;
constexpr std::size_t largestCopy = std::size_t{256} << 20;
constexpr Nanos longEnough = 100'000'000; // of one GEMM or copy
constexpr int rounds = 5;

class Measurement {
public:
    Measurement(const StagewrightCudaTable& table, const StagewrightQueueRequest& request)
        : m_table(table), m_request(request)
    {
        done(m_table.openQueue(&m_request, &m_queue));
    }
    ~Measurement()
    {
        for (void* block : m_blocks) (void)m_table.give(m_request.device, block);
        m_table.closeQueue(m_queue);
    }
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    DeviceCeilings run()
    {
        StagewrightCudaDevice device{};
        done(m_table.describe(m_request.device, &device));
        const std::size_t room = device.freeBytes / 8;
        return {matrixFlops(room), copyBytes(room)};
    }

private:
    void done(int status) const
    {
        if (status != 0) throw std::runtime_error(m_table.lastError());
    }
    void* take(std::size_t bytes)
    {
        void* block = nullptr;
        done(m_table.take(m_request.device, bytes, &block));
        if (!block)
            throw std::runtime_error(
                fmt::format("the device has no {} bytes free to measure its ceilings with", bytes));
        m_blocks.push_back(block);
        return block;
    }
    void giveAll()
    {
        for (void* block : m_blocks) done(m_table.give(m_request.device, block));
        m_blocks.clear();
    }

    // Zeros would let the matrix units run faster than a training's elements do.
    void fill(void* block, std::size_t bytes) const
    {
        std::vector<char> some(std::min<std::size_t>(bytes, std::size_t{1} << 20));
        std::uint32_t state = 1;
        for (std::size_t at = 0; at + 4 <= some.size(); at += m_request.bf16 != 0 ? 2 : 4) {
            state = state * 1664525U + 1013904223U;
            const float value = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, 4);
            if (m_request.bf16 != 0) bits >>= 16;
            std::memcpy(some.data() + at, &bits, m_request.bf16 != 0 ? 2 : 4);
        }
        done(m_table.upload(m_queue, block, some.data(), some.size()));
        auto* first = static_cast<char*>(block);
        for (std::size_t there = some.size(); there < bytes;) {
            const std::size_t more = std::min(there, bytes - there);
            done(m_table.copyRows(m_queue, STAGEWRIGHT_COMPUTE, first + there, more, first, more, more, 1));
            there += more;
        }
    }

    struct Shortest {
        Nanos device = std::numeric_limits<Nanos>::max(); // on its clock
        Nanos waited = std::numeric_limits<Nanos>::max(); // on the host's, until it was done
    };
    // The best of several runs counts; the first warms up, which takes longer than all others where code is loaded for
    // it.
    template <typename Work>
    Shortest best(Work&& work) const
    {
        Shortest shortest;
        for (int round = 0; round <= rounds; ++round) {
            std::array<StagewrightMark*, 2> marks{};
            const Nanos begin = monotonicNow();
            done(m_table.mark(m_queue, STAGEWRIGHT_COMPUTE, &marks[0]));
            done(work());
            done(m_table.mark(m_queue, STAGEWRIGHT_COMPUTE, &marks[1]));
            done(m_table.finish(m_queue));
            const Nanos waited = monotonicNow() - begin;
            std::int64_t nanos = 0;
            const int status = m_table.nanosBetween(marks[0], marks[1], &nanos);
            for (StagewrightMark* mark : marks) m_table.dropMark(mark);
            done(status);
            if (round == 0) continue;
            shortest.device = std::min<Nanos>(shortest.device, std::max<std::int64_t>(nanos, 1));
            shortest.waited = std::min(shortest.waited, waited);
        }
        return shortest;
    }

    double matrixFlops(std::size_t room)
    {
        double most = 0;
        for (std::int32_t n = narrowest; n <= widest; n *= 2) {
            const std::size_t bytes =
                static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * (m_request.bf16 != 0 ? 2 : 4);
            if (n > narrowest && 3 * bytes > room) break;
            StagewrightGemm p{};
            p.kind = STAGEWRIGHT_A_BT;
            p.rows = p.columns = p.depth = n;
            p.alpha = 1.0F;
            p.batches = 1;
            p.aStride = p.bStride = p.cStride = n;
            void* a = take(bytes);
            void* b = take(bytes);
            p.c = take(bytes);
            fill(a, bytes);
            fill(b, bytes);
            p.a = a;
            p.b = b;
            done(m_table.finish(m_queue));
            const Shortest time = best([&] { return m_table.multiply(m_queue, &p); });
            const double width = n;
            most = std::max(most, 2.0 * width * width * width * 1e9 / static_cast<double>(time.device));
            giveAll();
            if (time.waited * 8 > longEnough) break; // the next takes eight times as long
        }
        return most;
    }

    double copyBytes(std::size_t room)
    {
        double most = 0;
        for (std::size_t bytes = smallestCopy; bytes <= largestCopy; bytes *= 4) {
            if (bytes > smallestCopy && 2 * bytes > room) break;
            void* from = take(bytes);
            void* to = take(bytes);
            fill(from, bytes);
            done(m_table.finish(m_queue));
            const Shortest time =
                best([&] { return m_table.copyRows(m_queue, STAGEWRIGHT_COMPUTE, to, bytes, from, bytes, bytes, 1); });
            most = std::max(most, 2.0 * static_cast<double>(bytes) * 1e9 / static_cast<double>(time.device));
            giveAll();
            if (time.waited * 4 > longEnough) break;
        }
        return most;
    }

    const StagewrightCudaTable& m_table;
    StagewrightQueueRequest m_request;
    StagewrightQueue* m_queue = nullptr;
    std::vector<void*> m_blocks;
};

} // namespace

Result<DeviceCeilings> ceilingsOf(const StagewrightCudaTable& table, const StagewrightQueueRequest& request)
{
    static std::mutex mutex;
    static std::map<std::array<std::int32_t, 4>, Result<DeviceCeilings>> known;
    const std::lock_guard lock(mutex);
    const std::array<std::int32_t, 4> key{request.device, request.bf16, request.tf32, request.parts};
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Result<DeviceCeilings> measured = [&]() -> Result<DeviceCeilings> {
        try {
            return Measurement(table, request).run();
        } catch (const std::exception& e) {
            return fail(ErrorCode::Unavailable,
                        fmt::format("the ceilings of CUDA device {} are not known: {}", request.device, e.what()));
        }
    }();
    return known.emplace(key, std::move(measured)).first->second;
}

} // namespace stagewright::cuda
