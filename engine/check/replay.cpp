#include "engine/check/replay.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "engine/training/gradient_rules.h"

namespace stagewright {

Replay::Replay(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
               std::unique_ptr<Backend> backend)
    : m_schedule(computeOf(checked)), m_options(options), m_backend(std::move(backend))
{
}

Result<std::unique_ptr<Replay>> Replay::create(const std::shared_ptr<const CheckedSchedule>& checked,
                                               const TrainingOptions& options, std::unique_ptr<Backend> backend)
{
    const Schedule& schedule = checked->compute();
    std::unique_ptr<Replay> replay(new Replay(checked, options, std::move(backend)));
    STAGEWRIGHT_TRY(ExecutionPlan plan, planExecution(*checked));
    replay->m_plan = std::move(plan);
    STAGEWRIGHT_TRY(std::vector<int> tokens, sliceTokens(schedule, options.workload->positions()));
    replay->m_shapes = BatchShapes(schedule,
                                   {options.microbatchSize, options.workload->positions(),
                                    messageWidth(*options.workload, *replay->m_backend), std::move(tokens)},
                                   options.replicaSamples);
    Result<std::unique_ptr<Memory>> memory = replay->m_backend->openMemory(0, 1, 1);
    if (!memory) return tl::unexpected(std::move(memory.error()).with("one-rank replay"));
    replay->m_memory = std::move(*memory);
    replay->m_allocator = std::make_unique<Allocator>(replay->m_memory ? *replay->m_memory : hostMemory());
    STAGEWRIGHT_CHECK(replay->makeStages());
    return replay;
}

Result<void> Replay::makeStages()
{
    STAGEWRIGHT_TRY(std::vector<StageSlice> slices,
                    slicesOf(*m_options.workload, m_schedule->stages, m_options.stageLayers));
    for (const StageSlice& slice : slices) {
        for (int rank = 0; rank < m_schedule->ranks; ++rank) {
            const std::vector<int>& stages = m_plan.ranks[static_cast<std::size_t>(rank)].stages;
            if (!std::binary_search(stages.begin(), stages.end(), slice.stage)) continue;
            Result<std::unique_ptr<StageModel>> stage =
                makeStage(*m_options.workload, *m_backend,
                          {slice, m_shapes.ofRank(rank).batch, m_options.seed, m_options.optimizer}, *m_allocator);
            if (!stage) return tl::unexpected(std::move(stage.error()).with("one-rank replay"));
            (*stage)->setLossScale(m_shapes.lossScale(*m_schedule, rank));
            if (!m_options.cuts.empty())
                (*stage)->setBackwardFrom(m_options.cuts[static_cast<std::size_t>(m_schedule->replicaOf(rank))]);
            if (const auto& cut = m_shapes.ofRank(rank).sliceTokens; !cut.empty()) (*stage)->setSlices(cut);
            if (m_options.recomputedLayers) {
                (*stage)->setRecomputedLayers(m_options.recomputedLayers->first, m_options.recomputedLayers->second);
            }
            m_copies.push_back({slice, rank, std::move(*stage), {}});
        }
    }
    return {};
}

Replay::Copy& Replay::copyOn(int stage, int rank)
{
    const auto found = std::find_if(m_copies.begin(), m_copies.end(),
                                    [&](const Copy& copy) { return copy.slice.stage == stage && copy.rank == rank; });
    return *found;
}

bool Replay::hasInputs(const RankPlan& plan, const PlannedOp& planned) const
{
    const auto inputs = plan.inputsOf(planned);
    return std::all_of(inputs.begin(), inputs.end(),
                       [this](const PlannedMessage& input) { return m_messages.contains(input.key); });
}

void Replay::run(int rank, const PlannedOp& planned, OpExecution& execution, std::vector<double>& losses)
{
    if (isReduction(planned.op.kind) && hasMicrobatch(planned.op)) {
        Copy& copy = copyOn(planned.op.stage, rank);
        copyGradients(*copy.model, copy.reduced.emplace_back(gradientCount(*copy.model)));
        copy.model->zeroGradients();
    }
    if (planned.partCount == 0) return; // other reductions and steps come at the end
    StageModel& model = *copyOn(planned.op.stage, rank).model;
    execution.run(
        m_plan.ranks[static_cast<std::size_t>(rank)], planned, model,
        [this](const PlannedMessage& message) { return std::move(m_messages.extract(message.key).mapped()); },
        [this](const PlannedMessage& message, Buffer buffer) {
            m_messages.insert_or_assign(message.key, std::move(buffer));
        });
    if (!isForward(planned.op.kind) || !model.slice().last) return;
    for (const PlannedPart& part : m_plan.ranks[static_cast<std::size_t>(rank)].partsOf(planned))
        losses[static_cast<std::size_t>(part.part.microbatch)] +=
            m_shapes.ofRank(rank).shareOf(part.part) * model.loss(part.part);
}

Result<double> Replay::step(const std::stop_token& stop)
{
    try {
        m_data.sample(*m_options.workload, m_options.seed, m_step, m_schedule->microbatches, m_shapes);
        for (Copy& copy : m_copies) {
            copy.model->zeroGradients();
            copy.reduced.clear();
        }
        std::vector<OpExecution> executions;
        for (std::size_t rank = 0; rank < m_plan.ranks.size(); ++rank)
            executions.emplace_back(m_shapes.ofRank(static_cast<int>(rank)), m_data, *m_allocator);
        std::vector<double> losses(static_cast<std::size_t>(m_schedule->microbatches), 0.0);
        std::vector<std::size_t> next(m_schedule->order.size(), 0);
        std::size_t left = m_schedule->opCount();
        while (left > 0) {
            const std::size_t before = left;
            for (std::size_t rank = 0; rank < next.size(); ++rank) {
                const RankPlan& plan = m_plan.ranks[rank];
                while (next[rank] < plan.ops.size() && hasInputs(plan, plan.ops[next[rank]])) {
                    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "one-rank replay stopped");
                    run(static_cast<int>(rank), plan.ops[next[rank]++], executions[rank], losses);
                    --left;
                }
            }
            if (left == before)
                return fail(ErrorCode::Invalid, fmt::format("one-rank replay: {} ops wait for each other", left));
        }
        sumAndStep();
        return m_shapes.meanOf(losses);
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, fmt::format("one-rank replay: {}", e.what()));
    }
}

