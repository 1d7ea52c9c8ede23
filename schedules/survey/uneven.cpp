#include "schedules/survey/uneven.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "schedules/survey/state.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

constexpr std::int64_t wholeState = 1'000'000; // shares are millionths
constexpr double mostSpeedOf = 1000;

Bytes deviceMemory(const std::string& name)
{
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == name) return static_cast<Bytes>(preset.memory);
    return 0;
}

// Layer by layer over so many microbatches, a stage for each layer.
Result<Schedule> layerWise(int layers, int microbatches, bool recompute)
{
    auto schedule = makeSchedule("bfs", Shape(1, microbatches, layers));
    if (!schedule || !recompute) return schedule;
    return withRecompute(*schedule, std::vector<bool>(static_cast<std::size_t>(layers), true));
}

struct MixedModel {
    AnalyticCosts analytic;
    int layers = 0;

    Result<CostModel> costs(const Schedule& schedule, const MixedQuestion& question) const
    {
        auto out = analyticCosts(schedule, analytic);
        if (!out) return out;
        if (question.bytesPerSecond > 0) out->links.all.bytesPerSecond = question.bytesPerSecond;
        out->links.collectives = ResourceUse::Beside;
        out->sharding.level = ShardLevel::Weights;
        return out;
    }
};

const ShardRules mixedRules{GatherRule::Batch, 1, ReduceRule::Overlapped};

Bytes peakOf(const Timeline& timeline, int rank)
{
    Bytes now = 0, most = 0;
    const auto events = timeline.memoryOf(rank);
    for (std::size_t i = 0; i < events.size(); ++i) {
        now += events[i].delta;
        if (i + 1 < events.size() && events[i + 1].time == events[i].time) continue; // after all changes of a moment
        most = std::max(most, now);
    }
    return most;
}

Bytes stateOf(const CostModel& costs)
{
    return std::accumulate(costs.memory.begin(), costs.memory.end(), Bytes{0}, [](Bytes sum, const StageMemory& stage) {
        return sum + stage.weight + stage.gradient + stage.optimizer;
    });
}

// What a rank holds at its peak besides its part of the state, by samples from 1: the peak of one that owns nothing of
// it, which gathers most.
Result<std::vector<Bytes>> besideState(const MixedModel& model, const MixedQuestion& question, const Progress& progress)
{
    std::vector<Bytes> out(1, 0);
    for (int samples = 1; samples <= question.batch && !progress.stop.stop_requested(); ++samples) {
        auto schedule = layerWise(model.layers, samples, question.recompute);
        if (schedule) schedule = addShardOps(*schedule, ShardLevel::Weights, mixedRules);
        if (!schedule) return tl::unexpected(std::move(schedule.error()));
        STAGEWRIGHT_TRY(auto costs, model.costs(*schedule, question));
        costs.replicas = static_cast<int>(question.speeds.size());
        costs.sharding.by = ShardBy::Shares;
        costs.sharding.shares.assign(question.speeds.size(), {0, 1});
        costs.sharding.shares.back() = {1, 1};
        CollectiveCosts collectives;
        collectives.within = costs.links.all;
        setCollectiveTimes(costs, *schedule, collectives);
        STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
        out.push_back(std::max(out.back(), peakOf(*timeline, 0))); // more samples never need less
    }
    return out;
}

