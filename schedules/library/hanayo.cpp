// Hanayo (Liu et al. 2023, arXiv 2308.15762): waves. 2W stages per rank in a zigzag, every stage once.
//
// Chunk c is on rank s mod p where c is even and on rank p−1−(s mod p) where it is odd, so that a microbatch runs W
// waves through the ranks and turns without a transfer. The published order is not available; this one is built by
// running the ranks against each other in steps of one forward (B takes two). A rank alternates: after a backward it
// takes a forward if one is ready, of its deepest stage, else the backward that is farthest along, of its least stage.
// It holds the activations of at most p microbatches (3p/2 with two waves or more), and a forward leaves a place for
// each deeper chunk of the rank. So the foremost microbatch is never refused: nobody is deeper, and chunks before its
// own never take the last places.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter hanayoParameters[] = {
    {"waves", "1", "whole", "waves that a microbatch runs through the ranks: 2 × waves stages per rank", "2",
     "{} waves"}};

// The ranks in steps of one chunk forward. Microbatches pass a stage in order, so counts are the whole state.
class Race {
public:
    Race(int ranks, int stages, int microbatches, Schedule& out)
        : m_ranks(ranks), m_stages(stages), m_microbatches(microbatches), m_out(out),
          m_state(static_cast<std::size_t>(stages)), m_running(static_cast<std::size_t>(ranks)),
          m_held(static_cast<std::size_t>(ranks), 0)
    {
        for (int r = 0; r < ranks; ++r) m_stagesOf.push_back(out.placement.stagesOf(r));
    }

    void run()
    {
        const std::size_t total = 2 * static_cast<std::size_t>(m_stages) * static_cast<std::size_t>(m_microbatches);
        std::size_t done = 0;
        while (done < total) {
            for (Running& running : m_running) {
                if (running.left == 0 || --running.left > 0) continue;
                Counts& counts = m_state[static_cast<std::size_t>(running.stage)];
                ++(running.backward ? counts.backwardsDone : counts.forwardsDone);
                if (running.backward) --m_held[static_cast<std::size_t>(&running - m_running.data())];
                ++done;
            }
            for (int r = 0; r < m_ranks; ++r)
                if (m_running[static_cast<std::size_t>(r)].left == 0) pick(r);
        }
    }

private:
    struct Counts {
        int forwardsBegun = 0;
        int forwardsDone = 0;
        int backwardsBegun = 0;
        int backwardsDone = 0;
    };
    struct Running {
        int stage = 0;
        int left = 0;         // steps until it ends; 0: idle
        bool backward = true; // as if one came before the first forward
    };

    bool backwardReady(int stage) const
    {
        const Counts& counts = m_state[static_cast<std::size_t>(stage)];
        return counts.backwardsBegun < counts.forwardsDone &&
               (stage + 1 == m_stages ||
                counts.backwardsBegun < m_state[static_cast<std::size_t>(stage) + 1].backwardsDone);
    }
    bool forwardReady(int stage) const
    {
        const Counts& counts = m_state[static_cast<std::size_t>(stage)];
        if (counts.forwardsBegun == m_microbatches) return false;
        return stage == 0 || counts.forwardsBegun < m_state[static_cast<std::size_t>(stage) - 1].forwardsDone;
    }
    bool hasPlace(int rank, int stage) const
    {
        const int deeper = (m_stages - 1) / m_ranks - stage / m_ranks;
        // p microbatches of 2W chunks are p · 2W = stages
        const int most = m_stages > 2 * m_ranks ? m_stages + m_stages / 2 : m_stages;
        return m_held[static_cast<std::size_t>(rank)] < most - deeper;
    }
    void begin(int rank, int stage, bool backward)
    {
        Counts& counts = m_state[static_cast<std::size_t>(stage)];
        const int microbatch = backward ? counts.backwardsBegun++ : counts.forwardsBegun++;
        m_out.order[static_cast<std::size_t>(rank)].push_back(
            makeOp(backward ? OpKind::Backward : OpKind::Forward, stage, microbatch));
        m_running[static_cast<std::size_t>(rank)] = {stage, backward ? 2 : 1, backward};
        if (!backward) ++m_held[static_cast<std::size_t>(rank)];
    }
    void pick(int rank)
    {
        const auto& mine = m_stagesOf[static_cast<std::size_t>(rank)];
        const auto backward = std::find_if(mine.begin(), mine.end(), [&](int stage) { return backwardReady(stage); });
        const auto forward = std::find_if(mine.rbegin(), mine.rend(),
                                          [&](int stage) { return forwardReady(stage) && hasPlace(rank, stage); });
        const bool forwardNext = backward == mine.end() || m_running[static_cast<std::size_t>(rank)].backward;
        if (forward != mine.rend() && forwardNext) return begin(rank, *forward, false);
        if (backward != mine.end()) return begin(rank, *backward, true);
    }

