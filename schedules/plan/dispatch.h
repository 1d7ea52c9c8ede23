// List scheduling within windows: of the passes that a rank may take, the one that must start first. It seldom finds an
// order where windows are tight and wide apart, but costs less than solving the relaxation once. Internal to
// schedules/plan.
#pragma once

#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

// Buffers are kept between calls; one thread at a time.
class Dispatcher {
public:
    // Both must outlive it.
    Dispatcher(const Pipeline& pipeline, const RankRelaxation& relaxation);

    // True: words() go from the first to the last state of every rank's windows through states that are alive, and
    // every pass ends in time.
    bool run(const Windows& windows);
    const Words& words() const { return m_words; }

private:
    struct Rank {
        Nanos clock = 0;
        Nanos wake = 0; // when it decides next; never: when a pass has begun that it may wait for
        int state = 0;
    };
    bool decide(int r, const Windows& windows);                    // false: something comes too late
    Nanos arrival(int stage, int microbatch, bool gradient) const; // never: not known yet
    void perform(int r, Letter letter, int to);

    const Pipeline& m_pipeline;
    const RankRelaxation& m_relaxation;
    std::vector<Rank> m_ranks;
    std::vector<Nanos> m_end[2];           // of forwards and gradients, by stage × microbatch
    std::vector<std::vector<int>> m_alive; // by rank and state: the run in which it was alive last
    int m_run = 0;
    Words m_words;
};

} // namespace stagewright::planning