Result<MixedDivision> simulatedDivision(const MixedModel& model, const MixedQuestion& question,
                                        const std::vector<int>& samples, const std::vector<std::int64_t>& shares,
                                        Bytes state)
{
    std::vector<Schedule> each;
    for (const int microbatches : samples) {
        STAGEWRIGHT_TRY(auto one, layerWise(model.layers, microbatches, question.recompute));
        each.push_back(std::move(one));
    }
    auto schedule = overReplicas(each);
    if (schedule) schedule = addShardOps(*schedule, ShardLevel::Weights, mixedRules);
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    STAGEWRIGHT_TRY(auto costs, model.costs(*schedule, question));
    costs.sharding.by = ShardBy::Shares;
    for (const std::int64_t part : shares) costs.sharding.shares.push_back({part, wholeState});
    CollectiveCosts collectives;
    collectives.within = costs.links.all;
    setCollectiveTimes(costs, *schedule, collectives);
    for (int rank = 0; rank < schedule->ranks; ++rank)
        for (int stage = 0; stage < schedule->stages; ++stage)
            for (std::size_t k = 0; k < allKinds().size(); ++k)
                if (const auto kind = static_cast<OpKind>(k); isCompute(kind) || isOptimizer(kind))
                    costs.scaleOnRank(kind, stage, rank, schedule->placement,
                                      1 / question.speeds[static_cast<std::size_t>(rank)]);
    STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
    MixedDivision out;
    out.step = timeline->end() - timeline->begin();
    for (std::size_t i = 0; i < samples.size(); ++i) {
        MixedRank rank;
        rank.samples = samples[i];
        rank.share = static_cast<double>(shares[i]) / wholeState;
        rank.memory = question.memoryOf(i);
        rank.peak = peakOf(*timeline, static_cast<int>(i));
        rank.limit = rank.share + static_cast<double>(rank.memory - rank.peak) / static_cast<double>(state);
        for (const Op& op : schedule->order[i])
            if (isCompute(op.kind)) rank.compute += costs.duration(op, static_cast<int>(i));
        out.ranks.push_back(rank);
    }
    return out;
}

// Shares of the state, in millionths: what fits beside the rest, a little below, as pieces are rounded to elements
// layer by layer.
std::vector<std::int64_t> roomBeside(const MixedQuestion& question, const std::vector<int>& samples,
                                     const std::vector<Bytes>& beside, Bytes state)
{
    std::vector<std::int64_t> limits;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double room = static_cast<double>(question.memoryOf(i) - beside[static_cast<std::size_t>(samples[i])]) /
                            static_cast<double>(state);
        limits.push_back(static_cast<std::int64_t>(std::floor(std::clamp(room - 1e-5, 0.0, 1.0) * wholeState)));
    }
    return limits;
}

// The samples of each rank if none takes longer than `time`; empty: fewer than the batch, or more ranks than samples.
std::vector<int> samplesWithin(double time, const MixedQuestion& question, const std::vector<int>& most)
{
    std::vector<int> out;
    int left = -question.batch;
    for (std::size_t i = 0; i < most.size(); ++i) {
        out.push_back(std::clamp(static_cast<int>(std::floor(time * question.speeds[i] + 1e-9)), 1, most[i]));
        left += out.back();
    }
    for (; left > 0; --left) {
        std::size_t longest = most.size();
        for (std::size_t i = 0; i < most.size(); ++i)
            if (out[i] > 1 &&
                (longest == most.size() || out[i] / question.speeds[i] > out[longest] / question.speeds[longest]))
                longest = i;
        if (longest == most.size()) return {};
        --out[longest];
    }
    return left < 0 ? std::vector<int>() : out;
}

// The state levelled into the room beside the activations, then simulated: a rank that waits for slower ones holds more
// gradients than one among its like, so what is over a memory then is moved to the others, a few times.
constexpr int mostMoves = 6;
std::optional<MixedDivision> fittedDivision(const MixedModel& model, const MixedQuestion& question,
                                            const std::vector<int>& samples, const std::vector<Bytes>& beside,
                                            Bytes state)
{
    std::vector<std::int64_t> limits = roomBeside(question, samples, beside, state);
    for (int move = 0; move < mostMoves; ++move) {
        const std::vector<std::int64_t> shares = levelled(limits, wholeState);
        if (shares.empty()) return {};
        auto division = simulatedDivision(model, question, samples, shares, state);
        if (!division) return {};
        if (division->fits()) return std::move(*division);
        for (std::size_t i = 0; i < samples.size(); ++i)
            if (const MixedRank& rank = division->ranks[i]; rank.over())
                limits[i] = std::max<std::int64_t>(
                    0, std::min(shares[i], static_cast<std::int64_t>(std::floor(rank.limit * wholeState))) - 1);
    }
    return {};
}

