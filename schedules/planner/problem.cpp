#include "schedules/planner/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/json_input.h"
#include "schedules/planner/examples.h"
#include "schedules/planner/machine_pictures.h"
#include "schedules/planner/pictures.h"
#include "schedules/planner/solved.h"
#include "schedules/planner/tier_problems.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;

using Input = JsonInput;

using Solved = SolvedProblem;
using Solver = ProblemSolver;

// Nothing is solved where the input could not be read.
Result<void> whole(const Input& in)
{
    if (in.problem().empty()) return {};
    return fail(ErrorCode::Unreadable, "input: " + in.problem(), "see docs/planners.md");
}

Json orNull(const std::optional<double>& value) { return value ? Json(std::round(*value * 1e6) / 1e6) : Json(nullptr); }

Result<InterOperatorProblem> readInterOperator(Input& in)
{
    InterOperatorProblem problem;
    problem.layers = in.get<int>("layers");
    problem.hosts = in.get<int>("hosts");
    problem.perHost = in.get<int>("per_host");
    problem.microbatches = in.get<std::int64_t>("microbatches");
    for (const auto& mesh : in.table<int>("submeshes")) {
        if (mesh.size() != 2)
            in.wrong("a submesh is [hosts, devices of each]");
        else
            problem.submeshes.push_back({mesh[0], mesh[1]});
    }
    for (const auto& row : in.table<std::int64_t>("stages")) {
        if (row.size() != 6)
            in.wrong("a stage is [first layer, last, submesh, option, time, successors]");
        else
            problem.options.push_back({static_cast<int>(row[0]), static_cast<int>(row[1]), static_cast<int>(row[2]),
                                       static_cast<int>(row[3]), row[4], row[5]});
    }
    STAGEWRIGHT_CHECK(whole(in));
    return problem;
}

Result<Solved> alpaInter(Input& in, const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto problem, readInterOperator(in));
    STAGEWRIGHT_TRY(const auto plan, planInterOperator(problem, progress));
    PlannerPicture picture = pictureOf(problem, plan);
    if (!plan) return Solved{{{"latency", nullptr}, {"plans", 0}}, std::move(picture)};
    Json stages = Json::array();
    for (const StageOption& one : plan->stages) stages.push_back({one.first, one.last, one.submesh, one.option});
    return Solved{{{"latency", plan->time},
                   {"plans", plan->plans},
                   {"plan", stages},
                   {"crossings", plan->devices.empty() ? Json(nullptr) : Json(plan->crossings)},
                   {"devices", plan->devices}},
                  std::move(picture)};
}

Result<Solved> layerwise(Input& in, const Progress&)
{
    LayerStrategyProblem problem{in.table<std::int64_t>("time"), in.table<std::int64_t>("memory"),
                                 in.table<std::int64_t>("change"), in.get<std::int64_t>("budget")};
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto plan, chooseStrategies(problem));
    PlannerPicture picture = pictureOf(problem, plan);
    if (!plan) return Solved{{{"time", nullptr}}, std::move(picture)};
    return Solved{
        {{"time", plan->time}, {"memory", plan->memory}, {"choices", plan->choices}, {"strategies", plan->strategies}},
        std::move(picture)};
}

Json jsonOf(const std::optional<Partition>& partition)
{
    if (!partition) return nullptr;
    return {{"largest", partition->largest}, {"splits", partition->ways}, {"split", partition->bounds}};
}

Result<Solved> merakGraph(Input& in)
{
    std::vector<GraphNode> nodes;
    std::vector<std::int64_t> costs;
    for (const Json& one : in.list("nodes")) {
        if (!one.is_object()) {
            in.wrong("a node is not an object");
            break;
        }
        Input node(one);
        nodes.push_back(
            {node.get<std::string>("name"), node.get<std::int64_t>("cost"), node.all<std::string>("inputs")});
        costs.push_back(nodes.back().cost);
        if (!node.problem().empty()) in.wrong(fmt::format("node {}: {}", nodes.size(), node.problem()));
    }
    const int parts = in.get<int>("p"), width = in.get<int>("width", 1);
    STAGEWRIGHT_CHECK(whole(in));
    const auto cuts = legalCuts(nodes, width);
    const auto best = cuts.empty() && parts > 1 ? std::nullopt : divide(costs, parts, cuts);
    std::vector<std::string> names;
    for (const GraphNode& node : nodes) names.push_back(node.name);
    return Solved{{{"cuts", cuts}, {"best", jsonOf(best)}}, partitionPicture(names, costs, cuts, best)};
}

