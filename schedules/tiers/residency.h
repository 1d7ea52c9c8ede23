// Pieces of state on a device that holds only some of them: which are loaded and which leave, moment by moment. A
// moment (the work of one layer, say) needs a set of pieces at once; they are pinned while it lasts. Before it, victims
// leave, only as many as its misses need room or the cap shrank; then the misses are loaded. Belady (PatrickStar, arXiv
// 2108.05818, section 8.3) evicts the piece that is needed last: that is the fewest loads of pieces of one size, but
// not the fewest bytes moved where clean copies stay on the host.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

enum class Eviction : std::uint8_t { Belady, LeastRecent, FirstIn };
inline constexpr Eviction evictions[] = {Eviction::Belady, Eviction::LeastRecent, Eviction::FirstIn};
std::string_view toText(Eviction eviction); // "belady", "lru", "fifo"

// By moment: the pieces it needs, and those of them that it changes. Pieces are 0, 1, …; all have one size.
struct Accesses {
    std::vector<std::vector<int>> use, write;
};

struct Residency {
    std::int64_t loads = 0, evictions = 0;
    std::int64_t writeBacks = 0; // evictions of changed pieces
    struct Moment {
        int moment = 0;
        std::vector<int> evicted, loaded;
    };
    std::vector<Moment> log; // moments at which something moved; empty where only counts were asked for
    std::vector<int> atEnd, changedAtEnd;

    std::int64_t moved() const { return loads + evictions; }           // each piece has one place
    std::int64_t movedIfChanged() const { return loads + writeBacks; } // a clean copy stays on the host
};

// Accesses in the form that replays need, made once for any number of caps and policies. O(accesses · log accesses).
class AccessTrace {
public:
    // Usage: a piece below 0 or above a million, one that is written and not used, lists of different lengths.
    static Result<AccessTrace> of(const Accesses& accesses);

    int moments() const { return static_cast<int>(m_first.size()) - 1; }
    int pieces() const { return m_pieces; }
    int widest() const { return m_widest; } // pieces of the moment that needs most

    // capByMoment: pieces that fit, one for each moment, or one for all. The device is empty before the first moment.
    // cyclic: moments repeat, as those of training steps do, so that Belady knows of the next step's first uses.
    // Invalid: a moment needs more than its cap. O(accesses).
    Result<Residency> replay(std::span<const int> capByMoment, Eviction eviction, bool cyclic, bool log = false) const;

private:
    int m_pieces = 0, m_widest = 0;
    std::vector<std::uint32_t> m_first;                  // by moment: its first access
    std::vector<int> m_piece;                            // by access; ascending within a moment
    std::vector<char> m_writes;                          // by access
    std::vector<std::uint32_t> m_next, m_nextOfNextStep; // by access: the piece's rank by its next use (residency.cpp)
};

} // namespace stagewright