std::optional<MixedDivision> decoupledDivision(const MixedModel& model, const MixedQuestion& question,
                                               const std::vector<Bytes>& beside, Bytes state, const Progress& progress)
{
    std::vector<int> most(question.speeds.size(), 0);
    std::vector<double> times; // that a rank's samples can take, in samples of speed 1
    for (std::size_t i = 0; i < most.size(); ++i)
        for (int n = 1; n <= question.batch && beside[static_cast<std::size_t>(n)] <= question.memoryOf(i); ++n) {
            most[i] = n;
            times.push_back(n / question.speeds[i]);
        }
    if (std::any_of(most.begin(), most.end(), [](int n) { return n < 1; })) return {};
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    std::vector<int> before;
    for (const double time : times) {
        if (progress.stop.stop_requested()) return {};
        std::vector<int> samples = samplesWithin(time, question, most);
        if (samples.empty() || samples == before) continue;
        if (auto division = fittedDivision(model, question, samples, beside, state)) return division;
        before = std::move(samples);
    }
    return {};
}

std::vector<std::int64_t> sharesBy(const std::vector<double>& weights)
{
    const std::vector<int> parts = dividedBy(weights, static_cast<int>(wholeState), 0);
    return {parts.begin(), parts.end()};
}

} // namespace

std::string titleOf(MixedRule rule)
{
    switch (rule) {
    case MixedRule::Even: return "Even";
    case MixedRule::BySpeed: return "Both by speed";
    case MixedRule::Decoupled: return "Decoupled";
    }
    return {};
}

Result<MixedQuestion> MixedQuestion::of(const SurveyQuestion& question)
{
    MixedQuestion out;
    out.model = question.text("model");
    out.device = question.text("device");
    STAGEWRIGHT_TRY(out.speeds, parseMixedSpeeds(question.text("speeds")));
    STAGEWRIGHT_TRY(out.memory, parseMixedMemory(question.text("memory"), out.speeds.size()));
    out.batch = question.whole("batch");
    out.recompute = question.on("recompute");
    out.bytesPerSecond = question.real("link") * 1e9;
    return out;
}

std::string MixedQuestion::setup() const
{
    return fmt::format("Simulated: {}, speeds in multiples of {}, {} samples a step.", model, device, batch);
}

Bytes MixedQuestion::memoryOf(std::size_t rank) const
{
    if (memory.empty()) return deviceMemory(device);
    return memory.size() == 1 ? memory.front() : memory[rank];
}

double MixedQuestion::speedShare(std::size_t rank) const
{
    return speeds[rank] / std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

bool MixedDivision::fits() const
{
    return good() && std::none_of(ranks.begin(), ranks.end(), [](const MixedRank& rank) { return rank.over(); });
}

Result<std::vector<double>> parseMixedSpeeds(std::string_view text)
{
    std::vector<double> out;
    for (const std::string_view item : split(text, ",")) {
        const auto speed = numberOf(trimmed(item));
        if (!speed || *speed <= 0 || *speed > mostSpeedOf)
            return fail(ErrorCode::Usage, fmt::format("speeds: '{}' is not a speed", trimmed(item)),
                        "give numbers above 0, such as 3,2,1");
        out.push_back(*speed);
    }
    if (out.size() < 2 || out.size() > mostMixedRanks)
        return fail(ErrorCode::Usage,
                    fmt::format("speeds: {} given, 2 to {} ranks can share", out.size(), mostMixedRanks),
                    "give one for each rank, such as 3,2,1");
    return out;
}

Result<std::vector<Bytes>> parseMixedMemory(std::string_view text, std::size_t ranks)
{
    std::vector<Bytes> out;
    if (trimmed(text).empty()) return out;
    for (const std::string_view item : split(text, ",")) {
        const auto size = numberOf(trimmed(item));
        if (!size || *size <= 0 || *size > 1e6)
            return fail(ErrorCode::Usage, fmt::format("memory: '{}' is not a size in GB", trimmed(item)),
                        "give numbers above 0, such as 40,48,64");
        out.push_back(static_cast<Bytes>(std::llround(*size * 1e9)));
    }
    if (out.size() != 1 && out.size() != ranks)
        return fail(ErrorCode::Usage, fmt::format("memory: {} sizes for {} ranks", out.size(), ranks),
                    "give one for each rank, or one for all");
    return out;
}

std::vector<int> dividedBy(const std::vector<double>& weights, int total, int least)
{
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int> out;
    std::vector<std::pair<double, std::size_t>> rest; // of the exact part, and whose
    int left = total;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double exact = total * weights[i] / all;
        out.push_back(std::max(least, static_cast<int>(std::floor(exact + 1e-9))));
        rest.emplace_back(exact - out.back(), i);
        left -= out.back();
    }
    std::stable_sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t k = 0; left > 0; ++k, --left) ++out[rest[k % rest.size()].second];
    for (; left < 0; ++left) --*std::max_element(out.begin(), out.end()); // what `least` gave too many
    return out;
}

