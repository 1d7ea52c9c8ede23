#include "tests/support/emulated_block.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "tests/support/fibers.h"

namespace stagewright::fake {

using cuda::Bf16;
using cuda::Quad;

namespace {

constexpr int lanes = 32;
constexpr int several = -2; // readers
// in addition to the dynamic shared memory; the most that a launch has without asking
constexpr std::uint32_t slotBytes = 48 << 10;

std::string text(auto number) { return std::to_string(number); }
float widened(std::uint32_t pair, int which)
{
    const auto half = static_cast<std::uint16_t>(pair >> (16 * which));
    return Bf16::load(&half, 0);
}

enum class Meeting {
    None,
    Barrier,
    Shuffle,
    LoadMatrices,
    LoadTransposed,
    MultiplyAdd,
};
const char* nameOf(Meeting meeting)
{
    constexpr const char* names[] = {"nothing", "a barrier", "a shuffle", "a matrix load", "a transposed matrix load",
                                     "a GEMM"};
    return names[static_cast<int>(meeting)];
}

// What is known of four bytes of shared memory in a block.
struct Word {
    std::uint32_t writeEpoch = 0; // 0: nothing was written
    std::uint32_t readEpoch = 0;
    int writer = -1;
    int reader = -1;
    bool copying = false;
};

struct Copy {
    std::uint32_t to;
    std::uint32_t bytes;
    const void* from; // null: zeros
};

struct Range {
    const std::byte* from;
    std::size_t bytes;
    bool writes;
    std::vector<std::uint32_t> writers; // of each two bytes: thread of the launch + 1
};

struct Request // of a lane to its warp
{
    std::uint64_t bits = 0;
    std::uint32_t at = 0; // or a shuffle's mask
    float* sums = nullptr;
    Quad a{};
    std::uint32_t b[2] = {};
    Quad loaded{};
};

struct Warp {
    Meeting meeting = Meeting::None;
    int arrived = 0;
    std::array<Request, lanes> requests;
};

struct Thread {
    Meeting waits = Meeting::None;
    bool ended = false;
    int barriers = 0;
    int waitsForCopies = 0;
    std::vector<Copy> copies; // under way
    std::size_t committed = 0;
};

thread_local std::map<int, std::unique_ptr<Fibers>> theFibers; // by how many they are: kept from block to block

} // namespace

struct EmulatedKernel::State {
    EmulatedKernel& kernel;
    std::vector<Range> ranges;
    int blocks = 0; // that have begun
    int bankConflicts = 0;

    std::uint32_t dynamicBytes = 0;
    std::vector<std::byte> shared;
    std::vector<Word> words;
    std::uint32_t epoch = 1;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::deque<int> ready;
    int atBarrier = 0;
    int ended = 0;
    std::string fault;
    std::unique_ptr<Fibers> fibers;
    const std::function<void(const EmulatedThread&)>* body = nullptr;

    explicit State(EmulatedKernel& owner) : kernel(owner) {}

    [[noreturn]] void fail(int thread, const std::string& what) const
    {
        throw KernelFault("block " + text(blocks - 1) + ", thread " + text(thread) + ": " + what);
    }

    // The thread waits until another has made it ready.
    void wait(int thread, Meeting meeting)
    {
        threads[static_cast<std::size_t>(thread)].waits = meeting;
        goOn(thread);
    }
    void goOn(int from)
    {
        if (ready.empty()) {
            if (fault.empty() && ended < static_cast<int>(threads.size())) fault = stuck();
            fibers->leave(from);
            return;
        }
        fibers->to(from, next());
    }
    int next()
    {
        const int thread = kernel.newestFirst ? ready.back() : ready.front();
        kernel.newestFirst ? ready.pop_back() : ready.pop_front();
        return thread;
    }
    void wake(int thread)
    {
        threads[static_cast<std::size_t>(thread)].waits = Meeting::None;
        ready.push_back(thread);
    }
    std::string stuck() const
    {
        std::string said = "block " + text(blocks - 1) + ": no thread can go on";
        Meeting last = Meeting::None;
        bool sawEnd = false;
        for (std::size_t i = 0; i < threads.size(); ++i) {
            if (threads[i].ended && !sawEnd) {
                said += "; thread " + text(i) + " has ended";
                sawEnd = true;
            } else if (!threads[i].ended && threads[i].waits != last) {
                last = threads[i].waits;
                said += "; thread " + text(i) + " waits at " + nameOf(last);
            }
        }
        return said;
    }

