#include "schedules/survey/uneven.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/small_file.h"
#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "schedules/planner/problem.h"
#include "schedules/survey/state.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

constexpr int wholeState = 1'000'000; // shares are millionths
constexpr double mostSpeedOf = 1000;
constexpr double perMs = 1e6, perGB = 1e9; // ns, bytes: the units of lines
// ns or bytes of a number of lines, which may be any.
std::int64_t wholeFrom(double value, double unit)
{
    constexpr double most = 1e18;
    return std::llround(std::clamp(value * unit, -most, most));
}

// Layer by layer over so many microbatches, a stage for each layer.
Result<Schedule> layerWise(int layers, int microbatches, bool recompute)
{
    auto schedule = makeSchedule("bfs", Shape(1, microbatches, layers));
    if (!schedule || !recompute) return schedule;
    return withRecompute(*schedule, std::vector<bool>(static_cast<std::size_t>(layers), true));
}

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

// A model on a question's devices: its costs by device and microbatch, its lines, and divisions of it simulated.
class MixedModel {
public:
    static Result<MixedModel> of(const MixedQuestion& question)
    {
        MixedModel out(question);
        STAGEWRIGHT_TRY(out.m_analytic, parseAnalyticCosts(question.model + "@" + question.device + ":b=1"));
        out.m_layers = out.m_analytic.model.layers;
        out.m_analytic.layers.assign(static_cast<std::size_t>(out.m_layers), 1);
        double link = question.bytesPerSecond;
        for (const MixedSpeed& one : question.speeds) {
            STAGEWRIGHT_TRY(const DevicePreset device,
                            devicePresetOf(one.device.empty() ? question.device : one.device));
            out.m_devices.push_back(device);
            if (question.bytesPerSecond <= 0 && (link <= 0 || device.linkBytesPerSecond < link))
                link = device.linkBytesPerSecond;
        }
        out.m_link = link;
        STAGEWRIGHT_TRY(const Schedule one, layerWise(out.m_layers, 1, question.recompute));
        STAGEWRIGHT_TRY(const CostModel costs, out.costs(one));
        out.m_state = stateOf(costs);
        return out;
    }

    Bytes state() const { return m_state; }

    // Lines through one sample and twice an even part of the batch, 32 at most: roofs and peaks are convex, so that
    // no microbatch between takes more.
    Result<UnevenProblem> problem() const
    {
        const int ranks = static_cast<int>(m_question.speeds.size());
        const int many = std::clamp(2 * (m_question.batch + ranks - 1) / ranks, 2, 32);
        UnevenProblem out;
        out.samples = m_question.batch;
        out.state = static_cast<double>(m_state) / perGB;
        out.recompute = m_question.recompute;
        out.least = 1;
        STAGEWRIGHT_TRY(const Bytes one, besideState({1, 1}));
        STAGEWRIGHT_TRY(const Bytes large, besideState({many, 1}));
        STAGEWRIGHT_TRY(const Bytes often, besideState({1, many}));
        const double growth = static_cast<double>(large - one) / (many - 1) / perGB;
        UnevenDevice device;
        device.kept = static_cast<double>(std::max<Bytes>(0, often - one)) / (many - 1) / perGB;
        device.a1 = std::max(0.0, growth - device.kept);
        device.a0 = std::max(0.0, static_cast<double>(one) / perGB - device.a1 - device.kept);
        STAGEWRIGHT_TRY(const Schedule schedule, layerWise(m_layers, 1, m_question.recompute));
        for (std::size_t rank = 0; rank < m_devices.size(); ++rank) {
            // a little less than there is, as pieces are rounded to elements layer by layer
            device.cap = std::max(0.0, static_cast<double>(m_question.memoryOf(rank)) / perGB - 1e-5 * out.state);
            const auto line = [&](Pass pass, double& slope, double& start) -> Result<void> {
                STAGEWRIGHT_TRY(const double few, passes(schedule, pass, rank, 1));
                STAGEWRIGHT_TRY(const double all, passes(schedule, pass, rank, many));
                slope = (all - few) / (many - 1);
                start = few - slope < 1e-5 * slope ? 0 : few - slope; // less is what ns round
                return {};
            };
            STAGEWRIGHT_CHECK(line(&CostModel::forward, device.f1, device.f0));
            STAGEWRIGHT_CHECK(line(&CostModel::backward, device.b1, device.b0));
            out.devices.push_back(device);
        }
        return out;
    }

