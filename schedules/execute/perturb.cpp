#include "schedules/execute/perturb.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/execute/jitter.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr const char* forms =
    "write rank=2:1.25, link=1-2:1.0, launch=3:0.2, jitter=0.05, transient=2@3:4 or secret=7, separated by commas";

class Part {
public:
    Part(std::string_view text, int ranks) : m_text(text), m_ranks(ranks) {}

    Result<void> addTo(Perturbation& out) const
    {
        const auto [key, rest] = keyValueOf(m_text);
        if (key == "jitter") return addJitter(rest.value_or(""), out);
        if (key == "secret") return addSecret(rest.value_or(""), out);
        const auto [where, number] = keyValueOf(rest.value_or(""), ':');
        if (!rest || !number) return wrong("is not a disturbance");
        double value = 0;
        if (!readNumber(*number, value) || value < 0 || value > 1e6)
            return wrong("needs a number from 0 to 1000000 after the colon");
        if (key == "link") {
            const auto ends = wholePairOf(where);
            if (!ends || !isRank(ends->first) || !isRank(ends->last) || ends->first == ends->last)
                return wrong(fmt::format("needs two ranks from 0 to {}", m_ranks - 1));
            out.links.push_back({ends->first, ends->last, value});
            return {};
        }
        if (key == "transient") {
            const auto [of, step] = keyValueOf(where, '@');
            Perturbation::Transient transient{0, 1, value};
            if (!step || !readNumber(of, transient.rank) || !isRank(transient.rank))
                return wrong(fmt::format("needs a rank from 0 to {} and a step after @", m_ranks - 1));
            if (!readNumber(*step, transient.step) || transient.step < 1)
                return wrong("needs a step of 1 or more after the @");
            if (value <= 0) return wrong("needs a factor above 0");
            out.transients.push_back(transient);
            return {};
        }
        int of = 0;
        if (key != "rank" && key != "launch") return wrong("is not a disturbance");
        if (!readNumber(where, of) || !isRank(of)) return wrong(fmt::format("needs a rank from 0 to {}", m_ranks - 1));
        if (key == "rank" && value <= 0) return wrong("needs a factor above 0");
        (key == "rank" ? out.ranks : out.launches).emplace_back(of, value);
        return {};
    }

private:
    Result<void> addJitter(std::string_view text, Perturbation& out) const
    {
        double value = 0;
        if (!readNumber(text, value) || !(value > 0 && value <= 2))
            return wrong("needs a number above 0, at most 2, after the =");
        if (out.jitter > 0) return wrong("is the second jitter");
        out.jitter = value;
        return {};
    }
    Result<void> addSecret(std::string_view text, Perturbation& out) const
    {
        int seed = 0;
        if (!readNumber(text, seed) || seed < 0) return wrong("needs a whole number from 0 after the =");
        if (out.secret) return wrong("is the second secret");
        out.secret = seed;
        return {};
    }
    bool isRank(int value) const { return value >= 0 && value < m_ranks; }
    Result<void> wrong(const std::string& what) const
    {
        return fail(ErrorCode::Usage, fmt::format("disturbance '{}': {}", m_text, what), forms);
    }

    std::string_view m_text;
    int m_ranks;
};

std::vector<Nanos> launchOf(const Perturbation& perturbation, int ranks, Nanos unit)
{
    if (perturbation.launches.empty()) return {};
    std::vector<Nanos> launch(static_cast<std::size_t>(ranks), 0);
    for (const auto& [rank, units] : perturbation.launches)
        launch[static_cast<std::size_t>(rank)] += std::llround(units * static_cast<double>(unit));
    return launch;
}

} // namespace

Result<Perturbation> parsePerturbation(std::string_view text, int ranks)
{
    Perturbation out;
    for (const std::string_view part : itemsOf(text, ",|")) STAGEWRIGHT_CHECK(Part(part, ranks).addTo(out));
    return out;
}