std::vector<std::int64_t> levelled(const std::vector<std::int64_t>& limits, std::int64_t whole)
{
    if (std::accumulate(limits.begin(), limits.end(), std::int64_t{0}) < whole) return {};
    std::vector<std::size_t> order(limits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return limits[a] < limits[b]; });
    std::vector<std::int64_t> out(limits.size());
    for (std::size_t k = 0; k < order.size(); ++k) { // the smallest limit first: what it can't take the others share
        const std::int64_t even = whole / static_cast<std::int64_t>(order.size() - k);
        out[order[k]] = std::min(limits[order[k]], even);
        whole -= out[order[k]];
    }
    return out;
}

MixedAnswer mixedSurvey(const MixedQuestion& question, const Progress& progress)
{
    MixedAnswer out;
    const auto failed = [&](const Error& error) {
        out.error = error.message;
        return out;
    };
    const auto ranks = static_cast<int>(question.speeds.size());
    if (question.batch < ranks)
        return failed({ErrorCode::Usage,
                       fmt::format("{} samples for {} ranks: each needs at least one", question.batch, ranks),
                       {}});
    auto analytic = parseAnalyticCosts(question.model + "@" + question.device + ":b=1");
    if (!analytic) return failed(analytic.error());
    MixedModel model{std::move(*analytic), 0};
    model.layers = model.analytic.model.layers;
    model.analytic.layers.assign(static_cast<std::size_t>(model.layers), 1);
    const auto beside = besideState(model, question, progress);
    if (!beside) return failed(beside.error());
    if (progress.stop.stop_requested()) return out;
    const auto schedule = layerWise(model.layers, 1, question.recompute);
    if (!schedule) return failed(schedule.error());
    const auto costs = model.costs(*schedule, question);
    if (!costs) return failed(costs.error());
    const Bytes state = stateOf(*costs);
    const auto simulate = [&](MixedRule rule, const std::vector<int>& samples,
                              const std::vector<std::int64_t>& shares) {
        auto division = simulatedDivision(model, question, samples, shares, state);
        MixedDivision& at = out.divisions[static_cast<std::size_t>(rule)];
        if (division)
            at = std::move(*division);
        else
            at.error = division.error().message;
    };
    const std::vector<double> even(question.speeds.size(), 1);
    simulate(MixedRule::Even, dividedBy(even, question.batch, 1), sharesBy(even));
    simulate(MixedRule::BySpeed, dividedBy(question.speeds, question.batch, 1), sharesBy(question.speeds));
    if (auto best = decoupledDivision(model, question, *beside, state, progress)) {
        out.divisions[static_cast<std::size_t>(MixedRule::Decoupled)] = std::move(*best);
    } else if (!progress.cancelled()) {
        Bytes memory = 0, others = 0;
        const std::vector<int> samples = dividedBy(question.speeds, question.batch, 1);
        for (std::size_t i = 0; i < question.speeds.size(); ++i) {
            memory += question.memoryOf(i);
            others += (*beside)[static_cast<std::size_t>(samples[i])];
        }
        out.divisions[static_cast<std::size_t>(MixedRule::Decoupled)].error =
            fmt::format("no division fits: all ranks have {}; the state takes {}, activations and gathered weights {}",
                        formatBytes(memory), formatBytes(state), formatBytes(others));
    }
    return out;
}

