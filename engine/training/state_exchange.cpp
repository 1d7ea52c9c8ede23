#include "engine/training/state_exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/training/gradient_rules.h"
#include "profiler/record/clock.h"

namespace stagewright {

namespace {

MemoryTag bucketTag(int stage) { return {MemoryCategory::Buckets, static_cast<std::uint16_t>(stage), -1}; }

} // namespace

StateExchange::StateExchange(TrainingState& state, int rank, const RankTrace& trace)
    : m_state(state), m_rank(rank), m_run(state.ranks[static_cast<std::size_t>(rank)]),
      m_recorder(state.recorder.rank(rank)), m_trace(trace), m_virtual(state.clock == ClockMode::Virtual)
{
}

void StateExchange::prepare()
{
    for (const int number : m_state.plan.ranks[static_cast<std::size_t>(m_rank)].stages) {
        StageRun& run = m_state.stageOn(number, m_rank);
        if (!run.share) continue;
        Stage& stage = m_stages[number];
        stage.run = &run;
        stage.own = run.share->member;
        for (const StageRun* copy : m_state.copiesOf(number)) stage.members.push_back(copy->rank);
        const auto most =
            static_cast<std::int64_t>(m_state.options.sharding.bucket / static_cast<Bytes>(sizeof(float)));
        const auto& pieces = run.share->flat.pieces;
        const std::int64_t padded = run.share->flat.padded;
        std::vector<ContributedRange> ranges{{0, padded, std::vector<char>(stage.members.size(), 1), 1}};
        if (const auto& cuts = m_state.options.cuts; !cuts.empty())
            ranges =
                contributionsTo(*m_state.schedule, *m_state.options.workload, run.slice, cuts, m_state.shapes, padded);
        for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
            for (const ShardPiece& bucket :
                 bucketsOf(piece->size(), m_state.options.sharding.bucket > 0 ? std::max<std::int64_t>(1, most) : 0))
                for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
                    const std::int64_t begin = std::max(piece->begin + bucket.begin, range->begin);
                    const std::int64_t end = std::min(piece->begin + bucket.end, range->end);
                    if (begin < end)
                        stage.chunks.push_back({piece->owner, begin, end, range->contributes, range->scale});
                }
        for (const Chunk& chunk : stage.chunks)
            if (chunk.owner == stage.own) stage.ownChunks.push_back(chunk);
    }
}

void StateExchange::begin()
{
    if (m_state.transport) m_before = m_state.transport->received(m_rank);
    m_traffic = {};
    m_laneFree = 0;
    for (auto& [number, stage] : m_stages) {
        stage.gathers.clear();
        stage.reductions.clear();
        stage.reduced = 0;
    }
}

void StateExchange::end()
{
    const ReceivedBytes now = m_state.transport->received(m_rank);
    m_traffic.messages = now.messages - m_before.messages;
    m_traffic.gathered = now.weights - m_before.weights;
    m_traffic.reduced = now.gradients - m_before.gradients;
    m_run.traffic = m_traffic;
}

void StateExchange::post(Stage& stage, int member, ControlKey::Kind kind, Buffer message, Nanos& link)
{
    const int to = stage.members[static_cast<std::size_t>(member)];
    const Nanos delay = m_state.options.links.delay(m_rank, to, static_cast<Bytes>(message.size() * sizeof(float)));
    const Nanos now = monotonicNow();
    Nanos availableAt = now;
    if (m_virtual) {
        link += delay;
    } else {
        m_laneFree = availableAt = std::max(now, m_laneFree) + delay;
    }
    m_state.transport->post(to, {kind, static_cast<std::uint16_t>(stage.run->slice.stage), m_rank}, std::move(message),
                            availableAt);
}

bool StateExchange::collect(Stage& stage, int member, ControlKey::Kind kind, std::span<float> to, Taking& taking)
{
    const int from = stage.members[static_cast<std::size_t>(member)];
    m_run.status.set(RankPhase::Copies, stage.run->slice.stage);
    Nanos arrived = 0;
    if (!m_state.transport->collectInto(m_rank, {kind, static_cast<std::uint16_t>(stage.run->slice.stage), from},
                                        m_run.allocator->memory(), to, arrived))
        return false;
    taking.bytes += static_cast<Bytes>(to.size_bytes());
    taking.arrived = std::max(taking.arrived, arrived);
    return true;
}

