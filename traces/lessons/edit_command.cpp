#include "traces/lessons/edit_command.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "schedules/edit/edit_ops.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/step/step_deadlock.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

struct Verb {
    std::string_view name;
    std::string_view tool;
    bool words;
};
constexpr std::array<Verb, 14> verbs = {{{"load", "library", true},
                                         {"move", "move", true},
                                         {"swap", "move", true},
                                         {"rank", "text", true},
                                         {"begin", "text", true},
                                         {"warmup", "warmup", true},
                                         {"flush", "move", true},
                                         {"split", "split", false},
                                         {"merge", "split", false},
                                         {"lag", "lag", true},
                                         {"place", "place", true},
                                         {"group", "group", true},
                                         {"set", "settings", true},
                                         {"serial", "move", false}}};

const Verb* verbOf(std::string_view name)
{
    const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == name; });
    return found == verbs.end() ? nullptr : &*found;
}

tl::unexpected<Error> wrong(const EditCommand& edit, const std::string& what, const std::string& remedy = {})
{
    return fail(ErrorCode::Usage, fmt::format("edit '{}': {}", edit.text(), what), remedy);
}

struct OpSpot {
    std::size_t rank = 0;
    std::size_t position = 0;
};

Result<OpSpot> find(const EditCommand& edit, const Schedule& schedule, const std::string& text)
{
    auto op = parseOp(text);
    if (!op) return wrong(edit, op.error().message, op.error().remedy);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const auto& list = schedule.order[rank];
        const auto found = std::find(list.begin(), list.end(), *op);
        if (found != list.end()) return OpSpot{rank, static_cast<std::size_t>(found - list.begin())};
    }
    return wrong(edit, fmt::format("there is no {} on the canvas", text));
}

// Pairs survive no change of their rank's list.
void unpair(Schedule& schedule, std::size_t rank)
{
    if (rank < schedule.paired.size()) schedule.paired[rank].clear();
}

Result<Canvas> moved(const EditCommand& edit, Canvas canvas)
{
    const auto words = partsOf(edit.words, " ");
    if (words.size() != 3 || (words[1] != "after" && words[1] != "before"))
        return wrong(edit, "what to move is missing", "write move 3B0 after 3F0");
    STAGEWRIGHT_TRY(auto from, find(edit, canvas.schedule, words[0]));
    STAGEWRIGHT_TRY(auto to, find(edit, canvas.schedule, words[2]));
    if (from.rank != to.rank)
        return wrong(edit, fmt::format("{} is on rank {}, {} on rank {}", words[0], from.rank, words[2], to.rank));
    if (from.position == to.position) return canvas;
    auto& list = canvas.schedule.order[from.rank];
    const Op op = list[from.position];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(from.position));
    std::size_t at = to.position - (from.position < to.position ? 1 : 0);
    if (words[1] == "after") ++at;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), op);
    unpair(canvas.schedule, from.rank);
    return canvas;
}

Result<Canvas> swapped(const EditCommand& edit, Canvas canvas)
{
    const auto words = partsOf(edit.words, " ");
    if (words.size() != 2) return wrong(edit, "it needs two ops", "write swap 3F1 3B0");
    STAGEWRIGHT_TRY(auto a, find(edit, canvas.schedule, words[0]));
    STAGEWRIGHT_TRY(auto b, find(edit, canvas.schedule, words[1]));
    if (a.rank != b.rank)
        return wrong(edit, fmt::format("{} is on rank {}, {} on rank {}", words[0], a.rank, words[1], b.rank));
    std::swap(canvas.schedule.order[a.rank][a.position], canvas.schedule.order[b.rank][b.position]);
    unpair(canvas.schedule, a.rank);
    return canvas;
}