SurveyTable unevenTable(const MixedAnswer& answer, const MixedQuestion& question)
{
    SurveyTable table{
        "ranks",
        fmt::format("Batch and state by rank: {} on {}, {} samples", question.model, question.device, question.batch),
        {{"division", "Division", ColumnKind::Text},
         {"step_ns", "Step", ColumnKind::Time},
         {"rank", "Rank", ColumnKind::Whole},
         {"speed", "Speed", ColumnKind::Real},
         {"samples", "Samples", ColumnKind::Count},
         {"batch_share", "Share of the batch", ColumnKind::Share},
         {"speed_share", "Share of the speed", ColumnKind::Share},
         {"compute_ns", "Compute", ColumnKind::Time},
         {"state_share", "Share of the state", ColumnKind::Share},
         {"room", "Room for", ColumnKind::Share, "What of the state fits beside the rest."},
         {"peak_bytes", "Peak", ColumnKind::Size},
         {"memory_bytes", "Memory", ColumnKind::Size},
         {"fits", "Fits", ColumnKind::Text}},
        {}};
    std::vector<std::string> sentences;
    for (std::size_t rule = 0; rule < mixedRuleCount; ++rule) {
        const MixedDivision& division = answer.divisions[rule];
        const std::string title = titleOf(static_cast<MixedRule>(rule));
        if (!division.error.empty()) sentences.push_back(title + ": " + division.error + ".");
        for (std::size_t rank = 0; rank < division.ranks.size(); ++rank) {
            const MixedRank& at = division.ranks[rank];
            table.rows.push_back({title, division.step, static_cast<std::int64_t>(rank), question.speeds[rank],
                                  std::int64_t{at.samples}, static_cast<double>(at.samples) / question.batch,
                                  question.speedShare(rank), at.compute, at.share, std::clamp(at.limit, 0.0, 1.0),
                                  at.peak, at.memory, std::string(at.over() ? "no" : "yes")});
        }
    }
    table.sentence = joined(sentences, " ");
    return table;
}

namespace {

std::vector<SurveyField> unevenFields()
{
    return {
        modelField(),
        deviceField(),
        {.name = "batch",
         .title = "Samples per step",
         .help = "Over all ranks. A microbatch has one sample; every rank has at least one.",
         .fallback = std::to_string(MixedQuestion().batch),
         .least = 2,
         .most = 128},
        {.name = "speeds",
         .title = "Speeds",
         .help = "Of each rank, such as 3,2,1: 1 is the chosen device, 0.5 takes twice as long. Every rank has all "
                 "layers and a part of their state.",
         .kind = FieldKind::Text,
         .fallback = "3,2,1"},
        {.name = "memory",
         .title = "Memory, GB",
         .help = "Of each rank, such as 40,48,64, or one size for all. Empty: the device's.",
         .kind = FieldKind::Text,
         .fallback = "40,48,64",
         .none = "the device's"},
        {.name = "link",
         .title = "Link",
         .help = "Bandwidth of each rank's link, over which weights are gathered and gradients reduced.",
         .kind = FieldKind::Real,
         .fallback = "0",
         .most = 1000,
         .unit = "GB/s",
         .none = "the device's"},
        {.name = "recompute",
         .title = "Activations",
         .help = "Keeps only the input of each layer and recomputes its activations in the backward.",
         .kind = FieldKind::Switch,
         .fallback = "yes",
         .choices = {{"yes", "recomputed"}}},
    };
}

Result<SurveyAnswer> unevenAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    STAGEWRIGHT_TRY(const MixedQuestion question, MixedQuestion::of(asked));
    const MixedAnswer answer = mixedSurvey(question, progress);
    if (!answer.error.empty()) return fail(ErrorCode::Usage, answer.error);
    return SurveyAnswer{.setup = question.setup(),
                        .tables = {unevenTable(answer, question)},
                        .units = {},
                        .plot = unevenPlot(answer, question),
                        .complete = !progress.cancelled()};
}

} // namespace

