#include "engine/replay.h"

#include <exception>

#include <fmt/format.h>

namespace stagewright {

Replay::Replay(const Schedule& schedule, const TrainingOptions& options, std::unique_ptr<Backend> backend)
    : m_schedule(schedule), m_options(options), m_backend(std::move(backend))
{
    if (!m_options.data) m_options.data = Corpus::builtIn();
}

Result<std::unique_ptr<Replay>> Replay::create(const Schedule& schedule, const TrainingOptions& options,
                                               std::unique_ptr<Backend> backend)
{
    Result<std::vector<StageSlice>> slices = sliceModel(options.model, schedule.stages, options.stageLayers);
    if (!slices) return tl::unexpected(std::move(slices.error()));
    std::unique_ptr<Replay> replay(new Replay(schedule, options, std::move(backend)));
    for (const StageSlice& slice : *slices) {
        Result<std::unique_ptr<StageModel>> stage = replay->m_backend->makeStage(
            options.model, slice, options.microbatchSize, options.seed, options.optimizer, replay->m_allocator);
        if (!stage) return tl::unexpected(std::move(stage.error()).with("one-rank replay"));
        (*stage)->setLossScale(1.0f / static_cast<float>(schedule.microbatches));
        replay->m_stages.push_back(std::move(*stage));
    }
    return replay;
}

bool Replay::hasInputs(const Op& op) const
{
    const bool forward = op.kind == OpKind::Forward;
    if (!forward && op.kind != OpKind::Backward && op.kind != OpKind::InputGrad) return true;
    if (forward ? op.stage == 0 : op.stage + 1 == m_schedule.stages) return true;
    for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
        if (!m_messages.contains({!forward, op.stage, j})) return false;
    }
    return true;
}

Result<double> Replay::step(std::stop_token stop)
{
    const auto take = [this](const MessageKey& key) {
        return std::move(m_messages.extract({key.gradient, key.stage, key.microbatch}).mapped());
    };
    const auto put = [this](const MessageKey& key, Buffer buffer) {
        m_messages.insert_or_assign({key.gradient, key.stage, key.microbatch}, std::move(buffer));
    };
    try {
        m_data.sample(*m_options.data, m_options.seed, m_step, m_schedule.microbatches, m_options.microbatchSize,
                      m_options.model.sequence);
        for (const auto& stage : m_stages)
            stage->zeroGradients();
        std::vector<double> losses(static_cast<std::size_t>(m_schedule.microbatches));
        std::vector<std::size_t> next(m_schedule.order.size(), 0);
        std::size_t left = m_schedule.opCount();
        while (left > 0) {
            const std::size_t before = left;
            for (std::size_t rank = 0; rank < next.size(); ++rank) {
                const std::vector<Op>& list = m_schedule.order[rank];
                while (next[rank] < list.size() && hasInputs(list[next[rank]])) {
                    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "one-rank replay stopped");
                    const Op& op = list[next[rank]++];
                    --left;
                    if (op.kind == OpKind::Filler) continue;
                    StageModel& model = *m_stages[op.stage];
                    executeOp(op, model, m_data, take, put);
                    if (op.kind != OpKind::Forward || !model.slice().last) continue;
                    for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
                        losses[static_cast<std::size_t>(j)] = model.loss(j);
                    }
                }
            }
            if (left == before)
                return fail(ErrorCode::Invalid, fmt::format("one-rank replay: {} ops wait for each other", left));
        }

        m_gradients.clear();
        std::vector<double> squareSums;
        for (const auto& stage : m_stages) {
            std::vector<std::vector<float>>& tensors = m_gradients.emplace_back();
            for (const ParameterView& parameter : stage->parameters()) {
                tensors.emplace_back(parameter.gradient.begin(), parameter.gradient.end());
            }
            squareSums.push_back(stage->gradientSquareSum());
        }
        const float scale = gradientScale(squareSums, m_options.optimizer.clipNorm);
        ++m_step;
        for (const auto& stage : m_stages)
            stage->optimizerStep(m_options.optimizer, m_step, scale);
        double sum = 0;
        for (const double loss : losses)
            sum += loss;
        return sum / static_cast<double>(losses.size());
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, fmt::format("one-rank replay: {}", e.what()));
    }
}

std::vector<std::vector<std::string>> Replay::parameterNames() const
{
    std::vector<std::vector<std::string>> names;
    for (const auto& stage : m_stages) {
        std::vector<std::string>& of = names.emplace_back();
        for (const ParameterView& parameter : stage->parameters())
            of.push_back(parameter.name);
    }
    return names;
}

} // namespace stagewright