// "3: 3F0 3B0 …": a new list for the rank (rank), or these ops first (begin).
Result<Canvas> listed(const EditCommand& edit, Canvas canvas)
{
    const auto [number, row] = keyValueOf(edit.words, ':');
    const auto rank = row ? wholeOf(number) : std::nullopt;
    if (!rank || *rank < 0 || static_cast<std::size_t>(*rank) >= canvas.schedule.order.size())
        return wrong(
            edit, "it names no rank on the canvas",
            fmt::format("write {} 0: 0F0 0B0; ranks are 0 to {}", edit.verb, canvas.schedule.order.size() - 1));
    auto& list = canvas.schedule.order[static_cast<std::size_t>(*rank)];
    std::vector<Op> ops;
    for (const std::string& word : partsOf(*row, " ,")) {
        auto op = parseOp(word);
        if (!op) return wrong(edit, op.error().message, op.error().remedy);
        if (op->stage >= canvas.schedule.stages)
            return wrong(edit, fmt::format("{} names stage {}, stages are 0 to {}", word, op->stage,
                                           canvas.schedule.stages - 1));
        ops.push_back(*op);
    }
    if (edit.verb == "begin")
        for (const Op& op : list)
            if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
    list = std::move(ops);
    unpair(canvas.schedule, static_cast<std::size_t>(*rank));
    return canvas;
}

Result<std::vector<int>> perRank(const EditCommand& edit, const Canvas& canvas)
{
    const auto numbers = numbersOf(edit.words);
    if (!numbers || numbers->size() != canvas.schedule.order.size())
        return wrong(edit, fmt::format("it needs a number for each of {} ranks", canvas.schedule.order.size()),
                     fmt::format("write {} 4,3,2,1", edit.verb));
    std::vector<int> out;
    for (const double number : *numbers) {
        if (number < 0 || number > 4096 || number != std::floor(number))
            return wrong(edit, fmt::format("{} is not a count", number));
        out.push_back(static_cast<int>(number));
    }
    return out;
}

// Forwards and returns of a list in their order; the ops around a return (R before it, W after it) stay with it.
Result<Canvas> warmedUp(const EditCommand& edit, Canvas canvas)
{
    STAGEWRIGHT_TRY(auto counts, perRank(edit, canvas));
    for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) {
        std::vector<Op> forwards;
        std::vector<std::vector<Op>> returns;
        for (const Op& op : canvas.schedule.order[rank]) {
            if (isForward(op.kind))
                forwards.push_back(op);
            else if (isReturn(op.kind))
                returns.push_back({op});
            else if (!returns.empty())
                returns.back().push_back(op);
            else
                return wrong(edit, fmt::format("rank {} starts with {}, which is neither F nor B", rank, toText(op)));
        }
        const auto warm = static_cast<std::size_t>(counts[rank]);
        if (warm == 0)
            return wrong(edit, fmt::format("rank {} can't start with a backward", rank),
                         "warm-ups are at least 1: its first forward");
        std::vector<Op> list(forwards.begin(),
                             forwards.begin() + static_cast<std::ptrdiff_t>(std::min(warm, forwards.size())));
        std::size_t f = list.size();
        for (const auto& one : returns) {
            list.insert(list.end(), one.begin(), one.end());
            if (f < forwards.size()) list.push_back(forwards[f++]);
        }
        list.insert(list.end(), forwards.begin() + static_cast<std::ptrdiff_t>(f), forwards.end());
        canvas.schedule.order[rank] = std::move(list);
        unpair(canvas.schedule, rank);
    }
    return canvas;
}

Result<Canvas> flushed(const EditCommand& edit, Canvas canvas)
{
    const auto round = wholeOf(edit.words);
    if (!round || *round < 1) return wrong(edit, "it needs a number of microbatches", "write flush 4");
    for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) {
        auto& list = canvas.schedule.order[rank];
        const auto key = [&](const Op& op) { return std::pair(op.microbatch / *round, isForward(op.kind) ? 0 : 1); };
        std::stable_sort(list.begin(), list.end(), [&](const Op& a, const Op& b) { return key(a) < key(b); });
        unpair(canvas.schedule, rank);
    }
    return canvas;
}