// From here to the end of the scope a collective takes what has come.
class StateExchange::Timed {
public:
    Timed(const StateExchange& exchange, Taking& taking)
        : m_exchange(exchange), m_range(exchange.m_trace.other()), m_taking(taking), m_before(exchange.workedUntilNow())
    {
        if (taking.begin < 0) taking.begin = exchange.m_recorder.collectiveBegin();
    }
    ~Timed()
    {
        try {
            m_taking.cpu += m_exchange.workedUntilNow() - m_before;
        } catch (const std::exception&) { // of a device that has failed: the next request says it
        }
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    const StateExchange& m_exchange;
    RankTrace::Range m_range;
    Taking& m_taking;
    Nanos m_before;
};

// Processor time or, of a device on the virtual clock, the time that passes until it is done.
Nanos StateExchange::workedUntilNow() const
{
    if (!m_virtual || !m_run.memory) return threadCpuNow();
    m_run.memory->finish();
    return monotonicNow();
}

void StateExchange::record(const Taking& taking)
{
    m_recorder.collectiveTaken(taking.position, taking.arrived, taking.begin, taking.bytes, taking.cpu, taking.link);
}

void StateExchange::gather(int number, int position)
{
    Stage& stage = at(number);
    ++m_traffic.gathers;
    Taking taking;
    taking.position = position;
    const SharedState& state = *stage.run->model->shared();
    const int members = static_cast<int>(stage.members.size());
    for (int k = 1; k < members; ++k) // to the next one first, so that not all send to the same
        for (const SharedState::Own& own : state.own())
            post(stage, (stage.own + k) % members, ControlKey::Kind::Weights, state.ownWeightsWindow(own), taking.link);
    stage.run->model->gatherWeights();
    stage.gathers.push_back(taking);
}

bool StateExchange::takeGather(Stage& stage, Taking& taking)
{
    {
        const Timed timed(*this, taking);
        const SharedState& state = *stage.run->model->shared();
        const int members = static_cast<int>(stage.members.size());
        for (int k = members - 1; k > 0; --k) { // the one before sent here first
            const int member = (stage.own + k) % members;
            for (const ShardPiece& piece : stage.run->share->flat.pieces)
                if (piece.owner == member && !collect(stage, member, ControlKey::Kind::Weights,
                                                      state.weightsPart(piece.begin, piece.end), taking))
                    return false;
        }
    }
    record(taking);
    return true;
}

bool StateExchange::awaitWeights(int number)
{
    const auto found = m_stages.find(number);
    if (found == m_stages.end()) return true;
    Stage& stage = found->second;
    for (; !stage.gathers.empty(); stage.gathers.pop_front())
        if (!takeGather(stage, stage.gathers.front())) return false;
    return true;
}

bool StateExchange::awaitGathers()
{
    return std::all_of(m_stages.begin(), m_stages.end(),
                       [this](const auto& stage) { return awaitWeights(stage.first); });
}

void StateExchange::release(int number) { at(number).run->model->releaseWeights(); }

// Gradients that stay whole leave as views of them, as nothing changes them before the next step; others are handed
// over, cut into messages that are freed one by one as they are taken.
void StateExchange::reduce(int number, int position)
{
    Stage& stage = at(number);
    ++m_traffic.reductions;
    takeWhatHasCome();
    SharedState& state = *stage.run->model->shared();
    Reduction reduction;
    reduction.taking.position = position;
    reduction.first = stage.reduced++ == 0;
    if (!state.shards(ShardLevel::Gradients)) {
        for (const Chunk& chunk : stage.chunks)
            if (chunk.owner != stage.own && chunk.takes(stage.own))
                post(stage, chunk.owner, ControlKey::Kind::WeightGradients,
                     state.gradientsWindow(chunk.begin, chunk.end), reduction.taking.link);
    } else {
        Buffer rest = state.handOverGradients();
        rest.retag(bucketTag(number));
        std::vector<Buffer> parts(stage.chunks.size()); // from the front on: the chunks are in the reverse order
        for (std::size_t i = stage.chunks.size(); i-- > 0;)
            if (rest.size() > stage.chunks[i].size())
                parts[i] = rest.splitOff(stage.chunks[i].size());
            else
                parts[i] = std::exchange(rest, Buffer()); // the last of them
        for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
            if (stage.chunks[i].owner == stage.own)
                reduction.own.push_back(std::move(parts[i]));
            else
                post(stage, stage.chunks[i].owner, ControlKey::Kind::WeightGradients, std::move(parts[i]),
                     reduction.taking.link);
        }
    }
    stage.reductions.push_back(std::move(reduction));
}

// Whether every other contributor's part of the next chunk of the first reduction is here.
bool StateExchange::hasCome(const Stage& stage)
{
    const Chunk& chunk = stage.ownChunks[stage.reductions.front().next];
    for (int member = 0; member < static_cast<int>(stage.members.size()); ++member) {
        const int from = stage.members[static_cast<std::size_t>(member)];
        const ControlKey key{ControlKey::Kind::WeightGradients, static_cast<std::uint16_t>(stage.run->slice.stage),
                             from};
        if (member != stage.own && chunk.takes(member) && !m_state.transport->hasCome(m_rank, key)) return false;
    }
    return true;
}

