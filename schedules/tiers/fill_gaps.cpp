#include "schedules/tiers/fill_gaps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include <fmt/core.h>

namespace stagewright {

namespace {

using Interval = std::pair<Nanos, Nanos>;

constexpr Nanos never = std::numeric_limits<Nanos>::max();

class Filler {
public:
    Filler(std::span<const BusyOp> busy, Nanos step, std::span<const FillerWork> works) : m_step(step), m_works(works)
    {
        Nanos at = 0;
        for (const BusyOp& op : busy) {
            if (op.start > at) m_gaps.emplace_back(at, op.start);
            at = std::max(at, op.end);
            if (op.kind == BusyOp::Kind::Forward) m_forwards[op.of].push_back(op.end);
            if (op.kind == BusyOp::Kind::Backward) m_backwards[op.of].push_back(op.end);
        }
        if (at < step) m_gaps.emplace_back(at, step);
        m_state.next.resize(works.size());
        m_state.ends.resize(works.size());
    }

    FilledGaps run(bool cyclic)
    {
        FilledGaps out;
        Nanos idle = 0, work = 0;
        for (const auto& [start, end] : m_gaps) idle += end - start;
        for (const FillerWork& one : m_works) work += one.duration * one.items;
        out.leastSteps = idle > 0 ? static_cast<int>(std::min<Nanos>((work + idle - 1) / idle, 1'000'000)) : 0;
        while (true) {
            m_state.cursor.emplace_back();
            for (const auto& gap : m_gaps) m_state.cursor.back().push_back(gap.first);
            const std::size_t before = m_state.placed.size();
            walk(out.steps++, false);
            if (done()) break;
            const bool progress = m_state.placed.size() > before;
            if (cyclic) {
                const State saved = m_state;
                for (int step = 0; step < out.steps; ++step) walk(step, true);
                if (done()) break;
                m_state = saved;
            }
            if (!progress && out.steps > 1) break; // every input is there by now
        }
        for (std::size_t w = 0; w < m_works.size(); ++w)
            for (int item = m_state.next[w]; item < m_works[w].items; ++item)
                out.unplaced.emplace_back(static_cast<int>(w), item);
        out.placed = m_state.placed;
        explain(out);
        return out;
    }

private:
    struct State {
        std::vector<int> next;                  // by work: its first piece that has no place
        std::vector<Nanos> ends;                // by work: when its last piece that has one ends
        std::vector<std::vector<Nanos>> cursor; // by step and gap: from when it is free
        std::vector<PlacedPiece> placed;
    };

    bool done() const
    {
        for (std::size_t w = 0; w < m_works.size(); ++w)
            if (m_state.next[w] < m_works[w].items) return false;
        return true;
    }
    // never: an input has no place itself
    Nanos readyAt(const FillerWork& work, int item) const
    {
        if (work.after == FillerWork::After::Works) {
            Nanos at = 0;
            for (const int need : work.needs) {
                const auto n = static_cast<std::size_t>(need);
                if (m_state.next[n] < m_works[n].items) return never;
                at = std::max(at, m_state.ends[n]);
            }
            return at;
        }
        const auto& all = work.after == FillerWork::After::Forwards ? m_forwards : m_backwards;
        const auto found = all.find(work.of);
        if (found == all.end()) return never;
        const auto& ends = found->second;
        return static_cast<std::size_t>(item) < ends.size() ? ends[static_cast<std::size_t>(item)] : never;
    }
    void walk(int step, bool inputsThere)
    {
        for (std::size_t g = 0; g < m_gaps.size(); ++g) {
            const Nanos offset = step * m_step, end = m_gaps[g].second;
            Nanos& cursor = m_state.cursor[static_cast<std::size_t>(step)][g];
            for (bool again = true; again;) {
                again = false;
                for (std::size_t w = 0; w < m_works.size(); ++w)
                    while (m_state.next[w] < m_works[w].items) {
                        const FillerWork& work = m_works[w];
                        const Nanos ready = inputsThere ? 0 : readyAt(work, m_state.next[w]);
                        if (ready == never) break;
                        const Nanos start = std::max(cursor, ready - offset);
                        if (!fits(start, work.duration, end)) break;
                        cursor = start + work.duration;
                        m_state.placed.push_back({step, static_cast<int>(w), m_state.next[w]++, start, cursor});
                        m_state.ends[w] = std::max(m_state.ends[w], offset + cursor);
                        again = true;
                    }
            }
        }
    }
    static bool fits(Nanos start, Nanos duration, Nanos end) { return start * 20 + duration * 21 < end * 20; }

