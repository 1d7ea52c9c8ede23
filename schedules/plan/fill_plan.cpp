#include "schedules/plan/fill_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"

namespace stagewright {

Result<FillRule> parseFill(std::string_view text)
{
    const auto wrong = [&] {
        return fail(
            ErrorCode::Usage, fmt::format("filling with '{}' is not known", text),
            "write kfac, kfac:pieces=12 (of a stage's inversion), kfac:cyclic, kfac:apart, kfac:step=2 (of the cycle)");
    };
    FillRule rule;
    const std::vector<std::string_view> parts = split(text, ":");
    if (parts.size() == 1 && parts.front() == "none") return rule;
    if (parts.empty() || parts.front() != "kfac") return wrong();
    rule.any = true;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const auto [key, value] = keyValueOf(parts[i]);
        const auto number = value ? wholeOf<int>(*value) : std::nullopt;
        if (key == "cyclic" && !value)
            rule.cyclic = true;
        else if (key == "apart" && !value)
            rule.apart = true;
        else if (key == "pieces" && number && *number >= 1 && *number <= 10'000)
            rule.pieces = *number;
        else if (key == "step" && number && *number >= 1)
            rule.step = *number;
        else
            return wrong();
    }
    return rule;
}

namespace {

// The pieces of one rank: what its works' items are.
struct RankWorks {
    std::vector<FillerWork> works;
    std::vector<std::vector<Op>> items; // by work
};

struct BusyPlace {
    Nanos start = 0, end = 0;
    std::size_t position = 0; // in the list
};

class CycleFiller {
public:
    CycleFiller(const Schedule& schedule, const CostModel& costs, const FillRule& rule, const SimResult& result)
        : m_schedule(schedule), m_costs(costs), m_rule(rule), m_result(result)
    {
    }

    Result<FilledCycle> run()
    {
        m_step = 0;
        for (const Nanos end : m_result.end) m_step = std::max(m_step, end);
        m_out.makespan = m_step;
        for (int rank = 0; rank < m_schedule.ranks; ++rank) STAGEWRIGHT_CHECK(fillRank(rank));
        for (const int steps : m_out.rankSteps) m_out.steps = std::max(m_out.steps, steps);
        insert();
        std::stable_sort(m_out.gaps.begin(), m_out.gaps.end(), [](const FilledGap& a, const FilledGap& b) {
            return std::pair(a.step, a.rank) < std::pair(b.step, b.rank);
        });
        return std::move(m_out);
    }

private:
    const std::vector<Op>& opsOf(int rank) const { return m_schedule.order[static_cast<std::size_t>(rank)]; }

    // Ops of compute lanes in time order; those that are issued together share their interval.
    void busyOf(int rank, std::vector<BusyOp>& busy, std::vector<BusyPlace>& places) const
    {
        const auto& ops = opsOf(rank);
        Nanos at = 0;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (m_costs.links.useOf(ops[i].kind) != ResourceUse::Compute) continue;
            const std::size_t id = m_result.indexOf(rank, i);
            const Nanos start = std::max(at, m_result.start[id]);
            at = std::max(start, m_result.end[id]);
            busy.push_back({start, at,
                            isForward(ops[i].kind)  ? BusyOp::Kind::Forward
                            : isReturn(ops[i].kind) ? BusyOp::Kind::Backward
                                                    : BusyOp::Kind::Other,
                            ops[i].stage});
            places.push_back({start, at, i});
        }
    }

