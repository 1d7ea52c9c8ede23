// Schedules damaged at random: ops swapped, removed, doubled, moved to another rank, with another stage, microbatch,
// kind, slice, half or count; pairs, slice lengths and weight rules out of place. Everything follows from the seed.
#pragma once

#include <algorithm>
#include <array>
#include <random>

#include "random_schedules.h"
#include "schedules/model/kinds.h"

namespace stagewright::test {

enum class Damage {
    Swap,
    Remove,
    Double,
    OtherRank,
    Stage,
    Microbatch,
    Kind,
    Slice,
    Half,
    Count,
    Pair,
    Insert,
    Lengths,
    Weights,
    Row,
};
inline constexpr int damageKinds = 15;

// One change. False: nothing there to change.
inline bool damage(Schedule& s, Damage what, std::mt19937& random)
{
    if (s.order.empty()) return false;
    const std::size_t r = random() % s.order.size();
    auto& row = s.order[r];
    if (row.empty() && what != Damage::Insert && what != Damage::Lengths && what != Damage::Weights &&
        what != Damage::Pair)
        return false;
    const std::size_t i = row.empty() ? 0 : random() % row.size();
    const auto at = row.begin() + static_cast<std::ptrdiff_t>(i);
    static constexpr std::array<int, 8> steps{-1, 1, 1, 2, -2, 7, 1000, 60'000};
    switch (what) {
    case Damage::Swap: std::swap(row[i], row[random() % row.size()]); return true;
    case Damage::Remove: row.erase(at); return true;
    case Damage::Double: {
        const Op op = row[i];
        row.insert(row.begin() + static_cast<std::ptrdiff_t>(random() % (row.size() + 1)), op);
        return true;
    }
    case Damage::OtherRank: {
        const Op op = row[i];
        row.erase(at);
        auto& other = s.order[random() % s.order.size()];
        other.insert(other.begin() + static_cast<std::ptrdiff_t>(random() % (other.size() + 1)), op);
        return true;
    }
    case Damage::Stage:
        row[i].stage = static_cast<std::uint16_t>(row[i].stage + steps[random() % steps.size()]);
        return true;
    case Damage::Microbatch:
        row[i].microbatch += random() % 16 == 0 ? 1'000'000'000 : steps[random() % steps.size()];
        return true;
    case Damage::Kind:
        row[i].kind = static_cast<OpKind>(random() % opKindCount);
        if (row[i].microbatch < 0 && random() % 2 == 0) row[i].microbatch = 0;
        return true;
    case Damage::Slice: row[i].slice = static_cast<std::int16_t>(static_cast<int>(random() % 5) - 1); return true;
    case Damage::Half: row[i].half = static_cast<std::uint8_t>(random() % 4); return true;
    case Damage::Count:
        row[i].count = static_cast<std::uint16_t>(random() % 8 == 0 ? 65'535 : random() % 4);
        return true;
    case Damage::Pair:
        s.paired.resize(s.order.size());
        s.paired[r].push_back(static_cast<std::uint32_t>(random() % (row.size() + 2)));
        if (random() % 4 != 0) std::sort(s.paired[r].begin(), s.paired[r].end());
        return true;
    case Damage::Insert: {
        static constexpr std::array<OpKind, 5> kinds{OpKind::Optimizer, OpKind::ReduceGrad, OpKind::Recompute,
                                                     OpKind::Unshard, OpKind::Offload};
        const OpKind kind = kinds[random() % kinds.size()];
        Op op = makeOp(kind, static_cast<int>(random() % static_cast<unsigned>(s.stages)));
        if (ruleOf(kind).takesMicrobatch)
            op.microbatch = static_cast<int>(random() % static_cast<unsigned>(s.microbatches));
        row.insert(row.begin() + static_cast<std::ptrdiff_t>(random() % (row.size() + 1)), op);
        return true;
    }
    case Damage::Lengths:
        s.sliceLengths.assign(random() % 4, 1 + static_cast<std::uint32_t>(random() % 5));
        return true;
    case Damage::Weights: s.weights = static_cast<WeightRule>(random() % 4); return true;
    case Damage::Row: std::shuffle(row.begin(), row.end(), random); return true;
    }
    return false;
}

// One to three changes.
inline Schedule damaged(Schedule schedule, unsigned seed)
{
    std::mt19937 random(seed);
    for (unsigned n = 1 + random() % 3; n > 0; --n)
        damage(schedule, static_cast<Damage>(random() % damageKinds), random);
    return schedule;
}

} // namespace stagewright::test
