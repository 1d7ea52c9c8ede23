#include "engine/training/thread_communicator.h"

#include <algorithm>

#include "engine/training/rank_communicator.h"
#include "engine/training/training_state.h"

namespace stagewright {

namespace {

class ThreadCommunicator final : public RankCommunicator {
public:
    explicit ThreadCommunicator(TrainingState& state) : m_state(state), m_sums(state.sums.size()) {}

    bool isHere(int) const override { return true; }
    bool meet(int, std::span<const StageSum> sums, std::vector<double>* all, const std::function<void()>& last) override
    {
        // one writer a place; read behind the meeting
        for (const StageSum& one : sums) m_sums[static_cast<std::size_t>(one.place)] = one.sum;
        if (!m_state.control.meet(last)) return false;
        if (all != nullptr) *all = m_sums;
        return true;
    }
    Result<void> agree(std::optional<Error> error) override
    {
        if (error) return tl::unexpected(std::move(*error));
        return {};
    }
    RankRecord flightOf(int rank) override { return m_state.ranks[static_cast<std::size_t>(rank)].flight.record(rank); }

private:
    TrainingState& m_state;
    std::vector<double> m_sums;
};

} // namespace

std::unique_ptr<RankCommunicator> makeThreadCommunicator(TrainingState& state)
{
    return std::make_unique<ThreadCommunicator>(state);
}

std::vector<ParameterView> StageWeights::views()
{
    std::vector<ParameterView> views;
    for (Tensor& tensor : tensors) views.push_back({tensor.name, tensor.shape, tensor.value, tensor.gradient});
    return views;
}

} // namespace stagewright