    Result<MixedDivision> simulated(const UnevenPlan& plan) const
    {
        std::vector<Schedule> each;
        for (const auto pick : plan.picks) {
            STAGEWRIGHT_TRY(auto one, layerWise(m_layers, pick.count, m_question.recompute));
            each.push_back(std::move(one));
        }
        auto schedule = overReplicas(each);
        if (schedule) schedule = addShardOps(*schedule, ShardLevel::Weights, mixedRules);
        if (!schedule) return tl::unexpected(std::move(schedule.error()));
        STAGEWRIGHT_TRY(auto costs, this->costs(*schedule));
        for (const auto pick : plan.picks) costs.sizes.push_back(pick.samples);
        const std::vector<int> shares = dividedBy(plan.shares, wholeState, 0);
        costs.sharding.by = ShardBy::Shares;
        for (const int part : shares) costs.sharding.shares.push_back({part, wholeState});
        setTimes(costs, *schedule);
        STAGEWRIGHT_CHECK(setRanks(costs, *schedule, plan));
        STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
        MixedDivision out;
        out.step = timeline->end() - timeline->begin();
        for (std::size_t i = 0; i < plan.picks.size(); ++i) {
            MixedRank rank;
            rank.pick = plan.picks[i];
            rank.share = static_cast<double>(shares[i]) / wholeState;
            rank.memory = m_question.memoryOf(i);
            rank.peak = peakOf(*timeline, static_cast<int>(i));
            rank.limit = rank.share + static_cast<double>(rank.memory - rank.peak) / static_cast<double>(m_state);
            for (const Op& op : schedule->order[i])
                if (isCompute(op.kind)) rank.compute += costs.duration(op, static_cast<int>(i));
            out.ranks.push_back(rank);
        }
        return out;
    }

private:
    using Pass = Nanos (CostModel::*)(int, int) const;

    explicit MixedModel(const MixedQuestion& question) : m_question(question) {}

    // The costs of one sample on the question's device.
    Result<CostModel> costs(const Schedule& schedule) const
    {
        auto out = analyticCosts(schedule, m_analytic);
        if (!out) return out;
        out->links.all.bytesPerSecond = m_link;
        out->links.collectives = ResourceUse::Beside;
        out->sharding.level = ShardLevel::Weights;
        return out;
    }

    Result<CostModel> costsOn(const Schedule& schedule, const DevicePreset& device, int samples) const
    {
        AnalyticCosts of = m_analytic;
        of.device = device;
        of.microbatchSize = samples;
        return analyticCosts(schedule, of);
    }

    // ms of all layers' passes of a kind, of one microbatch.
    Result<double> passes(const Schedule& schedule, Pass pass, std::size_t rank, int samples) const
    {
        STAGEWRIGHT_TRY(const CostModel costs, costsOn(schedule, m_devices[rank], samples));
        double out = 0;
        for (int stage = 0; stage < schedule.stages; ++stage)
            out += static_cast<double>((costs.*pass)(stage, 0)) / m_question.speeds[rank].speed +
                   static_cast<double>(m_question.launch);
        return out / perMs;
    }

    static void setTimes(CostModel& costs, const Schedule& schedule)
    {
        CollectiveCosts collectives;
        collectives.within = costs.links.all;
        setCollectiveTimes(costs, schedule, collectives);
    }

    // Each rank's own passes of its microbatches, and its optimizer.
    Result<void> setRanks(CostModel& costs, const Schedule& schedule, const UnevenPlan& plan) const
    {
        std::map<std::pair<std::string_view, int>, CostModel> known; // by device and samples
        for (int rank = 0; rank < schedule.ranks; ++rank) {
            const auto at = static_cast<std::size_t>(rank);
            const DevicePreset& device = m_devices[at];
            const int samples = plan.picks[at].samples;
            const double speed = m_question.speeds[at].speed;
            auto own = known.find({device.name, samples});
            if (own == known.end()) {
                STAGEWRIGHT_TRY(CostModel made, costsOn(schedule, device, samples));
                own = known.emplace(std::pair(device.name, samples), std::move(made)).first;
            }
            for (int stage = 0; stage < schedule.stages; ++stage)
                for (std::size_t k = 0; k < allKinds().size(); ++k) {
                    const auto kind = static_cast<OpKind>(k);
                    const auto whole = static_cast<double>(own->second.duration(kind, stage, 0));
                    if (isOptimizer(kind))
                        costs.scaleOnRank(kind, stage, rank, schedule.placement,
                                          m_analytic.device.bytesPerSecond / device.bytesPerSecond / speed);
                    else if (isCompute(kind) && whole > 0)
                        costs.setDuration(kind, stage, rank, std::llround(whole / speed) + m_question.launch);
                }
        }
        return {};
    }

