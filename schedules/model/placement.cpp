#include "schedules/model/placement.h"

#include <algorithm>

namespace stagewright {

Placement Placement::loop(int ranks, int stages)
{
    std::vector<int> rankByStage;
    rankByStage.reserve(static_cast<std::size_t>(std::max(stages, 0)));
    for (int s = 0; s < stages; ++s) rankByStage.push_back(s % ranks);
    return of(rankByStage);
}

Placement Placement::vShape(int ranks)
{
    std::vector<int> rankByStage;
    rankByStage.reserve(2 * static_cast<std::size_t>(std::max(ranks, 0)));
    for (int s = 0; s < 2 * ranks; ++s) rankByStage.push_back(s < ranks ? s : 2 * ranks - 1 - s);
    return of(rankByStage);
}

Placement Placement::zigzag(int ranks, int stages)
{
    std::vector<int> rankByStage;
    rankByStage.reserve(static_cast<std::size_t>(std::max(stages, 0)));
    for (int s = 0; s < stages; ++s) {
        const bool forwards = (s / ranks) % 2 == 0;
        rankByStage.push_back(forwards ? s % ranks : ranks - 1 - s % ranks);
    }
    return of(rankByStage);
}

Placement Placement::bidirectional(int ranks, int microbatches)
{
    std::vector<std::vector<Copy>> copies;
    copies.reserve(static_cast<std::size_t>(std::max(ranks, 0)));
    for (int s = 0; s < ranks; ++s) copies.push_back({{0, s}, {microbatches / 2, ranks - 1 - s}});
    return of(std::move(copies));
}

// Copies are kept in one canonical form (ascending, no two neighbours on one rank), so that equal tables compare equal.
Placement Placement::of(std::vector<std::vector<Copy>> copiesByStage)
{
    Placement out;
    for (auto& copies : copiesByStage) {
        std::stable_sort(copies.begin(), copies.end(),
                         [](const Copy& a, const Copy& b) { return a.firstMicrobatch < b.firstMicrobatch; });
        std::vector<Copy> kept;
        for (const Copy& copy : copies) {
            if (!kept.empty() && kept.back().firstMicrobatch == copy.firstMicrobatch) kept.pop_back();
            if (kept.empty() || kept.back().rank != copy.rank) kept.push_back(copy);
        }
        if (kept.empty()) kept.push_back({0, 0});
        kept.front().firstMicrobatch = 0;
        out.m_copies.push_back(std::move(kept));
    }
    return out;
}

Placement Placement::of(const std::vector<int>& rankByStage)
{
    std::vector<std::vector<Copy>> copies;
    copies.reserve(rankByStage.size());
    for (int rank : rankByStage) copies.push_back({{0, rank}});
    return of(std::move(copies));
}

int Placement::rankOf(int stage, int microbatch) const
{
    const auto& copies = copiesOf(stage);
    if (copies.size() == 1 || microbatch < 0) return copies.front().rank;
    auto after = std::upper_bound(copies.begin(), copies.end(), microbatch,
                                  [](int value, const Copy& copy) { return value < copy.firstMicrobatch; });
    return std::prev(after)->rank;
}

std::vector<int> Placement::stagesOf(int rank) const
{
    std::vector<int> out;
    for (int s = 0; s < stages(); ++s) {
        const auto& copies = copiesOf(s);
        if (std::any_of(copies.begin(), copies.end(), [rank](const Copy& copy) { return copy.rank == rank; }))
            out.push_back(s);
    }
    return out;
}

int Placement::chunkOf(int stage, int rank) const
{
    int chunk = 0;
    for (int s = 0; s < stage; ++s) {
        const auto& copies = copiesOf(s);
        if (std::any_of(copies.begin(), copies.end(), [rank](const Copy& copy) { return copy.rank == rank; })) ++chunk;
    }
    return chunk;
}

bool Placement::hasCopies() const
{
    return std::any_of(m_copies.begin(), m_copies.end(), [](const auto& copies) { return copies.size() > 1; });
}

} // namespace stagewright
