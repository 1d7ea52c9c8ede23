// SharedState: a rank's part of a stage's weights, gradients and optimizer state where the ranks that hold the stage
// share them (schedules/model/state_sharding.h). The stage's parameters are one flat vector, in order and padded; what
// the rank does not own is not allocated: weights of other owners are there from a gather to the release (tag
// Gathered), gradients from the first weight gradient until they are handed to their owners. In the rank's memory, the
// host's or a device's.
//
//   level        weights          gradients            optimizer
//   none         all              all                  all
//   optimizer    all              all                  owned
//   gradients    all              all for a while,     owned
//                                 sums of owned
//   weights      owned            likewise             owned
//
// Where layers compute with elements of 16 bits, weights are those, and their fp32 masters are where the optimizer's
// state is (tag Weights): a gather moves two bytes an element.
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

// What a stage's shared state needs of the stage's arithmetic, in its memory.
class StateMath {
public:
    virtual ~StateMath() = default;
    // of weights as layers compute with them, 4 or 2
    virtual int elementBytes() const = 0;
    virtual void add(std::size_t count, const float* x, float* sum) = 0; // sum += x
    virtual void scale(std::size_t count, float factor, float* x) = 0;   // x *= factor
    // rounded as a stage rounds its masters
    virtual void toElements(std::size_t count, const float* values, void* elements) const = 0;
};

class SharedState {
public:
    // moments: tensors of optimizer state. Everything starts at zero. Throws std::bad_alloc. math outlives it.
    SharedState(const StageShare& share, int stage, int moments, Allocator& allocator, StateMath& math);

    // A piece that the rank owns; offset: where it lies among all that it owns, one piece after the other.
    struct Own {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::int64_t offset = 0;
        std::int64_t size() const { return end - begin; }
    };
    const StageShare& share() const { return m_share; }
    Memory& memory() const { return m_allocator.memory(); }
    StateMath& math() const { return m_math; }
    std::span<const Own> own() const { return m_own; }
    // What its optimizer steps: own(), or everything where nothing is sharded.
    std::span<const Own> stepped() const { return m_stepped; }
    bool shards(ShardLevel what) const { return m_share.level >= what; }
    // Whether fp32 values of all weights are here, gathered or not: else steppedValues() has those of the owned pieces.
    bool hasAllValues() const
    {
        return shards(ShardLevel::Weights) ? false : !isBf16() || !shards(ShardLevel::Optimizer);
    }

    // Initial values from element `begin` on; of sharded weights inside one owned piece.
    void start(std::int64_t begin, std::span<const float> values);

    // All weights, as elements; null while they are released.
    void* weights(std::int64_t begin) const;
    std::span<float> weightsPart(std::int64_t begin, std::int64_t end) const; // the floats in which they lie
    // of all in fp32; empty where they are not all here
    Buffer valuesWindow(std::int64_t begin, std::int64_t end) const;
    // room for all, the owned ones in it; where they are there, nothing
    void takeWeights();
    void releaseWeights(); // only where they are sharded
    // fp32: what the optimizer changes, of stepped()
    float* stepsOn(const Own& own) const;
    // the elements that follow it; null: it is what layers compute with
    void* elementsFor(const Own& own) const;
    Buffer ownWeightsWindow(const Own& own) const; // as they are gathered
    // the stepped ones into all weights, where these are there
    void refreshOwn();
    // fp32, on the host, one piece of stepped() after the other
    std::vector<float> steppedValues() const;

    // All gradients of this rank; null where they are not.
    float* gradients() const { return m_gradients.data(); }
    Buffer gradientsWindow(std::int64_t begin, std::int64_t end) const;
    void takeGradients();                  // zeros, where there are none
    Buffer handOverGradients();            // sharded ones: the caller's from now on
    void zeroGradients();                  // those that stay
    float* sums(const Own& own) const;     // of the owned pieces, over all ranks
    std::vector<float> sumsOnHost() const; // of all owned pieces, one after the other

    // What the next optimizer step changes, kept until it is certain: weights and moments of stepped() come back bit
    // for bit. Tag Optimizer.
    void keepStepped();
    void restoreStepped();
    void dropKept();

    // The moments of the pieces in stepped(), at their offsets; null: none.
    float* moment(int number) const { return m_moments[static_cast<std::size_t>(number)].data(); }

private:
    bool isBf16() const { return m_math.elementBytes() < static_cast<int>(sizeof(float)); }
    // Floats in which so many elements lie; pieces are whole ones.
    std::size_t words(std::int64_t elements) const;
    Buffer zeros(std::size_t floats, MemoryCategory category) const;

    StageShare m_share;
    std::uint16_t m_stage;
    Allocator& m_allocator;
    StateMath& m_math;
    std::vector<Own> m_own;
    std::vector<Own> m_stepped;
    Buffer m_weights;    // elements
    Buffer m_ownWeights; // likewise, sharded
    Buffer m_masters;    // of stepped(), where elements are bf16
    Buffer m_gradients;
    Buffer m_sums; // sharded gradients
    Buffer m_moments[2];
    Buffer m_kept[3]; // weights, moments
};

} // namespace stagewright