    // A (and G) of each forward (backward) of a stage in the order of its list, then the inversions.
    Result<RankWorks> worksOf(int rank) const
    {
        RankWorks out;
        std::vector<std::pair<int, int>> factors; // by stage: its works A and G
        const std::vector<int> stages = m_schedule.placement.stagesOf(rank);
        for (const int stage : stages) {
            for (const bool inputs : {true, false}) {
                const OpKind kind = inputs ? OpKind::FactorA : OpKind::FactorG;
                std::vector<Op> items;
                for (const Op& op : opsOf(rank))
                    if (op.stage == stage && (inputs ? isForward(op.kind) : isReturn(op.kind)))
                        items.push_back(asKind(op, kind));
                STAGEWRIGHT_CHECK(add(out, rank, stage, std::move(items),
                                      inputs ? FillerWork::After::Forwards : FillerWork::After::Backwards, {}));
            }
        }
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const int a = static_cast<int>(2 * s), g = a + 1;
            const int first = (m_rule.pieces + 1) / 2;
            const auto pieces = [&](int from, int to) {
                std::vector<Op> items;
                for (int k = from; k < to; ++k) items.push_back(makePiece(OpKind::Invert, stages[s], k));
                return items;
            };
            std::vector<int> needs{a};
            if (m_rule.pieces == 1 || m_rule.both) needs.push_back(g);
            STAGEWRIGHT_CHECK(add(out, rank, stages[s], pieces(0, first), FillerWork::After::Works, std::move(needs)));
            if (m_rule.pieces > 1)
                STAGEWRIGHT_CHECK(add(out, rank, stages[s], pieces(first, m_rule.pieces), FillerWork::After::Works,
                                      m_rule.both ? std::vector<int>{a, g} : std::vector<int>{g}));
        }
        return prioritised(std::move(out));
    }

    Result<void> add(RankWorks& to, int rank, int stage, std::vector<Op> items, FillerWork::After after,
                     std::vector<int> needs) const
    {
        if (items.empty())
            return fail(ErrorCode::Usage,
                        fmt::format("stage {} has no backward on rank {}: it has no factor of gradients", stage, rank),
                        "fill a schedule in which every stage goes back");
        FillerWork work;
        work.name = ruleOf(items.front().kind).text;
        work.after = after;
        work.items = static_cast<int>(items.size());
        work.duration = m_costs.duration(items.front(), rank);
        work.needs = std::move(needs);
        work.of = stage;
        for (const Op& item : items) work.duration = std::max(work.duration, m_costs.duration(item, rank));
        if (work.duration < 1)
            return fail(ErrorCode::Usage, fmt::format("{} takes no time in these costs", toText(items.front())),
                        "give --costs F=1,B=2,FACTOR_A=0.2,FACTOR_G=0.2,INVERT=1, or pipefisher:bert-large@p100");
        to.works.push_back(std::move(work));
        to.items.push_back(std::move(items));
        return {};
    }

    // All factors of inputs, then all of gradients, then the inversions.
    static RankWorks prioritised(RankWorks in)
    {
        std::vector<std::size_t> order(in.works.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return in.items[a].front().kind < in.items[b].front().kind;
        });
        std::vector<int> places(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int>(i);
        RankWorks out;
        for (const std::size_t i : order) {
            for (int& need : in.works[i].needs) need = places[static_cast<std::size_t>(need)];
            out.works.push_back(std::move(in.works[i]));
            out.items.push_back(std::move(in.items[i]));
        }
        return out;
    }

