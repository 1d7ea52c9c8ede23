#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/option_set.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "schedules/base/op_number.h"
#include "schedules/text/diff.h"

namespace stagewright {

namespace {

struct DiffChoice {
    std::string a;
    std::string b;
    Setup setup;
    int most = 20;
};

// A name next to a CSV takes the CSV's shape unless one is given, so that the two can be compared.
Result<std::pair<Schedule, Schedule>> readBoth(const DiffChoice& options, Session& session)
{
    Setup shape = options.setup;
    const SetupSources sources = sourcesOf(session);
    const bool fileFirst = namesFile(options.a) || !namesFile(options.b);
    STAGEWRIGHT_TRY(auto first, readSchedule(fileFirst ? options.a : options.b, shape, sources));
    const bool shapeGiven = shape.names("--ranks") || shape.names("--microbatches") || shape.names("--chunks");
    if (!shapeGiven && namesFile(options.a) != namesFile(options.b)) {
        shape.ranks = first.ranks;
        shape.microbatches = first.microbatches;
        if (first.stages % first.ranks == 0 && first.stages > first.ranks) shape.chunks = first.stages / first.ranks;
    }
    STAGEWRIGHT_TRY(auto second, readSchedule(fileFirst ? options.b : options.a, shape, sources));
    if (!options.setup.lower.empty()) {
        const auto rule = parseLowering(options.setup.lower);
        for (Schedule* schedule : {&first, &second}) {
            auto lowered = lower(*schedule, *rule);
            if (!lowered) return tl::unexpected(std::move(lowered.error()).with(schedule->name));
            *schedule = std::move(*lowered);
        }
    }
    if (fileFirst) return std::pair{std::move(first), std::move(second)};
    return std::pair{std::move(second), std::move(first)};
}

Json placed(const std::vector<PlacedOp>& ops)
{
    Json out = Json::array();
    for (const PlacedOp& op : ops) out.push_back({{"rank", op.rank}, {"position", op.position}, {"op", toText(op.op)}});
    return out;
}

Json asJson(const ScheduleDiff& diff)
{
    Json object;
    object["same"] = diff.same();
    object["distance"] = diff.distance();
    object["shape"] = diff.shape;
    Json first = Json::array();
    for (const RankDifference& difference : diff.first)
        first.push_back({{"rank", difference.rank},
                         {"position", difference.position},
                         {"a", difference.a ? Json(toText(*difference.a)) : Json(nullptr)},
                         {"b", difference.b ? Json(toText(*difference.b)) : Json(nullptr)}});
    object["first"] = std::move(first);
    Json moved = Json::array();
    for (const MovedOp& op : diff.moved)
        moved.push_back({{"rank", op.rank}, {"op", toText(op.op)}, {"from", op.fromPosition}, {"to", op.toPosition}});
    object["moved"] = std::move(moved);
    object["only_a"] = placed(diff.onlyA);
    object["only_b"] = placed(diff.onlyB);
    return object;
}

Result<int> runDiff(const DiffChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(auto both, readBoth(options, session));
    const auto& [a, b] = both;
    const ScheduleDiff diff = diffSchedules(a, b);
    if (session.json) {
        Json object{{"a", a.name}, {"b", b.name}};
        object.update(asJson(diff));
        session.answer(object);
    }
    if (diff.same()) {
        session.out(fmt::format("{} and {} have the same order\n", a.name, b.name));
        return ExitDone;
    }
    for (const std::string& text : diff.shape) session.out(text + "\n");
    session.out(fmt::format("{} moved, {} only in {}, {} only in {}\n",
                            plural(static_cast<long long>(diff.moved.size()), "op"), diff.onlyA.size(), a.name,
                            diff.onlyB.size(), b.name));
    session.out("first difference on each rank\n");
    for (const RankDifference& difference : diff.first)
        session.out("  " + describeFirst(difference, "in " + a.name, "in " + b.name) + "\n");
    int left = options.most;
    auto lines = [&](const char* title, const auto& ops, auto&& line) {
        if (ops.empty() || left <= 0) return;
        session.out(fmt::format("{}\n", title));
        std::size_t shown = 0;
        for (; shown < ops.size() && left > 0; ++shown, --left) session.out("  " + line(ops[shown]) + "\n");
        if (shown < ops.size()) session.out(fmt::format("  {} more: --most shows them\n", ops.size() - shown));
    };
    lines("moved", diff.moved, [](const MovedOp& op) {
        return fmt::format("rank {}: {} from op {} to op {}", op.rank, toText(op.op), opNumber(op.fromPosition),
                           opNumber(op.toPosition));
    });
    auto placedLine = [](const PlacedOp& op) {
        return fmt::format("rank {}, op {}: {}", op.rank, opNumber(op.position), toText(op.op));
    };
    lines(("only in " + a.name).c_str(), diff.onlyA, placedLine);
    lines(("only in " + b.name).c_str(), diff.onlyB, placedLine);
    return ExitDoesNotHold;
}

} // namespace

Command command_diff()
{
    return {"diff", "Compare the orders of two schedules: first difference on each rank, moved ops",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<DiffChoice>();
                verb.value("A", &options->a, "A schedule, by name or from a CSV").required();
                verb.value("B", &options->b, "The other schedule").required();
                addSetupOptions(verb, options->setup, SetupUse(SetupShape | SetupMessages));
                verb.value("--most", &options->most, "Number of moved, added and removed ops to list [20]")
                    .form("N")
                    .check(wholeNumber(0, 1'000'000));
                verb.notes("A name given with a CSV takes the CSV's shape. Messages are compared if both are lowered.\n"
                           "Exit code 0: the same order; 1: they differ.\n"
                           "Examples: stagewright diff 1f1b zb-h1 -p 4 -m 8\n"
                           "          stagewright diff mine.csv 1f1b");
                return [options](Session& session) { return runDiff(*options, session); };
            }};
}

} // namespace stagewright