Result<Solved> merakRecompute(Input& in)
{
    RecomputeProblem problem;
    problem.microbatches = in.get<int>("m");
    problem.layers = in.all<std::int64_t>("layers");
    problem.fixed = in.all<std::int64_t>("static");
    problem.cap = in.all<std::int64_t>("cap");
    problem.kept = in.get<std::int64_t>("A");
    problem.input = in.get<std::int64_t>("a");
    problem.forward = in.get<std::int64_t>("F");
    problem.backward = in.get<std::int64_t>("B");
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto plan, planRecomputation(problem));
    Json kept = Json::array();
    for (const auto& one : plan.kept) kept.push_back(one ? Json(*one) : Json(nullptr));
    return Solved{{{"kept", kept},
                   {"slowest_stage", plan.slowest ? Json(*plan.slowest) : Json(nullptr)},
                   {"full_recompute", plan.all}},
                  pictureOf(problem, plan)};
}

Result<Solved> merak(Input& in, const Progress&)
{
    const auto kind = in.get<std::string>("kind");
    STAGEWRIGHT_CHECK(whole(in));
    if (kind == "graph") return merakGraph(in);
    if (kind == "recompute") return merakRecompute(in);
    if (kind == "partition") {
        const auto items = in.all<std::int64_t>("items");
        const int parts = in.get<int>("p");
        STAGEWRIGHT_CHECK(whole(in));
        const auto best = divide(items, parts);
        return Solved{best ? jsonOf(best) : Json{{"largest", nullptr}}, partitionPicture({}, items, {}, best)};
    }
    if (kind == "step") {
        const auto p = in.get<std::int64_t>("p"), m = in.get<std::int64_t>("m");
        const double forward = in.get<double>("F"), again = in.get<double>("R"), backward = in.get<double>("B");
        STAGEWRIGHT_CHECK(whole(in));
        const double step = (static_cast<double>(m) + static_cast<double>(p) - 1) * (forward + again + backward);
        return Solved{{{"plain", step}, {"closed_form", step}}, pipelinePicture(p, m, forward, again, backward)};
    }
    if (kind == "subpipe") {
        const auto segments = in.get<std::int64_t>("segments");
        const double compute = in.get<double>("compute"), reduce = in.get<double>("allreduce");
        const double loss = in.get<double>("loss", 1.0);
        if (segments < 0 || segments > 1'000'000) in.wrong("segments are 0 to 1000000");
        STAGEWRIGHT_CHECK(whole(in));
        const SubPipeline times = subPipeline(segments, compute, reduce, loss);
        return Solved{{{"unsplit", times.unsplit}, {"split", std::round(times.split * 1e6) / 1e6}},
                      subPipelinePicture(segments, compute, reduce, loss)};
    }
    return fail(ErrorCode::Unreadable, fmt::format("input: kind is '{}'", kind),
                "kinds are graph, partition, recompute, step, subpipe");
}

Result<UnevenProblem> readUneven(Input& in)
{
    UnevenProblem problem;
    problem.samples = in.get<int>("batch");
    problem.state = in.get<double>("state");
    problem.gap = in.get<double>("gap", 0.0);
    problem.recompute = in.get<bool>("recompute", true);
    problem.least = in.get<int>("least", 0);
    if (in.get<std::string>("rule", "exact") == "aggregate") problem.fraction = in.get<double>("fraction", 0.75);
    for (const Json& one : in.list("gpus")) {
        if (!one.is_object()) {
            in.wrong("a GPU is not an object");
            break;
        }
        Input gpu(one);
        problem.devices.push_back({gpu.get<double>("f1"), gpu.get<double>("f0"), gpu.get<double>("b1"),
                                   gpu.get<double>("b0"), gpu.get<double>("a1"), gpu.get<double>("a0"),
                                   gpu.get<double>("cap"), gpu.get<double>("kept", 0.0)});
        if (!gpu.problem().empty()) in.wrong(fmt::format("GPU {}: {}", problem.devices.size(), gpu.problem()));
    }
    STAGEWRIGHT_CHECK(whole(in));
    return problem;
}