Canvas splitBackwards(Canvas canvas)
{
    canvas.schedule = splitEveryBackward(canvas.schedule);
    for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) unpair(canvas.schedule, rank);
    return canvas;
}

Canvas merged(Canvas canvas)
{
    for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) {
        std::vector<Op> list;
        for (const Op& op : canvas.schedule.order[rank]) {
            if (isWeightGrad(op.kind)) continue;
            list.push_back(isInputGrad(op.kind) ? asBackward(op) : op);
        }
        canvas.schedule.order[rank] = std::move(list);
        unpair(canvas.schedule, rank);
    }
    return canvas;
}

Result<Canvas> lagged(const EditCommand& edit, Canvas canvas)
{
    STAGEWRIGHT_TRY(auto counts, perRank(edit, canvas));
    for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) {
        const auto lag = static_cast<std::size_t>(counts[rank]);
        std::vector<Op> list, waiting;
        for (const Op& op : canvas.schedule.order[rank]) {
            if (isWeightGrad(op.kind)) continue;
            list.push_back(op);
            if (!isInputGrad(op.kind)) continue;
            waiting.push_back(asWeightGrad(op));
            if (waiting.size() <= lag) continue;
            list.push_back(waiting.front());
            waiting.erase(waiting.begin());
        }
        list.insert(list.end(), waiting.begin(), waiting.end());
        canvas.schedule.order[rank] = std::move(list);
        unpair(canvas.schedule, rank);
    }
    return canvas;
}

Result<Canvas> placed(const EditCommand& edit, Canvas canvas)
{
    const auto words = partsOf(edit.words, " ");
    if (words.size() > 2 || (words.size() == 2 && parseOp(words[1])))
        return wrong(edit, "an edit places one op", "separate edits by ;, as in place 0F0; place 1F0");
    auto op = words.empty() ? parseOp("") : parseOp(words[0]);
    if (!op) return wrong(edit, "the op to place is missing", "write place 1F1 3");
    for (const auto& list : canvas.schedule.order) // placed already: nothing is left to do
        if (std::find(list.begin(), list.end(), *op) != list.end()) return canvas;
    const auto tray = trayOf(canvas.schedule);
    for (std::size_t rank = 0; rank < tray.size(); ++rank) {
        if (std::find(tray[rank].begin(), tray[rank].end(), *op) == tray[rank].end()) continue;
        auto& list = canvas.schedule.order[rank];
        std::size_t at = list.size();
        if (words.size() == 2) {
            const auto position = wholeOf(words[1]);
            if (!position || *position < 0 || static_cast<std::size_t>(*position) > list.size())
                return wrong(edit,
                             fmt::format("there is no position {}; rank {} has {} ops", words[1], rank, list.size()));
            at = static_cast<std::size_t>(*position);
        }
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), *op);
        unpair(canvas.schedule, rank);
        return canvas;
    }
    return wrong(edit, fmt::format("{} is not in the tray", words[0]));
}

Result<Canvas> grouped(const EditCommand& edit, Canvas canvas)
{
    const auto words = partsOf(edit.words, " ");
    if (words.size() < 2) return wrong(edit, "it needs two messages or more", "write group 1SEND_B0 1RECV_F1");
    for (const std::string& word : words)
        if (auto op = parseOp(word); !op || !isMessage(op->kind))
            return wrong(edit, fmt::format("{} is not a message", word), "write group 1SEND_B0 1RECV_F1");
    STAGEWRIGHT_TRY(canvas.schedule, shownOn(canvas));
    canvas.schedule.paired.resize(canvas.schedule.order.size());
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        STAGEWRIGHT_TRY(auto a, find(edit, canvas.schedule, words[i]));
        STAGEWRIGHT_TRY(auto b, find(edit, canvas.schedule, words[i + 1]));
        if (a.rank != b.rank || b.position != a.position + 1)
            return wrong(edit, fmt::format("{} does not directly follow {}", words[i + 1], words[i]));
        auto& pairs = canvas.schedule.paired[a.rank];
        const auto position = static_cast<std::uint32_t>(a.position);
        if (std::find(pairs.begin(), pairs.end(), position) == pairs.end()) pairs.push_back(position);
        std::sort(pairs.begin(), pairs.end());
    }
    return canvas;
}