    void barrier(int thread)
    {
        const int number = threads[static_cast<std::size_t>(thread)].barriers++;
        if (++atBarrier < static_cast<int>(threads.size())) {
            wait(thread, Meeting::Barrier);
            return;
        }
        atBarrier = 0;
        if (number != kernel.ignoredBarrier) ++epoch;
        for (int i = 0; i < static_cast<int>(threads.size()); ++i)
            if (i != thread) wake(i);
    }

    // The warp's lanes meet; the last does the work of all.
    Request& meet(int thread, Meeting meeting, const Request& request)
    {
        Warp& warp = warps[static_cast<std::size_t>(thread / lanes)];
        Request& mine = warp.requests[static_cast<std::size_t>(thread % lanes)];
        if (warp.arrived > 0 && warp.meeting != meeting)
            fail(thread,
                 std::string("is at ") + nameOf(meeting) + ", other lanes of its warp at " + nameOf(warp.meeting));
        warp.meeting = meeting;
        mine = request;
        if (++warp.arrived < lanes) {
            wait(thread, meeting);
            return mine;
        }
        warp.arrived = 0;
        const int first = thread / lanes * lanes;
        switch (meeting) {
        case Meeting::Shuffle: shuffle(warp); break;
        case Meeting::MultiplyAdd: multiplyAdd(warp); break;
        default: load(warp, first, meeting == Meeting::LoadTransposed);
        }
        for (int i = first; i < first + lanes; ++i)
            if (i != thread) wake(i);
        return mine;
    }
    static void shuffle(Warp& warp)
    {
        std::array<std::uint64_t, lanes> bits;
        for (std::size_t i = 0; i < lanes; ++i) bits[i] = warp.requests[(i ^ warp.requests[i].at) % lanes].bits;
        for (std::size_t i = 0; i < lanes; ++i) warp.requests[i].bits = bits[i];
    }
    void load(Warp& warp, int first, bool transposed)
    {
        for (int m = 0; m < 4; ++m) {
            std::uint16_t matrix[8][8];
            unsigned banks = 0; // 128 bytes lie side by side: eight rows of 16 fit
            for (int r = 0; r < 8; ++r) {
                const int lane = 8 * m + r;
                const std::uint32_t at = warp.requests[static_cast<std::size_t>(lane)].at;
                if (at % 16 != 0)
                    fail(first + lane,
                         "a matrix's row starts at byte " + text(at) + " of shared memory, no multiple of 16");
                look(first + lane, several, at, 16, false);
                std::memcpy(matrix[r], shared.data() + at, 16);
                banks |= 1U << at / 16 % 8;
            }
            if (banks != 0xff) ++bankConflicts;
            for (int lane = 0; lane < lanes; ++lane) {
                const int of = lane / 4;
                const int pair = lane % 4 * 2;
                const std::uint32_t low = transposed ? matrix[pair][of] : matrix[of][pair];
                const std::uint32_t high = transposed ? matrix[pair + 1][of] : matrix[of][pair + 1];
                warp.requests[static_cast<std::size_t>(lane)].loaded.at[m] = low | high << 16;
            }
        }
    }
    // A: registers 0 … 3 hold rows lane/4, +8, +0, +8 and columns lane%4·2, +0, +8, +8; B: rows lane%4·2, +8 of column
    // lane/4; the sums rows lane/4, +8 and columns lane%4·2.
    void multiplyAdd(Warp& warp) const
    {
        float a[16][16];
        float b[16][8];
        float c[16][8];
        for (int lane = 0; lane < lanes; ++lane) {
            const Request& r = warp.requests[static_cast<std::size_t>(lane)];
            const int row = lane / 4;
            const int pair = lane % 4 * 2;
            for (int i = 0; i < 2; ++i) {
                for (int half = 0; half < 2; ++half) {
                    a[row + 8 * half][pair + i] = widened(r.a.at[half], i);
                    a[row + 8 * half][pair + 8 + i] = widened(r.a.at[2 + half], i);
                    b[pair + 8 * half + i][row] = widened(r.b[half], i);
                    c[row + 8 * half][pair + i] = r.sums[2 * half + i];
                }
            }
        }
        multiplyTile(a, b, c, kernel.matrixSums);
        for (int lane = 0; lane < lanes; ++lane)
            for (int i = 0; i < 4; ++i)
                warp.requests[static_cast<std::size_t>(lane)].sums[i] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }

    // Shared memory is about to be read by `reader` (or several), or written by the thread.
    void look(int thread, int reader, std::uint32_t at, std::uint32_t bytes, bool writes)
    {
        if (at > dynamicBytes || bytes > dynamicBytes - at)
            fail(thread, "byte " + text(at) + " of shared memory; the launch has " + text(dynamicBytes));
        lookAtWords(thread, reader, at, bytes, writes);
    }
    void lookAtWords(int thread, int reader, std::uint32_t at, std::uint32_t bytes, bool writes)
    {
        const auto clash = [&](const char* what, int other, const char* did) {
            fail(thread, std::string(what) + " byte " + text(at) + " of shared memory, which " +
                             (other == several ? std::string("other threads") : "thread " + text(other)) + " " + did +
                             " with no barrier between");
        };
        for (std::uint32_t w = at / 4; w < (at + bytes + 3) / 4; ++w) {
            Word& word = words[w];
            if (word.copying)
                fail(thread, "byte " + text(at) + " of shared memory: a copy to it has not been waited for");
            if (writes) {
                if (word.writeEpoch == epoch && word.writer != thread) clash("writes", word.writer, "wrote");
                if (word.readEpoch == epoch && word.reader != thread) clash("writes", word.reader, "read");
                word.writeEpoch = epoch;
                word.writer = thread;
            } else {
                if (word.writeEpoch == 0)
                    fail(thread, "reads byte " + text(at) + " of shared memory, which nothing was written to");
                if (word.writeEpoch == epoch && word.writer != reader) clash("reads", word.writer, "wrote");
                if (word.readEpoch != epoch)
                    word.reader = reader;
                else if (word.reader != reader)
                    word.reader = several;
                word.readEpoch = epoch;
            }
        }
    }
    void startCopy(int thread, std::uint32_t to, const void* from, std::uint32_t bytes)
    {
        if (to % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
            fail(thread, "a copy of " + text(bytes) + " bytes to byte " + text(to) +
                             " of shared memory: both ends must be multiples of it");
        look(thread, thread, to, bytes, true);
        for (std::uint32_t w = to / 4; w < (to + bytes) / 4; ++w) words[w].copying = true;
        threads[static_cast<std::size_t>(thread)].copies.push_back({to, bytes, from});
    }
    void endCopies(int thread)
    {
        Thread& mine = threads[static_cast<std::size_t>(thread)];
        if (mine.waitsForCopies++ == kernel.ignoredWait) return;
        for (std::size_t i = 0; i < mine.committed; ++i) {
            const Copy& copy = mine.copies[i];
            if (copy.from)
                std::memcpy(shared.data() + copy.to, copy.from, copy.bytes);
            else
                std::memset(shared.data() + copy.to, 0, copy.bytes);
            for (std::uint32_t w = copy.to / 4; w < (copy.to + copy.bytes) / 4; ++w) {
                words[w].copying = false;
                words[w].writeEpoch = epoch;
                words[w].writer = thread;
            }
        }
        mine.copies.erase(mine.copies.begin(), mine.copies.begin() + static_cast<std::ptrdiff_t>(mine.committed));
        mine.committed = 0;
    }

    void lookAtDevice(int thread, const void* at, std::size_t bytes, bool writes)
    {
        const auto* from = static_cast<const std::byte*>(at);
        if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
            fail(thread, "an access of " + text(bytes) + " bytes that starts at no multiple of it");
        const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) {
            return !std::less<>()(from, r.from) && static_cast<std::size_t>(from - r.from) <= r.bytes &&
                   r.bytes - static_cast<std::size_t>(from - r.from) >= bytes;
        });
        if (range == ranges.end())
            fail(thread, std::string(writes ? "writes" : "reads") + " memory that the kernel was not given");
        if (writes && !range->writes) fail(thread, "writes memory that is only to be read");
        if (!range->writes) return;
        const std::uint32_t me =
            static_cast<std::uint32_t>((blocks - 1) * static_cast<int>(threads.size()) + thread) + 1;
        for (std::size_t i = static_cast<std::size_t>(from - range->from) / 2;
             i < (static_cast<std::size_t>(from - range->from) + bytes) / 2; ++i) {
            std::uint32_t& writer = range->writers[i];
            if (writer != 0 && writer != me) {
                const int size = static_cast<int>(threads.size());
                fail(thread, std::string(writes ? "writes" : "reads") + " what thread " +
                                 text(static_cast<int>(writer - 1) % size) + " of block " +
                                 text(static_cast<int>(writer - 1) / size) + " writes in the same launch");
            }
            if (writes) writer = me;
        }
    }

