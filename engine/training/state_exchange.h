// StateExchange: how the ranks that hold a stage share its state (engine/device/shared_state.h). Pieces travel point to
// point: a collective lets its own go when its op comes and takes the others' only when something needs them, so that
// no rank waits at it.
//   UNSHARD      each owner's weights go to all others; they are taken before the first op that needs them, or at the
//                step's end
//   REDUCE_GRAD  each rank's gradients go to the pieces' owners, in buckets of at most so many bytes; an owner adds
//                what has come at its next REDUCE_GRAD, of whatever stage, the rest before the optimizer, always in the
//                order of ranks; several reductions of a step are added in their order. Where nothing is sharded the
//                sums then go to all.
// Partial backward: only a layer's contributors send its gradients, and each piece has the same ones; the sums go to
// all. On a device all of this is requested, like its ops: copies wait on the device for what they copy, additions for
// the copies. Emulated links: what a rank sends in collectives leaves one message after the other, each latency + bytes
// / bandwidth long: the ring's (n−1)·α + (n−1)·s/BW. On the virtual clock a collective takes that and the processor
// time of its copies and additions. One per rank, on its thread; does nothing where the schedule shares no state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "engine/training/rank_trace.h"
#include "engine/training/training_state.h"

namespace stagewright {

class StateExchange {
public:
    StateExchange(TrainingState& state, int rank, const RankTrace& trace);

    void prepare(); // once the stages are made
    void begin();   // of a step
    void end();     // of a step: what the transport counted

    // The ops; position: in the rank's list. They wait for nothing.
    void gather(int stage, int position);
    void release(int stage); // after awaitWeights()
    void reduce(int stage, int position);

    // Until the stage's newest gather is whole; until all gradients of the rank's stages are summed. False: stopped.
    bool awaitWeights(int stage);
    bool awaitGradients();
    bool awaitGradients(int stage); // of one stage; all its ranks must come to theirs in one order
    // The same, calling arrived(begin, end) for each piece of the stage's flat vector that this rank steps once it is
    // summed, those that are so already first.
    using Arrived = std::function<void(std::int64_t begin, std::int64_t end)>;
    bool awaitGradients(int stage, const Arrived& arrived);
    // At the end of the list: gathers that nothing has needed.
    bool awaitGathers();

private:
    struct Chunk { // of a stage's flat vector, in one message
        int owner = 0;
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::vector<char> contributes; // by member
        float scale = 1;               // of the sum, to be the contributors' mean
        std::size_t size() const { return static_cast<std::size_t>(end - begin); }
        bool takes(int member) const { return contributes[static_cast<std::size_t>(member)] != 0; }
    };
    // What a collective took, for the record.
    struct Taking {
        int position = 0;
        Bytes bytes = 0;
        Nanos arrived = 0;       // the last piece
        std::int64_t begin = -1; // of the copies and additions, as the recorder says it
        Nanos cpu = 0;
        Nanos link = 0; // emulated, on the virtual clock
    };
    struct Reduction {
        Taking taking;
        std::size_t next = 0;    // own chunk to be summed
        std::vector<Buffer> own; // by own chunk; empty: this rank's part lies where the sum goes
        bool first = true;       // of the step
    };
    struct Stage {
        StageRun* run = nullptr;
        std::vector<int> members; // ranks
        int own = 0;
        std::vector<Chunk> chunks; // all, last elements first, as a backward makes them
        std::vector<Chunk> ownChunks;
        std::deque<Taking> gathers;
        std::deque<Reduction> reductions;
        int reduced = 0; // REDUCE_GRAD ops of the step
    };

    Stage& at(int stage) { return m_stages.at(stage); }
    class Timed;
    Nanos workedUntilNow() const;
    void post(Stage& stage, int member, ControlKey::Kind kind, Buffer message, Nanos& link);
    bool collect(Stage& stage, int member, ControlKey::Kind kind, std::span<float> to, Taking& taking);
    bool takeGather(Stage& stage, Taking& taking);
    bool hasCome(const Stage& stage);
    bool takeChunk(Stage& stage, Reduction& reduction);
    bool takeReductions(Stage& stage, bool waits, const Arrived& arrived = {});
    void takeWhatHasCome();
    bool shareSums(Stage& stage, Taking& taking, const Arrived& arrived);
    void record(const Taking& taking);

    TrainingState& m_state;
    int m_rank;
    RankRun& m_run;
    RankRecorder& m_recorder;
    const RankTrace& m_trace;
    bool m_virtual;
    std::map<int, Stage> m_stages; // of this rank
    Nanos m_laneFree = 0;          // of what leaves in collectives
    ReceivedBytes m_before;        // of the step
    RankTraffic m_traffic;
};

} // namespace stagewright