// Recomputations are rebuilt from the setting; library orders and empty ones follow a changed shape.
Result<Canvas> reset(const EditCommand& edit, Canvas canvas)
{
    auto settings = withSettings(canvas.settings, edit.words);
    if (!settings) return wrong(edit, settings.error().message, settings.error().remedy);
    const Settings before = canvas.settings;
    canvas.settings = std::move(*settings);
    const Settings& now = canvas.settings;
    const auto without = [&canvas](const auto& wanted) {
        for (std::size_t rank = 0; rank < canvas.schedule.order.size(); ++rank) {
            auto& list = canvas.schedule.order[rank];
            if (std::erase_if(list, [&](const Op& op) { return wanted(op.kind); }) > 0) unpair(canvas.schedule, rank);
        }
    };
    if (now.recompute != before.recompute || now.hoist != before.hoist) without(isRecompute);
    if (now.offload != before.offload) without(isCopy);
    if (now.fill != before.fill) without(fillsGaps);
    if (now.replicas != before.replicas || now.shard != before.shard || now.gather != before.gather ||
        now.reduce != before.reduce)
        canvas.schedule = withoutCollectives(canvas.schedule);
    if (now.lower != before.lower || now.sends != before.sends) canvas.schedule = withoutMessages(canvas.schedule);
    const bool reshaped =
        now.ranks != before.ranks || now.microbatches != before.microbatches || now.chunks != before.chunks;
    if (!reshaped) return canvas;
    if (canvas.schedule.name == "empty" || canvas.schedule.opCount() == 0) {
        canvas.schedule = emptySchedule(now);
        return canvas;
    }
    auto made = makeFor(canvas.schedule.name.substr(0, canvas.schedule.name.find(' ')), now);
    if (!made) return wrong(edit, made.error().message, made.error().remedy);
    canvas.schedule = std::move(*made);
    return canvas;
}

} // namespace

std::string_view EditCommand::tool() const
{
    if (verb == "set") {
        if (words.starts_with("layers=")) return "layers";
        if (words.starts_with("recompute=") || words.starts_with("hoist")) return "recompute";
        if (words.starts_with("lower=")) return "group";
        if (words.starts_with("shard=")) return "share";
        for (const char* key : {"replicas=", "gather=", "reduce="})
            if (words.starts_with(key)) return "shard";
        static constexpr std::pair<std::string_view, std::string_view> sliders[] = {{"microbatches=", "microbatches"},
                                                                                    {"chunks=", "chunks"},
                                                                                    {"comm=", "latency"},
                                                                                    {"costs=", "costs"},
                                                                                    {"cap=", "cap"},
                                                                                    {"slow=", "slow"}};
        for (const auto& [key, slider] : sliders)
            if (words.starts_with(key)) return slider;
    }
    const Verb* known = verbOf(verb);
    return known ? known->tool : std::string_view();
}

Result<std::vector<EditCommand>> parseEdits(std::string_view text)
{
    std::vector<EditCommand> out;
    for (const std::string& part : partsOf(text, ";")) {
        const auto [name, rest] = keyValueOf(part, ' ');
        EditCommand edit{std::string(name), std::string(trimmed(rest.value_or("")))};
        const Verb* verb = verbOf(edit.verb);
        if (!verb) {
            std::string known;
            for (const Verb& one : verbs) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
            return fail(ErrorCode::Usage, fmt::format("'{}' is not an edit", edit.verb), "edits are " + known);
        }
        if (verb->words == edit.words.empty())
            return fail(ErrorCode::Usage, fmt::format("edit '{}' {}", edit.text(),
                                                      verb->words ? "needs arguments" : "takes no arguments"));
        out.push_back(std::move(edit));
    }
    if (out.empty()) return fail(ErrorCode::Usage, "the edit is empty", "write load 1f1b, move 3B0 after 3F0 …");
    return out;
}