Result<Solved> cephalo(Input& in, const Progress& progress)
{
    STAGEWRIGHT_TRY(const UnevenProblem problem, readUneven(in));
    STAGEWRIGHT_TRY(const auto answer, planUneven(problem, progress));
    Json out{{"time", answer.best ? orNull(answer.best->time) : Json(nullptr)}};
    if (answer.best) {
        Json samples = Json::array(), picks = Json::array(), shares = Json::array();
        for (const auto& pick : answer.best->picks) {
            samples.push_back(pick.all());
            picks.push_back({pick.samples, pick.count});
        }
        for (const double share : answer.best->shares) shares.push_back(orNull(share));
        out["samples"] = samples;
        out["picks"] = picks;
        out["shares"] = shares;
    }
    for (const auto& [key, plan] : {std::pair("even", &answer.even), std::pair("speed", &answer.speed)})
        out[key] = plan->fits ? orNull(plan->time) : Json(nullptr);
    return Solved{std::move(out), pictureOf(problem, answer)};
}

std::string fraction(std::int64_t a, std::int64_t b)
{
    const std::int64_t common = std::gcd(a, b);
    return b == common ? std::to_string(a / common) : fmt::format("{}/{}", a / common, b / common);
}

Result<Solved> jigsaw(Input& in, const Progress& progress)
{
    Json out;
    std::vector<PackingProblem> problems;
    std::vector<Packing> packings;
    for (const char* key : {"jobs", "full"}) {
        if (std::string_view(key) == "full" && !in.has("full")) continue;
        const PackingProblem problem{in.get<int>("gpus"), in.table<std::int64_t>(key)};
        STAGEWRIGHT_CHECK(whole(in));
        STAGEWRIGHT_TRY(const auto packing, packJobs(problem, progress));
        problems.push_back(problem);
        packings.push_back(packing);
        out[std::string_view(key) == "full" ? "full" : "partial"] = {
            {"fifo", packing.fifo},
            {"gang", packing.gang},
            {"packed", packing.packed},
            {"rotated_bound", fraction(packing.rotatedNumerator, packing.rotatedDenominator)},
            {"utilisation", fraction(packing.work, packing.packed * problem.gpus)},
            {"proven", packing.proven},
            {"places", packing.places}};
    }
    const bool two = problems.size() > 1;
    return Solved{std::move(out),
                  pictureOf(problems[0], packings[0], two ? &problems[1] : nullptr, two ? &packings[1] : nullptr)};
}

Result<Solved> comet(Input& in, const Progress&)
{
    ClusterStudy study;
    const auto model = in.all<double>("model");
    if (model.size() != 4)
        in.wrong("model is [hidden, layers, heads, sequence]");
    else
        study.hidden = model[0], study.layers = model[1], study.heads = model[2], study.sequence = model[3];
    study.devices = in.get<std::int64_t>("devices");
    study.batch = in.get<std::int64_t>("batch");
    study.perHost = in.get<std::int64_t>("per_host");
    for (const auto& [key, place] :
         std::initializer_list<std::pair<const char*, double*>>{{"peak", &study.peak},
                                                                {"efficiency", &study.efficiency},
                                                                {"capacity", &study.capacity},
                                                                {"bandwidth", &study.bandwidth},
                                                                {"inside", &study.inside},
                                                                {"between", &study.between}})
        *place = in.get<double>(key);
    if (in.has("expansion")) {
        const auto expansion = in.all<double>("expansion");
        if (expansion.size() != 2)
            in.wrong("expansion is [bytes, bytes per second]");
        else
            study.expansion = expansion[0], study.expansionBandwidth = expansion[1];
    }
    study.splits = in.all<std::int64_t>("splits");
    if (const Json none = Json::object(); in.has("prices")) {
        Input prices(in.object("prices", none));
        study.prices = {prices.get<double>("device"), prices.get<double>("memory"),
                        prices.get<double>("expansion", 0.0), prices.get<double>("network", 0.0)};
        if (!prices.problem().empty()) in.wrong("prices: " + prices.problem());
    }
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto answer, studyCluster(study));
    const auto digits = [](double value, double scale) { return std::round(value * scale) / scale; };
    Json rows = Json::array();
    for (const ClusterSplit& row : answer.rows) {
        const char* limit = row.limit == ClusterSplit::Limit::Network  ? "network"
                            : row.limit == ClusterSplit::Limit::Memory ? "memory"
                                                                       : "compute";
        rows.push_back({{"M", row.model},
                        {"D", row.data},
                        {"gb", digits(row.bytes / 1e9, 1e3)},
                        {"fits", row.fits},
                        {"seconds",
                         {digits(row.compute, 1e4), digits(row.modelNetwork, 1e4), digits(row.dataNetwork, 1e4),
                          digits(row.step(), 1e4)}},
                        {"limit", limit}});
    }
    return Solved{{{"rows", rows}, {"best", answer.best ? Json(*answer.best) : Json(nullptr)}},
                  pictureOf(study, answer)};
}