namespace {

std::string rankText(const MixedDivision& division, MixedRule rule, std::size_t rank, const MixedQuestion& question)
{
    const std::string name = fmt::format("{}, rank {}", titleOf(rule), rank);
    if (!division.good()) return fmt::format("{}: {}", name, division.error);
    const MixedRank& at = division.ranks[rank];
    std::string text = fmt::format("{} (speed {}): {} of {} samples ({}), computes {} of a step of {}; owns {} of the "
                                   "state. ",
                                   name, fixedNumber(question.speeds[rank], 2), at.samples, question.batch,
                                   formatPercent(static_cast<double>(at.samples) / question.batch),
                                   formatDuration(at.compute), formatDuration(division.step), formatPercent(at.share));
    text += at.limit <= 0 ? "Its activations and gathered weights alone do not fit."
                          : fmt::format("Its activations leave room for {}.", formatPercent(std::min(1.0, at.limit)));
    return text + (at.over() ? fmt::format(" It needs {} and has {}.", formatBytes(at.peak), formatBytes(at.memory))
                             : fmt::format(" Its peak is {} of {}.", formatBytes(at.peak), formatBytes(at.memory)));
}

} // namespace

Plot unevenPlot(const MixedAnswer& answer, const MixedQuestion& question)
{
    Plot plot{"Rank", {}, {}};
    plot.up.scale = PlotScale::Share;
    plot.saysChoice = true;
    plot.nothing = answer.error.empty() ? "simulating…" : answer.error;
    if (!answer.error.empty()) return plot;
    const std::size_t ranks = question.speeds.size();
    PlotSeries batch{"share of the batch", {}, PlotMark::Bars, PlotInk{PlotHue::Forward}},
        speed{"share of the speed", {}, PlotMark::Levels, PlotInk{PlotHue::Text}},
        state{"share of the state", {}, PlotMark::Bars, PlotInk{PlotHue::Optimizer}},
        room{"room in its memory", {}, PlotMark::Levels, PlotInk{PlotHue::Critical}},
        over{"", {}, PlotMark::Levels, PlotInk{PlotHue::Critical}};
    state.group = room.group = over.group = 1;
    over.hatched = true;
    double most = 0.05;
    for (std::size_t rule = 0; rule < mixedRuleCount; ++rule) {
        const MixedDivision& division = answer.divisions[rule];
        const double first = static_cast<double>(rule * (ranks + 1));
        const auto full = std::count_if(division.ranks.begin(), division.ranks.end(),
                                        [](const MixedRank& rank) { return rank.over(); });
        plot.groups.push_back({first - 0.45,
                               first + static_cast<double>(ranks) - 0.55,
                               titleOf(static_cast<MixedRule>(rule)),
                               !division.good()
                                   ? division.error
                                   : formatDuration(division.step) + (full == 0 ? ", fits" : ", but does not fit"),
                               {full == 0 ? PlotHue::Secondary : PlotHue::Critical}});
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const double x = first + static_cast<double>(rank);
            plot.across.names.push_back(std::to_string(rank));
            plot.items.push_back(
                PlotItem::band(x - 0.5, x + 0.5, rankText(division, static_cast<MixedRule>(rule), rank, question),
                               static_cast<int>(rule * ranks + rank), static_cast<int>(rule * ranks + rank)));
            if (!division.good()) continue;
            const MixedRank& at = division.ranks[rank];
            batch.points.push_back({x, static_cast<double>(at.samples) / question.batch});
            speed.points.push_back({x, question.speedShare(rank)});
            state.points.push_back({x, at.share});
            room.points.push_back({x, std::max(0.0, at.limit)});
            if (at.over()) over.points.push_back({x, at.limit});
            most = std::max({most, batch.points.back().y, at.share, question.speedShare(rank)});
        }
        if (rule + 1 < mixedRuleCount) plot.across.names.emplace_back(); // between the divisions
    }
    plot.up.most = std::min(1.0, most) * 1.12;
    plot.series = {std::move(batch), std::move(speed), std::move(state), std::move(room), std::move(over)};
    return plot;
}

namespace surveys {
extern const SurveyInfo uneven;
const SurveyInfo uneven{"uneven", "Uneven ranks",
                        "batch and state divided among ranks of different speed and memory (Cephalo)", unevenFields,
                        unevenAnswer};
} // namespace surveys

} // namespace stagewright