// Each reduction over the copies in their order, one after the other.
std::vector<float> Replay::sumOfReductions(std::size_t first, std::size_t end) const
{
    std::vector<float> total;
    for (std::size_t reduction = 0; reduction < m_copies[first].reduced.size(); ++reduction) {
        std::vector<float> sum = m_copies[first].reduced[reduction];
        for (std::size_t copy = first + 1; copy < end; ++copy)
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += m_copies[copy].reduced[reduction][i];
        if (total.empty())
            total = std::move(sum);
        else
            for (std::size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
    }
    return total;
}

// Element by element, of the copies that went back to it.
std::vector<float> Replay::meanOfContributors(const StageSlice& slice,
                                              const std::vector<std::vector<float>>& parts) const
{
    std::vector<float> mean(parts.front().size(), 0.0F);
    for (const ContributedRange& range : contributionsTo(*m_schedule, *m_options.workload, slice, m_options.cuts,
                                                         m_shapes, static_cast<std::int64_t>(mean.size())))
        for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
            bool first = true;
            for (std::size_t copy = 0; copy < parts.size(); ++copy) {
                if (range.contributes[copy] == 0) continue;
                mean[i] = std::exchange(first, false) ? parts[copy][i] : mean[i] + parts[copy][i];
            }
            if (range.scale != 1) mean[i] *= range.scale;
        }
    return mean;
}

void Replay::sumAndStep()
{
    m_gradients.clear();
    std::vector<double> squareSums;
    for (std::size_t first = 0; first < m_copies.size();) {
        std::size_t end = first;
        std::vector<std::vector<float>> parts;
        for (; end < m_copies.size() && m_copies[end].slice.stage == m_copies[first].slice.stage; ++end) {
            if (!m_copies[end].reduced.empty()) continue;
            parts.emplace_back(gradientCount(*m_copies[end].model));
            copyGradients(*m_copies[end].model, parts.back());
        }
        if (parts.empty()) parts.push_back(sumOfReductions(first, end));
        if (!m_options.cuts.empty()) parts = {meanOfContributors(m_copies[first].slice, parts)};
        const std::vector<std::span<const float>> spans(parts.begin(), parts.end());
        for (std::size_t i = first; i < end; ++i) sumGradients(*m_copies[i].model, spans);
        std::vector<std::vector<float>>& tensors = m_gradients.emplace_back();
        for (const ParameterView& parameter : m_copies[first].model->parameters())
            tensors.emplace_back(parameter.gradient.begin(), parameter.gradient.end());
        squareSums.push_back(m_copies[first].model->gradientSquareSum());
        first = end;
    }
    const Verdict verdict = judgeGradients(squareSums, m_options.optimizer.clipNorm);
    ++m_step;
    for (const Copy& copy : m_copies) {
        if (!verdict.skip) copy.model->optimizerStep(m_options.optimizer, m_step, verdict.scale);
    }
}

void Replay::takeWeights(const std::map<std::string, std::span<const float>>& byName)
{
    for (const Copy& copy : m_copies) {
        for (const ParameterView& parameter : copy.model->parameters()) {
            const std::span<const float> from = byName.at(parameter.name);
            std::copy_n(from.begin(), std::min(from.size(), parameter.value.size()), parameter.value.begin());
        }
        copy.model->parametersWritten();
    }
}

std::vector<ParameterView> Replay::parameters(int stage) const
{
    const auto found =
        std::find_if(m_copies.begin(), m_copies.end(), [stage](const Copy& copy) { return copy.slice.stage == stage; });
    return found->model->parameters();
}

std::vector<std::vector<std::string>> Replay::parameterNames() const
{
    std::vector<std::vector<std::string>> names;
    int last = -1;
    for (const Copy& copy : m_copies) {
        if (copy.slice.stage == last) continue;
        last = copy.slice.stage;
        std::vector<std::string>& of = names.emplace_back();
        for (const ParameterView& parameter : copy.model->parameters()) of.push_back(parameter.name);
    }
    return names;
}

} // namespace stagewright