    Result<void> fillRank(int rank)
    {
        std::vector<BusyOp> busy;
        std::vector<BusyPlace>& places = m_places.emplace_back();
        busyOf(rank, busy, places);
        STAGEWRIGHT_TRY(const RankWorks works, worksOf(rank));
        STAGEWRIGHT_TRY(const FilledGaps filled, fillGaps(busy, m_step, works.works, m_rule.cyclic));
        m_out.rankSteps.push_back(filled.steps);
        m_out.leastSteps.push_back(filled.leastSteps);
        for (const FillerWork& work : works.works) m_out.work += work.duration * work.items;
        const auto opOf = [&](int work, int item) {
            return works.items[static_cast<std::size_t>(work)][static_cast<std::size_t>(item)];
        };
        const std::size_t firstPiece = m_out.placed.size();
        for (const PlacedPiece& piece : filled.placed)
            m_out.placed.push_back({rank, piece.step, opOf(piece.work, piece.item), piece.start, piece.end});
        for (const auto& [work, item] : filled.unplaced)
            m_out.unplaced.push_back({rank, filled.steps - 1, opOf(work, item), m_step,
                                      m_step + works.works[static_cast<std::size_t>(work)].duration});
        Nanos longest = 0;
        std::vector<std::pair<Nanos, Nanos>> gaps;
        Nanos at = 0;
        for (const BusyPlace& place : places) {
            if (place.start > at) gaps.emplace_back(at, place.start);
            at = std::max(at, place.end);
        }
        if (at < m_step) gaps.emplace_back(at, m_step);
        for (const auto& [start, end] : gaps) longest = std::max(longest, end - start), m_out.idle += end - start;
        m_out.longestGap.push_back(longest);
        for (int step = 0; step < filled.steps; ++step)
            for (const auto& [start, end] : gaps) {
                FilledGap gap{rank, step, start, end};
                for (std::size_t i = firstPiece; i < m_out.placed.size(); ++i)
                    if (m_out.placed[i].step == step && m_out.placed[i].start >= start && m_out.placed[i].end <= end)
                        gap.holds.push_back(m_out.placed[i].op);
                for (const IdleRest& rest : filled.idle) {
                    if (rest.step != step || rest.end != end || rest.start < start) continue;
                    gap.rest = rest.end - rest.start;
                    gap.why = rest.why;
                    if (rest.work < 0) continue;
                    const FillerWork& next = works.works[static_cast<std::size_t>(rest.work)];
                    gap.next = fmt::format("{}{}", next.of, next.name);
                    gap.takes = next.duration;
                }
                m_out.gaps.push_back(std::move(gap));
            }
        return {};
    }

    // Where in the list the step's work starts or ends, for a piece that would be at `at`: what is of the cycle before
    // stays so.
    std::size_t boundaryOf(const FillPiece& piece, std::size_t at) const
    {
        const auto& ops = opsOf(piece.rank);
        if (piece.step > 0 || !isFactor(piece.op.kind)) return ops.size();
        const bool inputs = gapWorkOf(piece.op.kind) == GapWork::InputFactors;
        const auto pass = std::find_if(ops.begin(), ops.end(), [&](const Op& op) {
            return (inputs ? isForward(op.kind) : isReturn(op.kind)) && asKind(op, piece.op.kind) == piece.op;
        });
        return at <= static_cast<std::size_t>(pass - ops.begin()) ? 0 : ops.size();
    }

    // Each piece directly before the op that ends its gap.
    void insert()
    {
        for (int step = 0; step < m_out.steps; ++step) {
            Schedule filled = m_schedule;
            if (m_out.steps > 1)
                filled.name = fmt::format("{} filled {}/{}", m_schedule.name, step + 1, m_out.steps);
            else
                filled.name = m_schedule.name + " filled";
            filled.paired.assign(m_schedule.order.size(), {});
            for (int rank = 0; rank < m_schedule.ranks; ++rank) {
                const auto r = static_cast<std::size_t>(rank);
                std::map<std::size_t, std::vector<FillPiece>> before;
                for (const FillPiece& piece : m_out.placed) {
                    if (piece.rank != rank || piece.step != step) continue;
                    const auto next = std::find_if(m_places[r].begin(), m_places[r].end(), [&](const BusyPlace& place) {
                        return place.start >= piece.end && place.end > piece.start;
                    });
                    const std::size_t at = next == m_places[r].end() ? opsOf(rank).size() : next->position;
                    before[m_rule.apart ? boundaryOf(piece, at) : at].push_back(piece);
                }
                for (const FillPiece& piece : m_out.unplaced)
                    if (piece.rank == rank && step + 1 == m_out.steps) before[opsOf(rank).size()].push_back(piece);
                std::vector<Op>& list = filled.order[r];
                list.clear();
                for (std::size_t i = 0; i <= opsOf(rank).size(); ++i) {
                    if (auto found = before.find(i); found != before.end()) {
                        std::stable_sort(found->second.begin(), found->second.end(),
                                         [](const FillPiece& a, const FillPiece& b) { return a.start < b.start; });
                        for (const FillPiece& piece : found->second) list.push_back(piece.op);
                    }
                    if (i == opsOf(rank).size()) break;
                    if (m_schedule.isPaired(rank, i))
                        filled.paired[r].push_back(static_cast<std::uint32_t>(list.size()));
                    list.push_back(opsOf(rank)[i]);
                }
                countLate(list, step);
            }
            m_out.schedules.push_back(std::move(filled));
        }
    }