    static void runThread(void* context, int thread)
    {
        auto& s = *static_cast<State*>(context);
        try {
            (*s.body)(EmulatedThread(s, thread));
            if (!s.threads[static_cast<std::size_t>(thread)].copies.empty())
                s.fail(thread, "ends before its copies, which nobody waited for");
        } catch (const std::exception& e) {
            s.fault = e.what();
        }
        s.threads[static_cast<std::size_t>(thread)].ended = true;
        ++s.ended;
        if (!s.fault.empty()) s.fibers->leave(thread);
        s.goOn(thread); // the last that this thread does
    }
};

EmulatedKernel::EmulatedKernel(std::vector<KernelRange> ranges) : m_state(std::make_unique<State>(*this))
{
    std::erase_if(ranges, [](const KernelRange& r) { return !r.from || r.bytes == 0; });
    std::sort(ranges.begin(), ranges.end(),
              [](const KernelRange& a, const KernelRange& b) { return std::less<>()(a.from, b.from); });
    for (const KernelRange& r : ranges) {
        const auto* from = static_cast<const std::byte*>(r.from);
        Range* last = m_state->ranges.empty() ? nullptr : &m_state->ranges.back();
        if (last && !std::less<>()(last->from + last->bytes, from)) { // columns of one matrix
            last->bytes = std::max(last->bytes, static_cast<std::size_t>(from - last->from) + r.bytes);
            last->writes = last->writes || r.writes;
        } else {
            m_state->ranges.push_back({from, r.bytes, r.writes, {}});
        }
    }
    for (Range& r : m_state->ranges)
        if (r.writes) r.writers.resize((r.bytes + 1) / 2);
}

EmulatedKernel::~EmulatedKernel() = default;

