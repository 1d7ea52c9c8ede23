#include "engine/cuda/collective_check.h"

#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/check/check.h"

namespace stagewright::cuda {

namespace {

using Values = std::vector<float>;

constexpr std::size_t part = 4099; // floats; not a multiple of any size that NCCL splits by

// The devices' queues, connected, each with a block for input and one for output.
class Ring {
public:
    Ring(const StagewrightCudaTable& table, std::span<const int> devices) : m_table(table), m_ends(devices.size())
    {
        try {
            std::vector<StagewrightQueue*> queues;
            for (std::size_t i = 0; i < m_ends.size(); ++i) {
                End& end = m_ends[i];
                end.device = devices[i];
                StagewrightQueueRequest request{};
                request.device = end.device;
                done(m_table.openQueue(&request, &end.queue));
                queues.push_back(end.queue);
                for (void** block : {&end.given, &end.made}) {
                    done(m_table.take(end.device, m_ends.size() * part * sizeof(float), block));
                    if (!*block) throw std::runtime_error(fmt::format("device {} has no memory for it", end.device));
                }
            }
            done(m_table.openCommunicator(queues.data(), static_cast<std::int32_t>(queues.size()), &m_communicator));
        } catch (...) {
            close();
            throw;
        }
    }
    ~Ring() { close(); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    // The output of each end, `size` floats of it, after all of them got their input.
    template <typename Work>
    std::vector<Values> results(const std::vector<Values>& given, std::size_t size, Work&& work)
    {
        for (std::size_t i = 0; i < m_ends.size(); ++i) {
            done(m_table.upload(m_ends[i].queue, m_ends[i].given, given[i].data(), given[i].size() * sizeof(float)));
            order(i, true);
        }
        work();
        std::vector<Values> made(m_ends.size(), Values(size));
        for (std::size_t i = 0; i < m_ends.size(); ++i) {
            order(i, false);
            done(m_table.download(m_ends[i].queue, made[i].data(), m_ends[i].made, size * sizeof(float)));
        }
        done(m_table.pollCommunicator(m_communicator));
        return made;
    }
    void collect(std::int32_t kind)
    {
        std::vector<const float*> from;
        std::vector<float*> to;
        for (const End& end : m_ends) {
            from.push_back(static_cast<const float*>(end.given));
            to.push_back(static_cast<float*>(end.made));
        }
        done(m_table.collect(m_communicator, kind, from.data(), to.data(), part));
    }
    void passOn()
    {
        for (std::size_t i = 0; i < m_ends.size(); ++i) {
            const std::size_t next = (i + 1) % m_ends.size();
            done(m_table.transfer(m_communicator, static_cast<std::int32_t>(i), m_ends[i].given,
                                  static_cast<std::int32_t>(next), m_ends[next].made, part * sizeof(float)));
        }
    }

private:
    struct End {
        int device = 0;
        StagewrightQueue* queue = nullptr;
        void* given = nullptr;
        void* made = nullptr;
    };

    void done(int status) const
    {
        if (status != 0) throw std::runtime_error(m_table.lastError());
    }
    // The connection waits for the queue, or the queue for the connection.
    void order(std::size_t at, bool before)
    {
        const auto end = static_cast<std::int32_t>(at);
        StagewrightMark* mark = nullptr;
        done(before ? m_table.mark(m_ends[at].queue, STAGEWRIGHT_COMPUTE, &mark)
                    : m_table.communicatorMark(m_communicator, end, &mark));
        const int status = before ? m_table.communicatorAwait(m_communicator, end, mark)
                                  : m_table.await(m_ends[at].queue, STAGEWRIGHT_COMPUTE, mark);
        m_table.dropMark(mark);
        done(status);
    }
    void close()
    {
        if (m_communicator) m_table.closeCommunicator(m_communicator);
        for (const End& end : m_ends) {
            if (end.given) (void)m_table.give(end.device, end.given);
            if (end.made) (void)m_table.give(end.device, end.made);
            if (end.queue) m_table.closeQueue(end.queue);
        }
    }

    const StagewrightCudaTable& m_table;
    std::vector<End> m_ends;
    StagewrightCommunicator* m_communicator = nullptr;
};

KernelComparison compared(const char* name, const std::vector<Values>& made, const std::vector<Values>& wanted,
                          double tolerance)
{
    Difference difference;
    for (std::size_t i = 0; i < made.size(); ++i) difference.add(made[i], wanted[i]);
    return {name, difference.error, tolerance, difference.error <= tolerance};
}

} // namespace

Result<std::vector<KernelComparison>> compareCollectives(const StagewrightCudaTable& table,
                                                         std::span<const int> devices)
{
    std::vector<KernelComparison> all;
    const std::size_t ends = devices.size();
    if (ends < 2) return all;
    std::mt19937 random(1);
    std::uniform_real_distribution<float> numbers(-1, 1);
    std::vector<Values> given(ends, Values(ends * part));
    for (Values& values : given)
        for (float& value : values) value = numbers(random);
    // By end: the neighbour's, the sum, the own part of the sum, everybody's.
    std::vector<Values> passed(ends), sums(ends, Values(part)), parts(ends), gathered(ends);
    Values sum(ends * part);
    for (std::size_t i = 0; i < ends; ++i)
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += given[i][k];
    for (std::size_t i = 0; i < ends; ++i) {
        const auto front = [&](const Values& values) { return Values(values.begin(), values.begin() + part); };
        passed[(i + 1) % ends] = front(given[i]);
        sums[i] = front(sum);
        parts[i] = Values(sum.begin() + static_cast<std::ptrdiff_t>(i * part),
                          sum.begin() + static_cast<std::ptrdiff_t>((i + 1) * part));
        for (std::size_t k = 0; k < ends; ++k)
            gathered[i].insert(gathered[i].end(), given[k].begin(), given[k].begin() + part);
    }
    const double tolerance = static_cast<double>(ends) * 0x1p-24;
    try {
        Ring ring(table, devices);
        all.push_back(
            compared("message along the devices", ring.results(given, part, [&] { ring.passOn(); }), passed, 0));
        all.push_back(compared("all-reduce", ring.results(given, part, [&] { ring.collect(STAGEWRIGHT_ALL_REDUCE); }),
                               sums, tolerance));
        all.push_back(compared("reduce-scatter",
                               ring.results(given, part, [&] { ring.collect(STAGEWRIGHT_REDUCE_SCATTER); }), parts,
                               tolerance));
        all.push_back(compared("all-gather",
                               ring.results(given, ends * part, [&] { ring.collect(STAGEWRIGHT_ALL_GATHER); }),
                               gathered, 0));
    } catch (const std::exception& e) {
        return fail(ErrorCode::Unavailable, fmt::format("collectives of {} devices: {}", ends, e.what()));
    }
    return all;
}

} // namespace stagewright::cuda
