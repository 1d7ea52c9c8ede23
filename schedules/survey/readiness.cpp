// How much orders that ranks find while they run gain or lose against a list, as ops vary more and more in time.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/execute/ready_order.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/survey/explore_question.h"

namespace stagewright {

namespace {

constexpr double sigmas[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};

// One way of choosing the next op: its makespan and largest peak with given costs, in shares of a rank.
struct ReadyWay {
    std::string title;
    std::string limit; // what bounds its memory, in words
    std::function<Result<std::pair<double, double>>(const CostModel&)> run;
};

struct ReadyMean {
    double step = 0, deviation = 0, peak = 0; // means over the seeds; the peak is the largest
};

std::pair<double, double> figuresOfRun(const Schedule& schedule, const SimResult& result, const CostModel& costs)
{
    const Bytes peak = *std::max_element(result.peakActivation.begin(), result.peakActivation.end());
    const double rankActivation =
        static_cast<double>(costs.memory.front().activation) * schedule.stages / schedule.pipelineRanks();
    return {static_cast<double>(result.makespan) / static_cast<double>(rankShare),
            static_cast<double>(peak) / rankActivation};
}

ReadyWay listWay(std::string title, Schedule schedule, Channels channels = {})
{
    return {std::move(title), "its list",
            [schedule = std::move(schedule), channels](const CostModel& costs) -> Result<std::pair<double, double>> {
                STAGEWRIGHT_TRY(const auto result, simulate(schedule, costs, channels));
                return figuresOfRun(schedule, result, costs);
            }};
}

ReadyWay readyWay(const Schedule& schedule, const ReadyOrder& order)
{
    const std::string by = order.by == ReadyOrder::By::Hint ? "hint" : "arrival";
    const std::string limit = order.limit > 0 ? fmt::format("limit {}", order.limit) : std::string("the list's memory");
    return {fmt::format("{}, {}, {}", shownTitle(schedule.name), by, limit), limit,
            [schedule, order](const CostModel& costs) -> Result<std::pair<double, double>> {
                STAGEWRIGHT_TRY(const auto found, orderByReadiness(schedule, costs, order));
                STAGEWRIGHT_TRY(const auto result, simulate(found, costs));
                return figuresOfRun(found, result, costs);
            }};
}

std::vector<SurveyField> readinessFields()
{
    std::vector<SurveyField> fields = parameterFields();
    std::erase_if(fields, [](const SurveyField& field) { return field.name == fieldOf(ExploreParameter::Cap).name; });
    fields.push_back({.name = "schedule",
                      .title = "Schedule",
                      .help = "Its list is what orders by readiness are compared with.",
                      .kind = FieldKind::Text,
                      .fallback = "1f1b"});
    fields.push_back({.name = "limit",
                      .title = "Limit",
                      .help = "Microbatches that a rank may hold where an order may hold more than the list.",
                      .kind = FieldKind::Whole,
                      .least = 0,
                      .most = 100000,
                      .slide = 64,
                      .none = "twice the ranks"});
    fields.push_back({.name = "seeds",
                      .title = "Seeds",
                      .help = "Drawings of the ops' times over which each mean is taken.",
                      .kind = FieldKind::Whole,
                      .fallback = "100",
                      .least = 1,
                      .most = 10000,
                      .slide = 1000});
    for (SurveyField& field : fields)
        if (field.name == "limit") field.fallback = "0";
    return fields;
}

Result<std::vector<ReadyWay>> waysOf(const std::string& name, const ExploreQuestion& question, int limit)
{
    const Shape shape = shapeOf(question.point(name));
    STAGEWRIGHT_TRY(const auto schedule, makeSchedule(name, shape));
    const std::string title = shownTitle(schedule.name);
    std::vector<ReadyWay> ways{listWay(title + ", as listed", schedule)};
    Channels rendezvous;
    rendezvous.sends = SendMode::Rendezvous;
    for (const LoweringRule rule : {LoweringRule::JustInTime, LoweringRule::Grouped, LoweringRule::Batched}) {
        rendezvous.receives = receivesOf(rule);
        const auto lists = lower(schedule, Lowering{rule});
        if (schedule.ranks == 1 || !lists ||
            !simulate(*lists, CostModel::uniform(*lists, question.units()), rendezvous))
            continue; // the lists wait for each other under this rule
        ways.push_back(listWay(title + ", sends wait (rendezvous)", *lists, rendezvous));
        break;
    }
    if (name == "1f1b")
        if (const auto eager = makeSchedule("eager-1f1b", shape))
            ways.push_back(listWay(shownTitle("eager-1f1b") + ", as listed", *eager));
    for (const ReadyOrder order :
         {ReadyOrder{.by = ReadyOrder::By::Arrival, .limit = schedule.ranks},
          ReadyOrder{.by = ReadyOrder::By::Arrival, .limit = limit}, ReadyOrder{.by = ReadyOrder::By::Hint},
          ReadyOrder{.by = ReadyOrder::By::Hint, .limit = limit}})
        if (orderByReadiness(schedule, CostModel::uniform(schedule, question.units()), order))
            ways.push_back(readyWay(schedule, order));
    return ways;
}

Result<SurveyAnswer> readinessAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    if (question.ranks * question.microbatches > 4096)
        return fail(ErrorCode::Usage,
                    "--ranks and --microbatches: at most 4096 ranks × microbatches are drawn again and again",
                    "ask for fewer");
    const int limit = asked.whole("limit") > 0 ? asked.whole("limit") : 2 * question.ranks;
    const int seeds = asked.whole("seeds");
    STAGEWRIGHT_TRY(const auto ways, waysOf(asked.text("schedule"), question, limit));
    STAGEWRIGHT_TRY(const auto schedule,
                    makeSchedule(asked.text("schedule"), shapeOf(question.point(asked.text("schedule")))));
    SurveyTable table{"orders",
                      "Orders by readiness as ops vary in time",
                      {{"order", "Order", ColumnKind::Text},
                       {"limit", "Memory bounded by", ColumnKind::Text},
                       {"sigma", "Jitter σ", ColumnKind::Real, "Each op's time is varied by a factor of about 1 ± σ."},
                       {"step", "Step, mean", ColumnKind::Real, "Mean makespan over the seeds, in shares of a rank."},
                       {"error", "±", ColumnKind::Real, "Standard error of the mean."},
                       {"change", "Against the list", ColumnKind::Share},
                       {"peak", "Peak", ColumnKind::Real,
                        "Most activations that a rank held in any drawing, in microbatches of a rank."}},
                      {}};
    Plot plot{"Jitter of each op, σ", "Step against the list", {}};
    plot.legend = PlotLegend::LineEnds;
    plot.up.scale = PlotScale::Share;
    plot.nothing = "simulating…";
    std::vector<std::vector<ReadyMean>> means(ways.size(), std::vector<ReadyMean>(std::size(sigmas)));
    const auto total = static_cast<std::int64_t>(std::size(sigmas)) * seeds;
    bool complete = true;
    std::size_t done = 0;
    for (; done < std::size(sigmas) && complete; ++done) {
        std::vector<std::vector<double>> steps(ways.size());
        for (int seed = 0; seed < seeds && complete; ++seed) {
            progress.tell("drawings", static_cast<std::int64_t>(done) * seeds + seed, total);
            complete = !progress.cancelled();
            CostModel costs = CostModel::uniform(schedule, question.units());
            costs.jitter = sigmas[done];
            costs.jitterSeed = static_cast<std::uint64_t>(seed) + 1;
            for (std::size_t w = 0; w < ways.size() && complete; ++w) {
                STAGEWRIGHT_TRY(const auto figures, ways[w].run(costs));
                ReadyMean& mean = means[w][done];
                mean.step += figures.first / seeds;
                steps[w].push_back(figures.first);
                mean.peak = std::max(mean.peak, figures.second);
            }
        }
        for (std::size_t w = 0; w < ways.size(); ++w) {
            ReadyMean& mean = means[w][done];
            double squares = 0;
            for (const double step : steps[w]) squares += (step - mean.step) * (step - mean.step);
            mean.deviation = std::sqrt(squares) / seeds;
        }
    }
    if (!complete) --done; // a mean over some seeds is another figure
    for (std::size_t w = 0; w < ways.size(); ++w) {
        PlotSeries line{ways[w].title, {}};
        line.dots = true;
        line.size = 1.75;
        for (std::size_t k = 0; k < done; ++k) {
            const ReadyMean& mean = means[w][k];
            const double change = mean.step / means[0][k].step - 1;
            table.rows.push_back(
                {ways[w].title, ways[w].limit, sigmas[k], mean.step, mean.deviation, change, mean.peak});
            line.points.push_back({sigmas[k], change});
            plot.items.push_back(PlotItem::at(
                sigmas[k], change,
                fmt::format("{}, σ {}: {} ± {}, peak {}", ways[w].title, shortNumber(sigmas[k]), shortNumber(mean.step),
                            shortNumber(mean.deviation), fixedNumber(mean.peak, 1)),
                static_cast<int>(k), static_cast<int>(w), static_cast<int>(w * done + k)));
        }
        plot.series.push_back(std::move(line));
    }
    table.sentence =
        "Within the list's memory an order by readiness can only let work go first that nobody waits for; what it "
        "gains beyond that comes from the memory that its limit allows.";
    return SurveyAnswer{.setup = fmt::format("{} Means over {} drawings of every op's time.", setupOf(question), seeds),
                        .tables = {std::move(table)},
                        .units = exploreUnits,
                        .plot = std::move(plot),
                        .complete = complete};
}

} // namespace

namespace surveys {
extern const SurveyInfo readiness;
const SurveyInfo readiness{"readiness", "Order by readiness",
                           "orders that ranks find while they run against a list, as ops vary in time", readinessFields,
                           readinessAnswer};
} // namespace surveys

} // namespace stagewright