    // What a rank holds at its peak besides its part of the state: the peak of one that owns nothing of it, which
    // gathers most.
    Result<Bytes> besideState(UnevenPlan::Pick pick) const
    {
        auto schedule = layerWise(m_layers, pick.count, m_question.recompute);
        if (schedule) schedule = addShardOps(*schedule, ShardLevel::Weights, mixedRules);
        if (!schedule) return tl::unexpected(std::move(schedule.error()));
        STAGEWRIGHT_TRY(auto costs, this->costs(*schedule));
        costs.replicas = static_cast<int>(m_question.speeds.size());
        costs.sizes = {static_cast<double>(pick.samples)};
        costs.sharding.by = ShardBy::Shares;
        costs.sharding.shares.assign(m_question.speeds.size(), {0, 1});
        costs.sharding.shares.back() = {1, 1};
        setTimes(costs, *schedule);
        STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
        return peakOf(*timeline, 0);
    }

    const MixedQuestion& m_question;
    AnalyticCosts m_analytic;
    std::vector<DevicePreset> m_devices; // by rank
    int m_layers = 0;
    double m_link = 0;
    Bytes m_state = 0;
};

// A division as the lines say.
MixedDivision byLines(const UnevenProblem& problem, const UnevenPlan& plan)
{
    MixedDivision out;
    out.step = wholeFrom(plan.time, perMs);
    for (std::size_t i = 0; i < plan.picks.size(); ++i) {
        const UnevenDevice& device = problem.devices[i];
        const double beside = unevenMemory(device, plan.picks[i]);
        MixedRank rank;
        rank.pick = plan.picks[i];
        rank.share = plan.shares[i];
        rank.limit = problem.state > 0 ? (device.cap - beside) / problem.state : 1;
        rank.compute = wholeFrom(unevenTime(problem, device, rank.pick), perMs);
        rank.peak = wholeFrom(beside + rank.share * problem.state, perGB);
        rank.memory = wholeFrom(device.cap, perGB);
        out.ranks.push_back(rank);
    }
    return out;
}

// Why no division fits: a rank that has no room for one sample, or all of them together.
std::string whyNothingFits(const UnevenProblem& problem, const UnevenAnswer& answer)
{
    const auto size = [](double gb) { return formatBytes(wholeFrom(gb, perGB)); };
    double memory = 0;
    for (std::size_t i = 0; i < problem.devices.size(); ++i) {
        const UnevenDevice& device = problem.devices[i];
        if (const double one = unevenMemory(device, {1, 1}); problem.least > 0 && one > device.cap)
            return fmt::format("no division fits: rank {} has {}; one sample and gathered weights take {}", i,
                               size(device.cap), size(one));
        memory += device.cap;
    }
    const std::string all = fmt::format("no division fits: all ranks have {}; ", size(memory));
    if (!answer.room)
        return all + fmt::format("the activations of {} have no room", counted(problem.samples, "sample"));
    return all +
           fmt::format("the state takes {}, and activations and gathered weights leave {} of any division at most: "
                       "{} are missing",
                       size(problem.state), size(*answer.room), size(problem.state - *answer.room));
}

// The best division by the lines, simulated. A rank that waits for slower ones holds more gradients than one among its
// like, so what is over a memory then is left free on that rank, and the others take more, a few times.
constexpr int mostMoves = 6;
Result<MixedDivision> decoupledDivision(const MixedModel& model, UnevenProblem problem, UnevenAnswer answer,
                                        const Progress& progress)
{
    for (int move = 0;; ++move) {
        if (!answer.best) return fail(ErrorCode::Usage, whyNothingFits(problem, answer));
        auto division = model.simulated(*answer.best);
        if (!division || division->fits() || move == mostMoves) return division;
        for (std::size_t i = 0; i < problem.devices.size(); ++i)
            if (const MixedRank& rank = division->ranks[i]; rank.over())
                problem.devices[i].a0 += static_cast<double>(rank.peak - rank.memory) / perGB + 1e-6 * problem.state;
        STAGEWRIGHT_TRY(answer, planUneven(problem, progress));
    }
}

