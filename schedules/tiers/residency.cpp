#include "schedules/tiers/residency.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/core.h>

namespace stagewright {

namespace {

// Keys of pieces that may leave, the largest first: a bitmap, and one over its words.
class LargestKey {
public:
    explicit LargestKey(std::size_t keys) : m_words(keys / 64 + 1), m_upper(m_words.size() / 64 + 1) {}
    void set(std::uint32_t key)
    {
        m_words[key >> 6] |= std::uint64_t{1} << (key & 63);
        m_upper[key >> 12] |= std::uint64_t{1} << ((key >> 6) & 63);
        m_top = std::max(m_top, key >> 12);
    }
    void clear(std::uint32_t key)
    {
        if ((m_words[key >> 6] &= ~(std::uint64_t{1} << (key & 63))) == 0)
            m_upper[key >> 12] &= ~(std::uint64_t{1} << ((key >> 6) & 63));
    }
    std::uint32_t largest() // there is one
    {
        while (m_upper[m_top] == 0) --m_top;
        const std::uint32_t word = m_top * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(m_upper[m_top]));
        return word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(m_words[word]));
    }

private:
    std::vector<std::uint64_t> m_words, m_upper;
    std::uint32_t m_top = 0;
};

} // namespace

std::string_view toText(Eviction eviction)
{
    constexpr std::string_view names[] = {"belady", "lru", "fifo"};
    return names[static_cast<std::size_t>(eviction)];
}

Result<AccessTrace> AccessTrace::of(const Accesses& accesses)
{
    AccessTrace out;
    if (!accesses.write.empty() && accesses.write.size() != accesses.use.size())
        return fail(ErrorCode::Usage,
                    fmt::format("use has {} moments, write {}", accesses.use.size(), accesses.write.size()));
    out.m_first.push_back(0);
    for (std::size_t moment = 0; moment < accesses.use.size(); ++moment) {
        std::vector<int> pieces = accesses.use[moment];
        std::sort(pieces.begin(), pieces.end());
        pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
        if (!pieces.empty() && (pieces.front() < 0 || pieces.back() > 1'000'000))
            return fail(ErrorCode::Usage, fmt::format("moment {} uses a piece that is not 0 to 1000000", moment));
        const auto written = accesses.write.empty() ? std::vector<int>() : accesses.write[moment];
        for (const int piece : written)
            if (!std::binary_search(pieces.begin(), pieces.end(), piece))
                return fail(ErrorCode::Usage,
                            fmt::format("moment {} writes piece {} and does not use it", moment, piece));
        for (const int piece : pieces) {
            out.m_piece.push_back(piece);
            out.m_writes.push_back(std::find(written.begin(), written.end(), piece) != written.end());
            out.m_pieces = std::max(out.m_pieces, piece + 1);
        }
        out.m_widest = std::max(out.m_widest, static_cast<int>(pieces.size()));
        out.m_first.push_back(static_cast<std::uint32_t>(out.m_piece.size()));
    }
    // A key by next use: accesses count through the steps, and within a moment the lower piece has the larger key, so
    // that of those needed last at one moment it leaves first. What is not used again has keys above all of them.
    const auto count = static_cast<std::uint32_t>(out.m_piece.size());
    std::vector<std::uint32_t> key(count), first(static_cast<std::size_t>(out.m_pieces), count);
    for (std::size_t moment = 0; moment + 1 < out.m_first.size(); ++moment)
        for (std::uint32_t i = out.m_first[moment]; i < out.m_first[moment + 1]; ++i)
            key[i] = out.m_first[moment] + out.m_first[moment + 1] - 1 - i;
    for (std::uint32_t i = count; i-- > 0;) first[static_cast<std::size_t>(out.m_piece[i])] = key[i];
    std::vector<std::uint32_t> next(static_cast<std::size_t>(out.m_pieces), count);
    out.m_next.resize(count);
    out.m_nextOfNextStep.resize(count);
    for (std::uint32_t i = count; i-- > 0;) {
        const auto piece = static_cast<std::size_t>(out.m_piece[i]);
        const bool again = next[piece] != count;
        out.m_next[i] = again ? next[piece] : count + static_cast<std::uint32_t>(out.m_pieces) - 1 - out.m_piece[i];
        out.m_nextOfNextStep[i] = again ? next[piece] : count + first[piece];
        next[piece] = key[i];
    }
    return out;
}

Result<Residency> AccessTrace::replay(std::span<const int> capByMoment, Eviction eviction, bool cyclic, bool log) const
{
    Residency out;
    const auto count = static_cast<std::uint32_t>(m_piece.size());
    constexpr std::uint32_t away = ~std::uint32_t{0};
    std::vector<std::uint32_t> keyOf(static_cast<std::size_t>(m_pieces), away); // away: not on the device
    std::vector<char> changed(static_cast<std::size_t>(m_pieces));
    const std::size_t keys = 2 * std::size_t{count} + static_cast<std::size_t>(m_pieces) + 1;
    std::vector<int> pieceOf(keys);
    LargestKey held(keys);
    const auto& next = cyclic ? m_nextOfNextStep : m_next;
    int resident = 0;
    std::vector<std::uint32_t> misses;
    for (int moment = 0; moment < moments(); ++moment) {
        const auto at = static_cast<std::size_t>(moment);
        const int cap = capByMoment[capByMoment.size() == 1 ? 0 : at];
        misses.clear();
        for (std::uint32_t i = m_first[at]; i < m_first[at + 1]; ++i) {
            const std::uint32_t key = keyOf[static_cast<std::size_t>(m_piece[i])];
            if (key == away)
                misses.push_back(i);
            else
                held.clear(key); // pinned
        }
        const int needed = static_cast<int>(m_first[at + 1] - m_first[at]);
        if (needed > cap)
            return fail(ErrorCode::Invalid, fmt::format("moment {} needs {} pieces, {} fit", moment, needed, cap));
        Residency::Moment* entry = nullptr;
        const auto noted = [&]() -> Residency::Moment& {
            if (entry == nullptr) entry = &out.log.emplace_back(Residency::Moment{moment, {}, {}});
            return *entry;
        };
        while (resident + static_cast<int>(misses.size()) > cap) {
            const std::uint32_t key = held.largest();
            const auto victim = static_cast<std::size_t>(pieceOf[key]);
            held.clear(key);
            keyOf[victim] = away;
            out.writeBacks += changed[victim];
            changed[victim] = 0;
            ++out.evictions;
            --resident;
            if (log) noted().evicted.push_back(static_cast<int>(victim));
        }
        out.loads += static_cast<std::int64_t>(misses.size());
        resident += static_cast<int>(misses.size());
        if (log)
            for (const std::uint32_t i : misses) noted().loaded.push_back(m_piece[i]);
        for (std::uint32_t i = m_first[at]; i < m_first[at + 1]; ++i) {
            const auto piece = static_cast<std::size_t>(m_piece[i]);
            std::uint32_t key = next[i];
            if (eviction == Eviction::LeastRecent) key = count - 1 - i;
            if (eviction == Eviction::FirstIn) key = keyOf[piece] == away ? count - 1 - i : keyOf[piece];
            keyOf[piece] = key;
            pieceOf[key] = m_piece[i];
            held.set(key);
            changed[piece] = static_cast<char>(changed[piece] | m_writes[i]);
        }
    }
    for (int piece = 0; piece < m_pieces; ++piece) {
        const auto at = static_cast<std::size_t>(piece);
        if (keyOf[at] != away) out.atEnd.push_back(piece);
        if (changed[at]) out.changedAtEnd.push_back(piece);
    }
    return out;
}

} // namespace stagewright