Result<Solved> reshard(Input& in, const Progress& progress)
{
    ReshardingProblem problem;
    problem.shape = in.all<std::int64_t>("shape");
    for (const auto& [key, mesh] : {std::pair{"src", &problem.from}, std::pair{"dst", &problem.to}}) {
        const auto sizes = in.all<int>(key);
        if (sizes.size() != 2)
            in.wrong(fmt::format("{} is [hosts, devices of each]", key));
        else
            *mesh = {sizes[0], sizes[1]};
    }
    problem.fromLayout = in.table<int>("src_layout");
    problem.toLayout = in.table<int>("dst_layout");
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto plan, planResharding(problem, progress));
    Json placed = Json::array();
    const auto share = [&](const Fraction& part) { return fraction(part.numerator, part.denominator * plan.elements); };
    for (const PlacedTask& one : plan.placed) {
        const UnitTask& task = plan.tasks[static_cast<std::size_t>(one.task)];
        placed.push_back({{"first", task.first},
                          {"size", task.size},
                          {"sender", one.sender},
                          {"receivers", task.receivers},
                          {"start", share({one.start, 1})},
                          {"end", share({one.end, 1})}});
    }
    return Solved{{{"tasks", plan.tasks.size()},
                   {"send_recv", share(plan.sendReceive)},
                   {"one_copy", share(plan.oneCopy)},
                   {"bound", share(plan.bound)},
                   {"greedy", share({plan.balanced, 1})},
                   {"optimum", share({plan.best, 1})},
                   {"proven", plan.proven},
                   {"plan", placed}},
                  pictureOf(problem, plan)};
}

Result<Solved> intraOperator(Input& in, const Progress& progress)
{
    IntraOperatorProblem problem;
    problem.cost = in.table<double>("cost");
    for (const Json& one : in.list("edges")) {
        if (!one.is_array() || one.size() != 3) {
            in.wrong("an edge is [from, to, costs]");
            break;
        }
        problem.edges.push_back(
            {in.read<int>(one[0], "edges"), in.read<int>(one[1], "edges"), in.all<double>(one[2], "edges")});
    }
    if (in.has("forbidden"))
        for (const Json& one : in.list("forbidden")) {
            if (!one.is_array() || one.size() != 3 || !one[2].is_array()) {
                in.wrong("forbidden has [from, to, pairs of strategies]");
                break;
            }
            const int from = in.read<int>(one[0], "forbidden"), to = in.read<int>(one[1], "forbidden");
            const auto count = [&](int op) {
                return op < 0 || op >= static_cast<int>(problem.cost.size())
                           ? std::size_t{0}
                           : problem.cost[static_cast<std::size_t>(op)].size();
            };
            const std::size_t rows = count(from), columns = count(to);
            if (rows == 0 || columns == 0 || rows > 1000 || columns > 1000) {
                in.wrong("forbidden names an operator that is not there");
                break;
            }
            IntraOperatorProblem::Edge edge{from, to, std::vector<double>(rows * columns, 0)};
            for (const Json& pair : one[2]) {
                const auto both = in.all<std::uint32_t>(pair, "forbidden");
                if (both.size() != 2 || both[0] >= rows || both[1] >= columns) {
                    in.wrong(fmt::format("forbidden: operators {} and {} have no such strategies", from, to));
                    break;
                }
                edge.cost[both[0] * columns + both[1]] = std::numeric_limits<double>::infinity();
            }
            problem.edges.push_back(std::move(edge));
        }
    if (const Json none = Json::object(); in.has("memory")) {
        Input memory(in.object("memory", none));
        problem.cap = memory.get<double>("cap");
        for (const Json& row : memory.list("rows")) {
            if (!row.is_array()) memory.wrong("rows is not a list of lists");
            problem.rows.emplace_back();
            for (const Json& one : row.is_array() ? row : Json::array()) {
                if (!one.is_array() || one.size() != 2)
                    memory.wrong("a row has [operator, sizes]");
                else
                    problem.rows.back().memory.emplace_back(memory.read<int>(one[0], "rows"),
                                                            memory.all<double>(one[1], "rows"));
            }
        }
        if (!memory.problem().empty()) in.wrong("memory: " + memory.problem());
    }
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto plan, planIntraOperator(problem, progress));
    PlannerPicture picture = pictureOf(problem, plan);
    if (!plan) return Solved{{{"objective", nullptr}}, std::move(picture)};
    return Solved{{{"objective", orNull(plan->cost)},
                   {"pick", plan->pick},
                   {"proven", plan->proven},
                   {"bound", orNull(plan->bound)},
                   {"method", plan->method}},
                  std::move(picture)};
}