// "32x3" is 32 times "3"; a number without x is once. Nothing: the count is none.
std::optional<std::pair<int, std::string_view>> repeated(std::string_view item)
{
    const auto x = item.find('x');
    if (x == std::string_view::npos || x == 0 || item.find_first_not_of("0123456789") != x) return std::pair(1, item);
    const auto count = wholeOf<int>(item.substr(0, x));
    if (!count || *count < 1 || *count > mostMixedRanks) return std::nullopt;
    return std::pair(*count, item.substr(x + 1));
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
    out.lines = question.text("lines");
    if (!out.lines.empty()) {
        if (areRecordedLines(out.lines)) return out;
        std::string text = out.lines;
        if (text == "authors") {
            STAGEWRIGHT_TRY(text, exampleProblem("cephalo"));
        } else if (!text.starts_with("{")) {
            auto read = readSmallFile(text);
            if (!read) return tl::unexpected(std::move(read.error()).with("lines"));
            text = std::move(*read);
        } else {
            out.lines = "the given problem";
        }
        auto problem = unevenProblem(text);
        if (!problem) return tl::unexpected(std::move(problem.error()).with("lines"));
        out.problem = std::move(*problem);
        return out;
    }
    STAGEWRIGHT_TRY(out.speeds, parseMixedSpeeds(question.text("speeds")));
    STAGEWRIGHT_TRY(out.memory, parseMixedMemory(question.text("memory"), out.speeds.size()));
    out.batch = question.whole("batch");
    out.recompute = question.on("recompute");
    out.bytesPerSecond = question.real("link") * 1e9;
    out.launch = std::llround(question.real("launch") * 1e3);
    return out;
}

std::string MixedQuestion::setup() const
{
    if (problem)
        return fmt::format("Computed from cost lines of {}: {}, {} a step, {} of state.",
                           lines == "authors" ? "Cephalo's authors (GPT 2.7B, one layer)" : lines,
                           counted(static_cast<long long>(ranks()), "rank"), counted(samples(), "sample"),
                           formatBytes(wholeFrom(problem->state, perGB)));
    return fmt::format("Simulated: {}, speeds in multiples of {}, {} samples a step, {} to launch a pass of a layer.",
                       model, device, batch, launch > 0 ? formatDuration(launch) : std::string("nothing"));
}

Bytes MixedQuestion::memoryOf(std::size_t rank) const
{
    if (memory.empty()) {
        const auto preset = devicePresetOf(speeds[rank].device.empty() ? device : speeds[rank].device);
        return preset ? static_cast<Bytes>(preset->memory) : 0;
    }
    return memory.size() == 1 ? memory.front() : memory[rank];
}

std::string MixedQuestion::nameOf(std::size_t rank) const
{
    if (problem) return {};
    const MixedSpeed& one = speeds[rank];
    const std::string speed = one.speed == 1 && !one.device.empty() ? "" : "speed " + shortNumber(one.speed, 2);
    return one.device + (one.device.empty() || speed.empty() ? "" : ", ") + speed;
}

bool MixedDivision::fits() const
{
    return good() && std::none_of(ranks.begin(), ranks.end(), [](const MixedRank& rank) { return rank.over(); });
}

Result<std::vector<MixedSpeed>> parseMixedSpeeds(std::string_view text)
{
    std::vector<MixedSpeed> out;
    for (const std::string_view item : split(text, ",")) {
        const auto times = repeated(trimmed(item));
        MixedSpeed one;
        const auto speed = times ? numberOf(times->second) : std::nullopt;
        if (speed)
            one.speed = *speed;
        else if (times && devicePresetOf(times->second))
            one.device = times->second;
        else
            one.speed = 0;
        if (one.speed <= 0 || one.speed > mostSpeedOf)
            return fail(ErrorCode::Usage, fmt::format("speeds: '{}' is neither a speed nor a device", trimmed(item)),
                        "give numbers above 0, such as 3,2,1 or 32x3,32x1, or devices, such as 2xa100,v100");
        out.insert(out.end(), static_cast<std::size_t>(times->first), one);
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
        const auto times = repeated(trimmed(item));
        const auto size = times ? numberOf(times->second) : std::nullopt;
        if (!size || *size <= 0 || *size > 1e6)
            return fail(ErrorCode::Usage, fmt::format("memory: '{}' is not a size in GB", trimmed(item)),
                        "give numbers above 0, such as 40,48,64 or 32x80,32x24");
        out.insert(out.end(), static_cast<std::size_t>(times->first), static_cast<Bytes>(std::llround(*size * 1e9)));
    }
    if (out.size() != 1 && out.size() != ranks)
        return fail(ErrorCode::Usage, fmt::format("memory: {} sizes for {} ranks", out.size(), ranks),
                    "give one for each rank, or one for all");
    return out;
}