Result<Canvas> applyEdit(const EditCommand& edit, Canvas canvas)
{
    if (edit.verb == "load") {
        auto made = makeFor(edit.words, canvas.settings);
        if (!made) return wrong(edit, made.error().message, made.error().remedy);
        canvas.schedule = std::move(*made);
        return canvas;
    }
    if (edit.verb == "set") return reset(edit, std::move(canvas));
    if (edit.verb == "group") return grouped(edit, std::move(canvas));
    if (edit.verb == "move") return moved(edit, std::move(canvas));
    if (edit.verb == "swap") return swapped(edit, std::move(canvas));
    if (edit.verb == "rank" || edit.verb == "begin") return listed(edit, std::move(canvas));
    if (edit.verb == "warmup") return warmedUp(edit, std::move(canvas));
    if (edit.verb == "flush") return flushed(edit, std::move(canvas));
    if (edit.verb == "split") return splitBackwards(std::move(canvas));
    if (edit.verb == "merge") return merged(std::move(canvas));
    if (edit.verb == "serial") {
        canvas.schedule = serialised(std::move(canvas.schedule));
        return canvas;
    }
    if (edit.verb == "lag") return lagged(edit, std::move(canvas));
    if (edit.verb == "place") return placed(edit, std::move(canvas));
    return wrong(edit, "it is not an edit");
}

Result<Canvas> applyEdits(const std::vector<EditCommand>& edits, Canvas canvas)
{
    for (const EditCommand& edit : edits) {
        auto done = applyEdit(edit, std::move(canvas));
        if (!done) return done;
        canvas = std::move(*done);
    }
    return canvas;
}

Result<Schedule> shownOn(const Canvas& canvas) { return passedThrough(canvas.schedule, canvas.settings); }

Schedule emptySchedule(const Settings& settings)
{
    Schedule out;
    out.name = "empty";
    out.ranks = settings.ranks;
    out.stages = settings.ranks * std::max(settings.chunks, 1);
    out.microbatches = settings.microbatches;
    out.placement = Placement::loop(out.ranks, out.stages);
    out.order.resize(static_cast<std::size_t>(out.ranks));
    return out;
}

std::vector<std::vector<Op>> trayOf(const Schedule& schedule)
{
    std::set<Op> there;
    for (const auto& list : schedule.order) there.insert(list.begin(), list.end());
    const bool splits = schedule.splitsBackward();
    std::vector<std::vector<Op>> tray(schedule.order.size());
    const auto add = [&](const Op& op) {
        if (there.count(op) > 0) return;
        const auto rank = static_cast<std::size_t>(schedule.placement.rankOf(op.stage, op.microbatch));
        if (rank < tray.size()) tray[rank].push_back(op);
    };
    for (int j = 0; j < schedule.microbatches; ++j)
        for (int stage = 0; stage < std::min(schedule.stages, schedule.placement.stages()); ++stage) {
            const Op backward = makeBackward(stage, j);
            add(makeForward(stage, j));
            const bool halves = splits || there.count(asInputGrad(backward)) > 0;
            if (halves && there.count(backward) == 0) {
                add(asInputGrad(backward));
                add(asWeightGrad(backward));
            } else {
                add(backward);
            }
        }
    return tray;
}

Schedule runnablePart(const Schedule& schedule)
{
    Schedule out = schedule;
    out.paired.clear();
    const auto cells = cellsOf(out);
    if (!cells) return schedule; // an op points outside it, which simulating says
    const std::vector<std::size_t> runnable = runnableOps(out, OpIndex(out, *cells));
    for (std::size_t rank = 0; rank < out.order.size(); ++rank) out.order[rank].resize(runnable[rank]);
    return out;
}

} // namespace stagewright::lessons