std::string toText(const Perturbation& perturbation)
{
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
    for (const auto& [rank, factor] : perturbation.ranks) add(fmt::format("rank={}:{}", rank, factor));
    for (const auto& link : perturbation.links) add(fmt::format("link={}-{}:{}", link.from, link.to, link.units));
    for (const auto& [rank, units] : perturbation.launches) add(fmt::format("launch={}:{}", rank, units));
    if (perturbation.jitter > 0) add(fmt::format("jitter={}", perturbation.jitter));
    for (const auto& transient : perturbation.transients) add(toText(transient));
    if (perturbation.secret) add(fmt::format("secret={}", *perturbation.secret));
    return text;
}

Perturbation revealed(const Perturbation& perturbation, int ranks)
{
    if (!perturbation.secret || ranks < 1) return perturbation;
    Perturbation out = perturbation;
    out.secret.reset();
    auto state = static_cast<std::uint64_t>(*perturbation.secret);
    const auto draw = [&state](std::uint64_t choices) { // SplitMix64
        std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return (z ^ (z >> 31U)) % choices;
    };
    const auto among = static_cast<std::uint64_t>(ranks);
    const std::uint64_t kind = draw(ranks > 1 ? 3 : 2), size = draw(3);
    if (kind == 0)
        out.ranks.emplace_back(static_cast<int>(draw(among)), std::array{1.25, 1.5, 1.75}[size]);
    else if (kind == 1)
        out.launches.emplace_back(static_cast<int>(draw(among)), std::array{0.15, 0.2, 0.3}[size]);
    else {
        const int first = static_cast<int>(draw(among - 1));
        out.links.push_back({first, first + 1, std::array{0.75, 1.0, 1.25}[size]});
    }
    return out;
}

std::string toText(const Perturbation::Transient& transient)
{
    return fmt::format("transient={}@{}:{}", transient.rank, transient.step, transient.factor);
}

Result<void> checkOneStep(const Perturbation& perturbation)
{
    for (const auto& transient : perturbation.transients)
        if (transient.step != 1)
            return fail(ErrorCode::Usage,
                        fmt::format("disturbance '{}': a simulation has step 1 only", toText(transient)),
                        fmt::format("write transient={}@1:{}, or record it", transient.rank, transient.factor));
    return {};
}

double RunPerturbation::factorOf(int rank, int step, const Op& op) const
{
    double factor = slowFactor.empty() ? 1.0 : slowFactor[static_cast<std::size_t>(rank)];
    for (const auto& transient : transients)
        if (transient.rank == rank && transient.step == step + 1) factor *= transient.factor;
    return factor * jitterFactor(jitter, seed, step, op);
}

RunPerturbation runPerturbation(const Perturbation& given, int ranks, Nanos unit, std::uint64_t seed)
{
    const Perturbation perturbation = revealed(given, ranks);
    RunPerturbation out;
    out.transients = perturbation.transients;
    out.jitter = perturbation.jitter;
    out.seed = seed;
    out.launch = launchOf(perturbation, ranks, unit);
    if (perturbation.ranks.empty()) return out;
    out.slowFactor.assign(static_cast<std::size_t>(ranks), 1.0);
    for (const auto& [rank, factor] : perturbation.ranks) out.slowFactor[static_cast<std::size_t>(rank)] *= factor;
    return out;
}

void setLatency(const Perturbation& perturbation, Nanos unit, Links& links)
{
    for (const auto& slow : perturbation.links) {
        const Nanos latency = std::llround(slow.units * static_cast<double>(unit));
        for (const auto& ends : {std::pair(slow.from, slow.to), std::pair(slow.to, slow.from)})
            links.overrides.try_emplace(ends, links.all).first->second.latency = latency;
    }
}