bool areRecordedLines(std::string_view lines)
{
    return lines.find(".stagewright") != std::string_view::npos && !trimmed(lines).starts_with("{");
}

MixedAnswer mixedSurvey(const MixedQuestion& question, const Progress& progress)
{
    MixedAnswer out;
    const auto solved = [&]() -> Result<void> {
        if (!question.problem && !question.lines.empty())
            return fail(ErrorCode::Usage, fmt::format("lines: the runs of {} are not read here", question.lines));
        const auto place = [&](MixedRule rule, Result<MixedDivision> division) {
            MixedDivision& at = out.divisions[static_cast<std::size_t>(rule)];
            if (division)
                at = std::move(*division);
            else
                at.error = division.error().message;
        };
        const auto speeds = [&](const UnevenProblem& problem) {
            out.speedShares = unevenSpeeds(problem);
            const double sum = std::accumulate(out.speedShares.begin(), out.speedShares.end(), 0.0);
            for (double& one : out.speedShares) one /= sum;
        };
        if (question.problem) {
            STAGEWRIGHT_TRY(const UnevenAnswer answer, planUneven(*question.problem, progress));
            speeds(*question.problem);
            place(MixedRule::Even, byLines(*question.problem, answer.even));
            place(MixedRule::BySpeed, byLines(*question.problem, answer.speed));
            place(MixedRule::Decoupled, answer.best
                                            ? Result<MixedDivision>(byLines(*question.problem, *answer.best))
                                            : fail(ErrorCode::Usage, whyNothingFits(*question.problem, answer)));
            return {};
        }
        if (static_cast<std::size_t>(question.batch) < question.ranks())
            return fail(ErrorCode::Usage, fmt::format("{} samples for {} ranks: each needs at least one",
                                                      question.batch, question.ranks()));
        STAGEWRIGHT_TRY(const MixedModel model, MixedModel::of(question));
        STAGEWRIGHT_TRY(const UnevenProblem problem, model.problem());
        STAGEWRIGHT_TRY(const UnevenAnswer answer, planUneven(problem, progress));
        speeds(problem);
        place(MixedRule::Even, model.simulated(answer.even));
        place(MixedRule::BySpeed, model.simulated(answer.speed));
        if (!progress.cancelled()) place(MixedRule::Decoupled, decoupledDivision(model, problem, answer, progress));
        return {};
    }();
    if (!solved && !progress.cancelled()) out.error = solved.error().message;
    return out;
}