    // Factors whose inputs their own step has let go, or that are of a step before.
    void countLate(const std::vector<Op>& list, int step)
    {
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (!fillsGaps(list[i].kind) || isInPieces(list[i].kind)) continue;
            bool late = step > 0;
            for (std::size_t k = 0; k < i && !late; ++k)
                late = makesWeightGradient(list[k].kind) && asKind(list[k], list[i].kind) == list[i];
            m_out.late += late ? 1 : 0;
        }
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    const FillRule& m_rule;
    const SimResult& m_result;
    Nanos m_step = 0;
    std::vector<std::vector<BusyPlace>> m_places; // by rank
    FilledCycle m_out;
};

} // namespace

Result<FilledCycle> fillSchedule(const Schedule& schedule, const CostModel& costs, const FillRule& rule)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Op& op : schedule.order[r])
            if (fillsGaps(op.kind))
                return fail(ErrorCode::Usage, fmt::format("rank {} has {} already", r, toText(op)),
                            "leave --fill out, or fill a schedule without such ops");
    if (rule.pieces < 1) return fail(ErrorCode::Usage, "an inversion has at least one piece");
    STAGEWRIGHT_TRY(const auto result, simulate(schedule, costs));
    return CycleFiller(schedule, costs, rule, result).run();
}

namespace {

std::string fillTime(Nanos nanos, Nanos unit)
{
    return unit > 1 ? fmt::format("{:.4g}", static_cast<double>(nanos) / static_cast<double>(unit))
                    : formatDuration(nanos);
}

} // namespace

std::string describe(const FilledCycle& cycle, const FilledGap& gap, Nanos unit)
{
    const auto ofRank = [&](const FillPiece& piece) { return piece.rank == gap.rank; };
    const auto pieces = std::count_if(cycle.placed.begin(), cycle.placed.end(), ofRank) +
                        std::count_if(cycle.unplaced.begin(), cycle.unplaced.end(), ofRank);
    std::string text = gap.holds.empty() ? std::string("holds no piece")
                                         : fmt::format("holds {} of {} pieces", gap.holds.size(), pieces);
    if (gap.rest <= 0) return text;
    text += fmt::format("; {} {} idle because ", fillTime(gap.rest, unit), unit > 1 ? "stays" : "stay");
    switch (gap.why) {
    case IdleRest::Why::NothingLeft: text += "no piece is left"; break;
    case IdleRest::Why::TooShort:
        text += fmt::format("the next, {}, takes {}{}", gap.next, fillTime(gap.takes, unit),
                            gap.takes <= gap.rest ? " and 5 % are to spare" : "");
        break;
    case IdleRest::Why::InputMissing: text += fmt::format("the next, {}, lacks an input", gap.next); break;
    }
    return text;
}

std::string unplacedSentence(const FilledCycle& cycle, const FillPiece& piece, Nanos unit)
{
    const Nanos takes = piece.end - piece.start, longest = cycle.longestGap[static_cast<std::size_t>(piece.rank)];
    const auto others = std::count_if(cycle.unplaced.begin(), cycle.unplaced.end(),
                                      [&](const FillPiece& other) { return other.rank == piece.rank; }) -
                        1;
    return fmt::format("rank {}: {} takes {}, {} (the longest has {}); it{} lies behind step {} and makes it longer",
                       piece.rank, toText(piece.op), fillTime(takes, unit),
                       takes * 21 >= longest * 20 ? "longer than every gap" : "behind a piece that fits no gap",
                       fillTime(longest, unit), others > 0 ? fmt::format(", with {} more,", others) : std::string(),
                       cycle.steps);
}

} // namespace stagewright