CostModel perturbed(const Schedule& schedule, const CostModel& costs, const Perturbation& given, Nanos unit,
                    std::uint64_t seed)
{
    const Perturbation perturbation = revealed(given, schedule.ranks);
    CostModel out = costs;
    setLatency(perturbation, unit, out.links);
    RunPerturbation run = runPerturbation(perturbation, schedule.ranks, unit, seed);
    if (!run.launch.empty()) out.launch.resize(std::max(out.launch.size(), run.launch.size()), 0);
    for (std::size_t rank = 0; rank < run.launch.size(); ++rank) out.launch[rank] += run.launch[rank];
    if (perturbation.jitter > 0) {
        out.jitter = std::hypot(out.jitter, perturbation.jitter);
        out.jitterSeed = seed;
    }
    run.jitter = 0; // drawn by what is simulated
    for (int rank = 0; rank < schedule.ranks && run.changesDurations(); ++rank) {
        const double factor = run.factorOf(rank, 0, Op());
        if (factor == 1.0) continue;
        for (const int stage : schedule.placement.stagesOf(rank))
            for (std::size_t k = 0; k < allKinds().size(); ++k)
                if (const auto kind = static_cast<OpKind>(k); isCompute(kind))
                    out.scaleOnRank(kind, stage, rank, schedule.placement, factor);
    }
    if (!given.empty()) out.origin += (out.origin.empty() ? "" : ", ") + toText(given); // a secret stays one
    return out;
}

Result<CostModel> withStageLayers(const Schedule& schedule, const CostModel& costs, std::span<const int> layers)
{
    if (layers.size() != static_cast<std::size_t>(schedule.stages))
        return fail(ErrorCode::Usage, fmt::format("{} layer counts for {} stages", layers.size(), schedule.stages),
                    "give one number per stage");
    std::int64_t sum = 0;
    for (const int count : layers) {
        if (count < 0) return fail(ErrorCode::Usage, fmt::format("{} layers on a stage; 0 is the minimum", count));
        sum += count;
    }
    if (sum == 0) return fail(ErrorCode::Usage, "no stage has a layer", "give at least one stage a layer");
    CostModel out = costs;
    std::string text;
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const double factor =
            static_cast<double>(layers[static_cast<std::size_t>(stage)]) * schedule.stages / static_cast<double>(sum);
        text += fmt::format("{}{}", stage == 0 ? "" : ",", layers[static_cast<std::size_t>(stage)]);
        for (std::size_t k = 0; k < allKinds().size(); ++k) {
            const auto kind = static_cast<OpKind>(k);
            if (!isCompute(kind)) continue;
            out.scale(kind, stage, factor);
        }
        if (stage >= costs.stages()) continue;
        StageMemory& memory = out.memory[static_cast<std::size_t>(stage)];
        memory.activation = scaled(memory.activation, factor);
        memory.freedAtInput = scaled(memory.freedAtInput, factor);
    }
    out.origin += fmt::format("{}layers by stage {}", out.origin.empty() ? "" : ", ", text);
    return out;
}

void addLaunch(const Schedule& schedule, std::span<const Nanos> launch, std::vector<Nanos>& durations)
{
    if (launch.empty()) return;
    std::size_t id = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i, ++id) {
            const bool second = i > 0 && schedule.isPaired(static_cast<int>(r), i - 1);
            if (r < launch.size() && isCompute(schedule.order[r][i].kind) && !second) durations[id] += launch[r];
        }
}

void takeLaunch(const Schedule& schedule, std::span<const Nanos> launch, SimResult& result)
{
    if (launch.empty()) return;
    result.span = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        const Nanos delay = r < launch.size() ? launch[r] : 0;
        Nanos first = -1;
        Nanos last = 0;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!isCompute(ops[i].kind)) continue;
            const std::size_t id = result.offsets[r] + i;
            const bool second = i > 0 && schedule.isPaired(static_cast<int>(r), i - 1);
            // An overlapped pair is one interval; a recomputation and its backward follow each other.
            const bool own = second && result.start[id] != result.start[id - 1] - delay;
            if (!own) result.start[id] += delay;
            if (first < 0) first = result.start[id];
            last = result.end[id];
        }
        if (first >= 0) result.span = std::max(result.span, last - first);
    }
}

} // namespace stagewright