SurveyTable unevenTable(const MixedAnswer& answer, const MixedQuestion& question)
{
    SurveyTable table{
        "ranks",
        fmt::format("Batch and state by rank: {}, {}",
                    question.problem ? "lines of " + question.lines : question.model + " on " + question.device,
                    counted(question.samples(), "sample")),
        {{"division", "Division", ColumnKind::Text},
         {"step_ns", "Step", ColumnKind::Time},
         {"rank", "Rank", ColumnKind::Whole},
         {"device", "Device", ColumnKind::Text},
         {"samples", "Samples", ColumnKind::Count},
         {"microbatches", "Microbatches", ColumnKind::Count},
         {"microbatch_size", "Of a microbatch", ColumnKind::Count, "Samples of each microbatch."},
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
            table.rows.push_back(
                {title, division.step, static_cast<std::int64_t>(rank), question.nameOf(rank),
                 std::int64_t{at.pick.all()}, std::int64_t{at.pick.count}, std::int64_t{at.pick.samples},
                 static_cast<double>(at.pick.all()) / question.samples(), answer.speedShares[rank], at.compute,
                 at.share, std::clamp(at.limit, 0.0, 1.0), at.peak, at.memory, std::string(at.over() ? "no" : "yes")});
        }
    }
    const MixedDivision &even = answer.divisions[static_cast<std::size_t>(MixedRule::Even)],
                        &best = answer.divisions[static_cast<std::size_t>(MixedRule::Decoupled)];
    if (even.good() && best.good() && best.step > 0)
        sentences.push_back(fmt::format("Decoupled takes {}; even takes {}× as long{}.", formatDuration(best.step),
                                        shortNumber(static_cast<double>(even.step) / static_cast<double>(best.step), 2),
                                        even.fits() ? "" : " and does not fit"));
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
         .help = "Over all ranks; every rank has at least one.",
         .fallback = std::to_string(MixedQuestion().batch),
         .least = 2,
         .most = 2048},
        {.name = "speeds",
         .title = "Speeds or devices",
         .help = "Of each rank, such as 3,2,1: 1 is the chosen device, 0.5 takes twice as long. Or its device: "
                 "2xa100,v100. 32x3,32x1 are 64 ranks. Every rank has all layers and a part of their state.",
         .kind = FieldKind::Text,
         .fallback = "3,2,1"},
        {.name = "memory",
         .title = "Memory, GB",
         .help = "Of each rank, such as 40,48,64 or 32x80,32x24, or one size for all. Empty: the device's.",
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
        {.name = "launch",
         .title = "Launch",
         .help = "What each pass of a layer takes besides its samples, which larger microbatches share.",
         .kind = FieldKind::Real,
         .fallback = "100",
         .most = 100'000,
         .unit = "µs",
         .none = "nothing"},
        {.name = "recompute",
         .title = "Activations",
         .help = "Keeps only the input of each layer and recomputes its activations in the backward.",
         .kind = FieldKind::Switch,
         .fallback = "yes",
         .choices = {{"yes", "recomputed"}}},
        {.name = "lines",
         .title = "Cost lines",
         .help =
             "Instead of all other fields: a problem of Cephalo's, NAME.json, as 'stagewright solve' takes it, in ms "
             "and GB; recorded runs, FILE.stagewright#RUN, one for each size of microbatch; or authors, the stored "
             "example of Cephalo's authors. Empty: the model's.",
         .kind = FieldKind::Text,
         .none = "the model's",
         .alone = true},
    };
}

Result<SurveyAnswer> unevenAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    STAGEWRIGHT_TRY(const MixedQuestion question, MixedQuestion::of(asked));
    const MixedAnswer answer = mixedSurvey(question, progress);
    if (!answer.error.empty()) return fail(ErrorCode::Usage, answer.error);
    SurveyAnswer out = toSurveyAnswer(answer, question);
    out.complete = !progress.cancelled();
    return out;
}

} // namespace

SurveyAnswer toSurveyAnswer(const MixedAnswer& answer, const MixedQuestion& question)
{
    return {.setup = question.setup(),
            .tables = {unevenTable(answer, question)},
            .units = {},
            .plot = unevenPlot(answer, question)};
}