Result<Solved> perceptron(Input& in, const Progress&)
{
    const PerceptronProblem problem{in.get<double>("b"),          in.get<double>("h"),
                                    in.get<double>("f"),          in.get<double>("n"),
                                    in.get<double>("alpha"),      in.get<double>("beta"),
                                    in.get<double>("bytes", 4.0), in.get<double>("flop_cost", 0.0)};
    STAGEWRIGHT_CHECK(whole(in));
    STAGEWRIGHT_TRY(const auto plan, planPerceptron(problem));
    Json choices = Json::array();
    for (const auto& [first, second] : plan.choices) choices.push_back({first, second});
    return Solved{{{"cost", orNull(plan.cost)}, {"choices", choices}}, pictureOf(problem, plan)};
}

// A line for each member of the input.
std::string written(const Json& problem)
{
    std::string out = "{\"program\": " + problem["program"].dump() + ",\n \"input\": {";
    bool first = true;
    for (const auto& [key, value] : problem["input"].items()) {
        out += (first ? "\n  " : ",\n  ") + Json(key).dump() + ": " + value.dump();
        first = false;
    }
    return out + "}}\n";
}

struct Planner {
    PlannerInfo info;
    Solver solve;
    const char* key; // of the answer: null where nothing fits; "": there is always a plan
};
constexpr auto planners = std::to_array<Planner>({
    {{"alpa_inter", "Alpa: stages on submeshes"}, alpaInter, "latency"},
    {{"intra_ilp", "Alpa: a strategy by operator"}, intraOperator, "objective"},
    {{"mlp_sharding", "A perceptron on devices"}, perceptron, ""},
    {{"reshard", "Resharding between meshes"}, reshard, ""},
    {{"layerwise", "A strategy for each layer"}, layerwise, "time"},
    {{"merak", "Merak: cuts, recomputation"}, merak, "slowest_stage"},
    {{"cephalo", "Cephalo: unequal devices"}, cephalo, "time"},
    {{"comet", "COMET: what limits a cluster"}, comet, "best"},
    {{"jigsaw", "Jigsaw: jobs on shared GPUs"}, jigsaw, ""},
    {{"residency", "Pieces of state under a cap"}, solveResidency, "by_cap"},
    {{"chunks", "PatrickStar: tensors in chunks"}, solveChunks, "result"},
    {{"buckets", "AxoNN: optimizer in buckets"}, solveBuckets, ""},
    {{"owners", "DP-KFAC: owners of layers"}, solveOwners, ""},
    {{"fill", "PipeFisher: work in idle time"}, solveFilling, ""},
});
constexpr auto kindsWithExamples = std::to_array<PlannerInfo>({
    {"merak:recompute", "Merak: recomputation by stage"},
    {"merak:step", "Merak: 1F1B that recomputes"},
    {"merak:subpipe", "Merak: halves of a batch"},
});

} // namespace

std::span<const PlannerInfo> allPlanners()
{
    static const auto infos = [] {
        std::array<PlannerInfo, planners.size()> out;
        std::transform(planners.begin(), planners.end(), out.begin(), [](const Planner& one) { return one.info; });
        return out;
    }();
    return infos;
}

std::vector<PlannerInfo> allExamples()
{
    std::vector<PlannerInfo> out;
    for (const PlannerInfo& one : allPlanners()) {
        out.push_back(one);
        for (const PlannerInfo& kind : kindsWithExamples)
            if (kind.program.substr(0, kind.program.find(':')) == one.program) out.push_back(kind);
    }
    return out;
}

Result<std::string> exampleProblem(std::string_view name)
{
    std::string names;
    for (const PlannerInfo& one : allExamples()) {
        if (one.program == name)
            return written({{"program", std::string(name.substr(0, name.find(':')))}, {"input", exampleInput(name)}});
        names += fmt::format("{}{}", names.empty() ? "" : ", ", one.program);
    }
    return fail(ErrorCode::Usage, fmt::format("there is no planner '{}'", name), "known are " + names);
}