    int m_ranks;
    int m_stages;
    int m_microbatches;
    Schedule& m_out;
    std::vector<Counts> m_state; // by stage
    std::vector<Running> m_running;
    std::vector<int> m_held;                  // activations of chunks, by rank
    std::vector<std::vector<int>> m_stagesOf; // by rank, ascending
};

Result<Schedule> makeHanayo(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int waves = shape.number("waves", 1);
    const int most = std::min(256, 65536 / (2 * p)); // a stage is a 16-bit number
    if (waves > most)
        return fail(ErrorCode::Usage,
                    fmt::format("hanayo: {} waves over {} ranks; at most {} are possible", waves, p, most),
                    fmt::format("the nearest that works is {} waves", most));
    const int stages = 2 * waves * p;
    Schedule out = draft("hanayo", p, stages, m, Placement::zigzag(p, stages));
    for (auto& ops : out.order) ops.reserve(4 * static_cast<std::size_t>(waves) * static_cast<std::size_t>(m));
    Race(p, stages, m, out).run();
    return out;
}

ClosedForm closedFormHanayo(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (shape.number("waves", 1) == 1 && shape.microbatches == shape.ranks && inputGrad + weightGrad == 2 * forward)
        form.makespan = (5 * shape.ranks - 2) * forward;
    if (shape.ranks == 1) form.peakActivation = {1};
    return form;
}

} // namespace

extern const ScheduleInfo hanayo;
constinit const ScheduleInfo hanayo{
    .name = "hanayo",
    .title = "Hanayo (waves)",
    .summary =
        "1F1B over a zigzag of 2W stages per rank: the bubble of several pipelines without copies of the weights",
    .paper = "Liu et al. 2023, arXiv 2308.15762; the placement is the paper's, the order found by simulation",
    .constraints = "any ranks, any microbatches",
    .formulas = "makespan  (5p-2)F                         (W = 1, m = p, B = 2F)\n"
                "bubble    at most (2p-2)/(3pW+p-1) of the step, the paper's figure, for W <= 3 (m = p, B = 2F)\n"
                "peak      at most p (W = 1 or m <= p), 3p/2 else",
    .drawing = "rank 0 |F0F1F2F3......F0B0- F1B1- F2B2- F3B3- ........B0- ..B1- ....B2- ....B3- |\n"
               "rank 1 |..F0F1F2F3..F0..F1..B0- F2B1- F3B2- ..B3- B0- ..B1- ....B2- ....B3- ....|\n"
               "rank 2 |....F0F1F2F0F3F1..F2..F3B0- ..B1- ..B0- B2- B1- B3- B2- ....B3- ........|\n"
               "rank 3 |......F0F0F1F1F2F2F3F3......B0- B0- B1- B1- B2- B2- B3- B3- ............|\n",
    .aliases = "wave, waves",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeHanayo,
    .closedForm = closedFormHanayo,
    .parameters = hanayoParameters,
};

} // namespace stagewright::library