namespace {

// Ranks in a row that are alike in a division: drawn as one where there are many.
struct MixedColumn {
    std::size_t first = 0, last = 0;
    std::size_t fullest = 0; // of them, with the highest peak
};
constexpr std::size_t mostColumns = 16;
std::vector<MixedColumn> columnsOf(const MixedDivision& division, const MixedQuestion& question)
{
    std::vector<MixedColumn> out;
    const bool joins = question.ranks() > mostColumns && division.good();
    for (std::size_t rank = 0; rank < question.ranks(); ++rank) {
        if (joins && !out.empty()) {
            const MixedRank &before = division.ranks[rank - 1], &at = division.ranks[rank];
            if (question.nameOf(rank) == question.nameOf(rank - 1) && at.memory == before.memory &&
                at.pick.samples == before.pick.samples && at.pick.count == before.pick.count &&
                at.over() == before.over() && std::abs(at.share - before.share) < 1e-4) {
                MixedColumn& column = out.back();
                column.last = rank;
                if (at.peak > division.ranks[column.fullest].peak) column.fullest = rank;
                continue;
            }
        }
        out.push_back({rank, rank, rank});
    }
    return out;
}

std::string columnText(const MixedDivision& division, MixedRule rule, const MixedColumn& column,
                       const MixedQuestion& question)
{
    const std::string name = column.first == column.last
                                 ? fmt::format("{}, rank {}", titleOf(rule), column.first)
                                 : fmt::format("{}, each of ranks {} to {}", titleOf(rule), column.first, column.last);
    if (!division.good()) return fmt::format("{}: {}", name, division.error);
    const MixedRank& at = division.ranks[column.fullest];
    const std::string known = question.nameOf(column.first);
    std::string text = fmt::format(
        "{}{}: {} of {} samples ({}) in {} of {}, computes {} of a step of {}; owns {} of the state. ", name,
        known.empty() ? "" : " (" + known + ")", at.pick.all(), question.samples(),
        formatPercent(static_cast<double>(at.pick.all()) / question.samples()), counted(at.pick.count, "microbatch"),
        at.pick.samples, formatDuration(at.compute), formatDuration(division.step), formatPercent(at.share));
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
    const std::size_t ranks = question.ranks();
    // a part of the bar for each microbatch, where they are few enough to be seen
    constexpr int mostParts = 6;
    std::array<PlotSeries, mostParts> batch;
    for (PlotSeries& part : batch) {
        part.mark = PlotMark::Bars;
        part.ink = PlotInk{PlotHue::Forward};
    }
    batch.front().title = "share of the batch, by microbatch";
    PlotSeries speed{"share of the speed", {}, PlotMark::Levels, PlotInk{PlotHue::Text}},
        state{"share of the state", {}, PlotMark::Bars, PlotInk{PlotHue::Optimizer}},
        room{"room in its memory", {}, PlotMark::Levels, PlotInk{PlotHue::Critical}},
        over{"", {}, PlotMark::Levels, PlotInk{PlotHue::Critical}};
    state.group = room.group = over.group = 1;
    over.hatched = true;
    double most = 0;
    int next = 0;
    for (std::size_t rule = 0; rule < mixedRuleCount; ++rule) {
        const MixedDivision& division = answer.divisions[rule];
        const auto columns = columnsOf(division, question);
        const auto first = static_cast<double>(plot.across.names.size());
        const auto full = std::count_if(division.ranks.begin(), division.ranks.end(),
                                        [](const MixedRank& rank) { return rank.over(); });
        plot.groups.push_back({first - 0.45,
                               first + static_cast<double>(columns.size()) - 0.55,
                               titleOf(static_cast<MixedRule>(rule)),
                               !division.good()
                                   ? division.error
                                   : formatDuration(division.step) + (full == 0 ? ", fits" : ", but does not fit"),
                               {full == 0 ? PlotHue::Secondary : PlotHue::Critical}});
        for (const MixedColumn& column : columns) {
            const auto x = static_cast<double>(plot.across.names.size());
            plot.across.names.push_back(column.first == column.last ? std::to_string(column.first)
                                                                    : fmt::format("{}–{}", column.first, column.last));
            plot.items.push_back(PlotItem::band(x - 0.5, x + 0.5,
                                                columnText(division, static_cast<MixedRule>(rule), column, question),
                                                next++, static_cast<int>(rule * ranks + column.first)));
            if (!division.good()) continue;
            const MixedRank& at = division.ranks[column.fullest];
            const double share = static_cast<double>(at.pick.all()) / question.samples();
            const int parts = at.pick.count > mostParts ? 1 : std::max(1, at.pick.count);
            for (int part = 0; part < parts; ++part)
                batch[static_cast<std::size_t>(part)].points.push_back(
                    {x, share / parts, part == 0 ? fmt::format("{}×{}", at.pick.count, at.pick.samples) : ""});
            speed.points.push_back({x, answer.speedShares[column.first]});
            state.points.push_back({x, at.share});
            room.points.push_back({x, std::max(0.0, at.limit)});
            if (at.over()) over.points.push_back({x, at.limit});
            most = std::max({most, share, at.share, answer.speedShares[column.first]});
        }
        if (rule + 1 < mixedRuleCount) plot.across.names.emplace_back(); // between the divisions
    }
    plot.up.most = std::min(1.0, most) * 1.12;
    std::move(batch.begin(), batch.end(), std::back_inserter(plot.series));
    for (PlotSeries* one : {&speed, &state, &room, &over}) plot.series.push_back(std::move(*one));
    return plot;
}

namespace surveys {
extern const SurveyInfo uneven;
const SurveyInfo uneven{"uneven", "Uneven ranks",
                        "batch and state divided among ranks of different speed and memory (Cephalo)", unevenFields,
                        unevenAnswer};
} // namespace surveys

} // namespace stagewright