std::string exampleLike(std::string_view text)
{
    const Json json = readForeignJson<Json>(text);
    std::string program = programOf(text);
    if (program.empty() || !json.contains("input") || !json["input"].is_object()) return program;
    const auto kind = json["input"].find("kind");
    if (kind == json["input"].end() || !kind->is_string()) return program;
    const std::string name = program + ":" + kind->get<std::string>();
    const bool known = std::any_of(kindsWithExamples.begin(), kindsWithExamples.end(),
                                   [&](const PlannerInfo& one) { return one.program == name; });
    return known ? name : program;
}

std::string programOf(std::string_view text)
{
    const Json json = readForeignJson<Json>(text);
    return json.is_object() && json.contains("program") && json["program"].is_string()
               ? json["program"].get<std::string>()
               : std::string();
}

std::vector<ProblemNumber> numbersOf(std::string_view text)
{
    std::vector<ProblemNumber> out;
    const Json json = readForeignJson<Json>(text);
    if (!json.is_object() || !json.contains("program") || !json.contains("input") || !json["input"].is_object())
        return out;
    for (const auto& [key, value] : json["input"].items())
        if (value.is_number() && std::isfinite(value.get<double>()))
            out.push_back({key, value.get<double>(), value.is_number_integer()});
    return out;
}

Result<std::string> withNumber(std::string_view text, std::string_view key, double value)
{
    Json json = readForeignJson<Json>(text);
    std::string keys;
    for (const ProblemNumber& number : numbersOf(text)) {
        keys += fmt::format("{}{}", keys.empty() ? "" : ", ", number.key);
        if (number.key != key) continue;
        Json& place = json["input"][number.key];
        if (value == std::floor(value) && std::abs(value) < 9e15)
            place = static_cast<std::int64_t>(value);
        else
            place = value;
        return written(json);
    }
    return fail(ErrorCode::Usage, fmt::format("the problem has no number '{}'", key),
                keys.empty() ? "it has none" : "it has " + keys);
}

namespace {

// A problem with its program and input.
Result<Json> readProblem(std::string_view text)
{
    Json json = readForeignJson<Json>(text);
    if (!json.is_object() || !json.contains("program") || !json["program"].is_string() || !json.contains("input") ||
        !json["input"].is_object())
        return fail(ErrorCode::Unreadable, "it is not a problem: an object with program and input is expected",
                    "see docs/planners.md");
    return json;
}

} // namespace

bool hasLayout(std::string_view program) { return program == "alpa_inter"; }

bool takesRuns(std::string_view program) { return program == "jigsaw" || program == "cephalo"; }

Result<InterOperatorProblem> interOperatorProblem(std::string_view text)
{
    STAGEWRIGHT_TRY(const Json json, readProblem(text));
    if (!hasLayout(json["program"].get<std::string>()))
        return fail(ErrorCode::Usage, "only plans of alpa_inter are layouts", "omit --save-layout");
    Input in(json["input"]);
    return readInterOperator(in);
}

Result<UnevenProblem> unevenProblem(std::string_view text)
{
    STAGEWRIGHT_TRY(const Json json, readProblem(text));
    if (const auto program = json["program"].get<std::string>(); program != "cephalo")
        return fail(ErrorCode::Usage, fmt::format("it is a problem of {}, not of cephalo", program.substr(0, 60)),
                    "'stagewright solve --example cephalo' prints one");
    Input in(json["input"]);
    return readUneven(in);
}

Result<PlannerAnswer> solveProblem(std::string_view text, const Progress& progress)
{
    STAGEWRIGHT_TRY(const Json json, readProblem(text));
    const auto name = json["program"].get<std::string>();
    std::string names;
    for (const Planner& planner : planners) {
        if (planner.info.program != name) {
            names += fmt::format("{}{}", names.empty() ? "" : ", ", planner.info.program);
            continue;
        }
        Input in(json["input"]);
        STAGEWRIGHT_TRY(auto answer, planner.solve(in, progress));
        const auto value = answer.json.find(planner.key);
        return PlannerAnswer{name, answer.json.dump(2), value == answer.json.end() || !value->is_null(),
                             std::move(answer.picture)};
    }
    return fail(ErrorCode::Unreadable, fmt::format("there is no planner '{}'", name.substr(0, 60)),
                "known are " + names);
}

} // namespace stagewright
