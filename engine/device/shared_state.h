// SharedState: a rank's part of a stage's weights, gradients and optimizer state where the ranks that hold the stage share them
// (schedules/model/state_sharding.h). The stage's parameters are one flat vector, in order and padded; what the rank does not own is
// not allocated: weights of other owners are there from a gather to the release (tag Gathered), gradients from the first weight
// gradient until they are handed to their owners. On the host only.
//
//   level        weights          gradients            optimizer
//   none         all              all                  all
//   optimizer    all              all                  owned
//   gradients    all              all for a while,     owned
//                                 sums of owned
//   weights      owned            likewise             owned
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/memory.h"
#include "schedules/model/state_sharding.h"

namespace stagewright {

struct StageShare {
    ShardLevel level = ShardLevel::None;
    FlatState flat;
    int member = 0; // of the ranks that hold the stage, in their order
};

class SharedState {
public:
    // moments: tensors of optimizer state. Everything starts at zero. Throws std::bad_alloc.
    SharedState(const StageShare& share, int stage, int moments, Allocator& allocator);

    // A piece that the rank owns; offset: where it lies among all that it owns, one piece after the other.
    struct Own {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::int64_t offset = 0;
    };
    const StageShare& share() const { return m_share; }
    std::span<const Own> own() const { return m_own; }
    // What its optimizer steps: own(), or everything where nothing is sharded.
    std::span<const Own> stepped() const { return m_stepped; }
    bool shards(ShardLevel what) const { return m_share.level >= what; }

    // All weights; null while they are released.
    float* weights() const { return m_weights.data(); }
    Buffer weightsWindow(std::int64_t begin, std::int64_t end) const; // of all
    void takeWeights();                                               // room for all, the owned ones in it; where they are there, nothing
    void releaseWeights();                                            // only where they are sharded
    float* ownWeights(const Own& own) const;                          // as they are stepped
    Buffer ownWeightsWindow(const Own& own) const;
    void refreshOwn(); // the stepped ones into all weights, where these are there

    // All gradients of this rank; null where they are not.
    float* gradients() const { return m_gradients.data(); }
    Buffer gradientsWindow(std::int64_t begin, std::int64_t end) const;
    void takeGradients();              // zeros, where there are none
    Buffer handOverGradients();        // sharded ones: the caller's from now on
    void zeroGradients();              // those that stay
    float* sums(const Own& own) const; // of the owned pieces, over all ranks

    // What the next optimizer step changes, kept until it is certain: weights and moments of stepped() come back bit for bit. Tag Optimizer.
    void keepStepped();
    void restoreStepped();
    void dropKept();

    // Of stepped(), by their offsets; null: none.
    float* moment(int number) const { return m_moments[static_cast<std::size_t>(number)].data(); }

private:
    Buffer zeros(std::int64_t floats, MemoryCategory category) const;

    StageShare m_share;
    std::uint16_t m_stage;
    Allocator& m_allocator;
    std::vector<Own> m_own;
    std::vector<Own> m_stepped;
    Buffer m_weights;
    Buffer m_ownWeights; // sharded
    Buffer m_gradients;
    Buffer m_sums; // sharded gradients
    Buffer m_moments[2];
    Buffer m_kept[3]; // weights, moments
};

} // namespace stagewright