    // What the rest of each gap would have held: the first work in priority that had a piece left when the gap was
    // walked, as far as the pieces' places tell.
    void explain(FilledGaps& out) const
    {
        std::vector<std::vector<std::optional<Nanos>>> places(m_works.size());
        for (std::size_t w = 0; w < m_works.size(); ++w) places[w].resize(static_cast<std::size_t>(m_works[w].items));
        for (const PlacedPiece& piece : out.placed)
            places[static_cast<std::size_t>(piece.work)][static_cast<std::size_t>(piece.item)] =
                piece.step * m_step + piece.start;
        for (int step = 0; step < out.steps; ++step)
            for (std::size_t g = 0; g < m_gaps.size(); ++g) {
                const Nanos start = m_state.cursor[static_cast<std::size_t>(step)][g], end = m_gaps[g].second;
                if (start >= end) continue;
                IdleRest rest{step, start, end, IdleRest::Why::NothingLeft, -1, 0};
                const Nanos now = step * m_step + start;
                for (std::size_t w = 0; w < m_works.size() && rest.why != IdleRest::Why::TooShort; ++w) {
                    const FillerWork& work = m_works[w];
                    const auto later = std::find_if(places[w].begin(), places[w].end(),
                                                    [&](const auto& place) { return !place || *place >= now; });
                    if (later == places[w].end()) continue;
                    const int item = static_cast<int>(later - places[w].begin());
                    Nanos ready = 0;
                    if (work.after == FillerWork::After::Works) {
                        for (const int need : work.needs)
                            for (const auto& place : places[static_cast<std::size_t>(need)])
                                ready = place && ready != never
                                            ? std::max(ready, *place + m_works[static_cast<std::size_t>(need)].duration)
                                            : never;
                    } else {
                        ready = readyAt(work, item);
                    }
                    const bool there = ready <= now;
                    if (!there && rest.work >= 0) continue;
                    rest.work = static_cast<int>(w);
                    rest.why = there ? IdleRest::Why::TooShort : IdleRest::Why::InputMissing;
                    rest.missing = there ? std::max<Nanos>(start + (work.duration * 21 + 19) / 20 + 1 - end, 0) : 0;
                }
                out.idle.push_back(rest);
            }
    }

    Nanos m_step;
    std::span<const FillerWork> m_works;
    std::vector<Interval> m_gaps;
    std::map<int, std::vector<Nanos>> m_forwards, m_backwards; // by stage
    State m_state;
};

} // namespace

Result<FilledGaps> fillGaps(std::span<const BusyOp> busy, Nanos step, std::span<const FillerWork> works, bool cyclic)
{
    Nanos at = 0;
    for (const BusyOp& op : busy) {
        if (op.start < at || op.end < op.start || op.end > step)
            return fail(ErrorCode::Usage, fmt::format("the op from {} to {} overlaps another or leaves the step of {}",
                                                      op.start, op.end, step));
        at = op.end;
    }
    std::int64_t pieces = 0;
    for (std::size_t w = 0; w < works.size(); ++w) {
        const FillerWork& work = works[w];
        if (work.items < 1 || work.duration < 1)
            return fail(ErrorCode::Usage, fmt::format("{}: items and duration are at least 1", work.name));
        for (const int need : work.needs)
            if (need < 0 || need >= static_cast<int>(w))
                return fail(ErrorCode::Usage, fmt::format("{} needs a work that is not before it", work.name));
        pieces += work.items;
    }
    if (pieces > 100'000) return fail(ErrorCode::Usage, fmt::format("{} pieces; at most 100000 are placed", pieces));
    return Filler(busy, step, works).run(cyclic);
}

} // namespace stagewright