// Adds the contributors' parts in their order.
bool StateExchange::takeChunk(Stage& stage, Reduction& reduction)
{
    const Timed timed(*this, reduction.taking);
    const Chunk& chunk = stage.ownChunks[reduction.next];
    const std::size_t count = chunk.size();
    SharedState& state = *stage.run->model->shared();
    float* target = nullptr;
    for (const SharedState::Own& own : state.own())
        if (own.begin <= chunk.begin && chunk.end <= own.end) target = state.sums(own) + (chunk.begin - own.begin);
    const float* mine = reduction.own.empty() ? target : reduction.own[reduction.next].data();
    const int number = stage.run->slice.stage;
    const int members = static_cast<int>(stage.members.size());
    const auto first = static_cast<int>(
        std::find_if(chunk.contributes.begin(), chunk.contributes.end(), [](char takes) { return takes != 0; }) -
        chunk.contributes.begin());
    // Where the sum may grow at once: nothing of this rank's own lies there, or its own comes first.
    const bool straight = reduction.first && (!reduction.own.empty() || stage.own == first || !chunk.takes(stage.own));
    Buffer apart = straight ? Buffer() : m_run.allocator->take(count, bucketTag(number));
    float* sum = straight ? target : apart.data();
    Buffer part; // of another member than the first
    for (int member = first; member < members; ++member) {
        if (!chunk.takes(member)) continue;
        if (member == stage.own) {
            if (member > first)
                state.math().add(count, mine, sum);
            else if (mine != sum)
                state.memory().copy(sum, mine, count * sizeof(float));
            continue;
        }
        if (member > first && !part) part = m_run.allocator->take(count, bucketTag(number));
        const std::span<float> into = member == first ? std::span(sum, count) : part.span();
        if (!collect(stage, member, ControlKey::Kind::WeightGradients, into, reduction.taking)) return false;
        if (member > first) state.math().add(count, into.data(), sum);
    }
    if (chunk.scale != 1) state.math().scale(count, chunk.scale, sum);
    if (!straight && reduction.first) state.memory().copy(target, sum, count * sizeof(float));
    if (!straight && !reduction.first) state.math().add(count, sum, target);
    if (!reduction.own.empty()) reduction.own[reduction.next].reset();
    ++reduction.next;
    return true;
}

bool StateExchange::takeReductions(Stage& stage, bool waits, const Arrived& arrived)
{
    std::size_t said = 0;
    const auto say = [&](std::size_t whole) {
        for (; arrived && said < whole; ++said) arrived(stage.ownChunks[said].begin, stage.ownChunks[said].end);
    };
    for (; !stage.reductions.empty(); stage.reductions.pop_front()) {
        Reduction& reduction = stage.reductions.front();
        const bool last = stage.reductions.size() == 1;
        if (last) say(reduction.next);
        while (reduction.next < stage.ownChunks.size()) {
            if (!waits && !hasCome(stage)) return true;
            if (!takeChunk(stage, reduction)) return false;
            if (last) say(reduction.next);
        }
        if (reduction.taking.begin < 0) Timed(*this, reduction.taking); // owns nothing
        if (stage.run->share->level == ShardLevel::None) {              // its sums go to the others first
            if (!waits) return true;
            if (!shareSums(stage, reduction.taking, arrived)) return false;
        }
        record(reduction.taking);
    }
    say(stage.ownChunks.size());
    return true;
}

// All stages, in the order of their reductions, so that buckets are free again while the rank goes back through the
// next stage.
void StateExchange::takeWhatHasCome()
{
    std::vector<Stage*> waiting;
    for (auto& [number, stage] : m_stages)
        if (!stage.reductions.empty()) waiting.push_back(&stage);
    std::sort(waiting.begin(), waiting.end(), [](const Stage* a, const Stage* b) {
        return a->reductions.front().taking.position < b->reductions.front().taking.position;
    });
    for (Stage* stage : waiting) static_cast<void>(takeReductions(*stage, false));
}

bool StateExchange::shareSums(Stage& stage, Taking& taking, const Arrived& arrived)
{
    const Timed timed(*this, taking);
    SharedState& state = *stage.run->model->shared();
    const int members = static_cast<int>(stage.members.size());
    for (int k = 1; k < members; ++k)
        for (const Chunk& chunk : stage.ownChunks)
            post(stage, (stage.own + k) % members, ControlKey::Kind::GradientSums,
                 state.gradientsWindow(chunk.begin, chunk.end), taking.link);
    for (int k = members - 1; k > 0; --k) {
        const int member = (stage.own + k) % members;
        for (const Chunk& chunk : stage.chunks) {
            if (chunk.owner != member) continue;
            if (!collect(stage, member, ControlKey::Kind::GradientSums, {state.gradients() + chunk.begin, chunk.size()},
                         taking))
                return false;
            if (arrived) arrived(chunk.begin, chunk.end);
        }
    }
    return true;
}

bool StateExchange::awaitGradients()
{
    // All sums first: a rank that waited for another's sums of one stage could keep it from summing up a second.
    for (auto& [number, stage] : m_stages)
        for (Reduction& reduction : stage.reductions)
            while (reduction.next < stage.ownChunks.size())
                if (!takeChunk(stage, reduction)) return false;
    return std::all_of(m_stages.begin(), m_stages.end(),
                       [this](auto& stage) { return takeReductions(stage.second, true); });
}

bool StateExchange::awaitGradients(int number) { return awaitGradients(number, {}); }

bool StateExchange::awaitGradients(int number, const Arrived& arrived)
{
    takeWhatHasCome();
    return takeReductions(at(number), true, arrived);
}

} // namespace stagewright