void EmulatedKernel::run(int threads, std::uint32_t sharedBytes, const std::function<void(const EmulatedThread&)>& body)
{
    State& s = *m_state;
    ++s.blocks;
    s.dynamicBytes = (sharedBytes + 15) / 16 * 16;
    s.shared.assign(s.dynamicBytes + slotBytes, std::byte{0xff}); // NaN in every type
    s.words.assign(s.shared.size() / 4, Word());
    s.epoch = 1;
    s.threads.assign(static_cast<std::size_t>(threads), Thread());
    s.warps.assign(static_cast<std::size_t>(threads / lanes), Warp());
    s.ready.clear();
    s.atBarrier = s.ended = 0;
    s.fault.clear();
    s.body = &body;
    for (int i = 0; i < threads; ++i) s.ready.push_back(i);
    s.fibers = std::move(theFibers[threads]);
    if (!s.fibers) s.fibers = std::make_unique<Fibers>(threads);
    s.fibers->run(s.next(), &State::runThread, &s);
    if (!s.fault.empty()) {
        s.fibers.reset(); // they are in the middle of it
        throw KernelFault(s.fault);
    }
    theFibers[threads] = std::move(s.fibers);
}

int EmulatedKernel::barriersOfLastBlock() const { return m_state->threads.front().barriers; }

int EmulatedKernel::waitsOfLastBlock() const { return m_state->threads.front().waitsForCopies; }

int EmulatedKernel::bankConflicts() const { return m_state->bankConflicts; }

void EmulatedThread::barrier() const { m_state->barrier(m_thread); }

std::uint64_t EmulatedThread::shuffle(std::uint64_t bits, int mask) const
{
    Request request;
    request.bits = bits;
    request.at = static_cast<std::uint32_t>(mask);
    return m_state->meet(m_thread, Meeting::Shuffle, request).bits;
}

Quad EmulatedThread::load(std::uint32_t at, bool transposed) const
{
    Request request;
    request.at = at;
    return m_state->meet(m_thread, transposed ? Meeting::LoadTransposed : Meeting::LoadMatrices, request).loaded;
}

void EmulatedThread::multiplyAdd(float (&sums)[4], const Quad& a, std::uint32_t b0, std::uint32_t b1) const
{
    Request request;
    request.sums = sums;
    request.a = a;
    request.b[0] = b0;
    request.b[1] = b1;
    m_state->meet(m_thread, Meeting::MultiplyAdd, request);
}

void EmulatedThread::copy(std::uint32_t to, const void* from, std::uint32_t bytes, bool there) const
{
    if (there) m_state->lookAtDevice(m_thread, from, bytes, false);
    m_state->startCopy(m_thread, to, there ? from : nullptr, bytes);
}

void EmulatedThread::commitCopies() const
{
    Thread& mine = m_state->threads[static_cast<std::size_t>(m_thread)];
    mine.committed = mine.copies.size();
}

void EmulatedThread::waitCopies() const { m_state->endCopies(m_thread); }

float EmulatedThread::sharedFloat(std::uint32_t at) const
{
    float value;
    m_state->look(m_thread, m_thread, at, sizeof value, false);
    std::memcpy(&value, m_state->shared.data() + at, sizeof value);
    return value;
}

void EmulatedThread::storeShared(std::uint32_t at, const void* from, std::uint32_t bytes) const
{
    m_state->look(m_thread, m_thread, at, bytes, true);
    std::memcpy(m_state->shared.data() + at, from, bytes);
}

void EmulatedThread::slotAccess(int slot, int slots, void* value, std::size_t bytes, bool writes) const
{
    if (slot < 0 || slot >= slots || static_cast<std::size_t>(slots) * bytes > slotBytes)
        m_state->fail(m_thread, "slot " + text(slot) + " of " + text(slots));
    const std::uint32_t at = m_state->dynamicBytes + static_cast<std::uint32_t>(static_cast<std::size_t>(slot) * bytes);
    m_state->lookAtWords(m_thread, m_thread, at, static_cast<std::uint32_t>(bytes), writes);
    writes ? std::memcpy(m_state->shared.data() + at, value, bytes)
           : std::memcpy(value, m_state->shared.data() + at, bytes);
}

void EmulatedThread::look(const void* at, std::size_t bytes, bool writes) const
{
    m_state->lookAtDevice(m_thread, at, bytes, writes);
}

std::uint32_t EmulatedThread::pack(float first, float second) const { return Bf16::pair(first, second); }

} // namespace stagewright::fake
