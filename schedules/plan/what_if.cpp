#include "schedules/plan/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/messages/messages.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

namespace {

constexpr const char* forms = "write F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, jitter*0, lower=pytorch, "
                              "sends=rendezvous, receives=posted, channels=1, channels=one, UNSHARD*2, m=16 or m+8";

// "stage2" or "rank1"
bool readPlace(std::string_view text, WhatIfChange& change)
{
    if (text.starts_with("stage")) return readNumber(text.substr(5), change.stage) && change.stage >= 0;
    if (text.starts_with("rank")) return readNumber(text.substr(4), change.rank) && change.rank >= 0;
    return false;
}

int kindOf(std::string_view text)
{
    for (const OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad,
                              OpKind::Recompute, OpKind::Unshard, OpKind::ReduceGrad, OpKind::Optimizer})
        if (ruleOf(kind).text == text) return static_cast<int>(kind);
    return -1;
}

bool readSubject(std::string_view text, WhatIfChange& change)
{
    if (text == "launch" || text == "jitter") {
        change.what = text == "launch" ? WhatIfChange::What::Launch : WhatIfChange::What::Jitter;
        return true;
    }
    if (text.starts_with("link")) {
        change.what = WhatIfChange::What::Links;
        text.remove_prefix(4);
        if (text.empty()) return true;
        const auto ends = wholePairOf(text);
        if (!ends || ends->first < 0 || ends->last < 0) return false;
        change.rank = ends->first;
        change.toRank = ends->last;
        return true;
    }
    if (readPlace(text, change)) return true;
    const auto [kind, place] = keyValueOf(text, '@');
    change.kind = kindOf(kind);
    return change.kind >= 0 && (!place || readPlace(*place, change));
}

Result<WhatIfChange> readChange(std::string_view text)
{
    WhatIfChange change;
    if (text.starts_with("m=") || text.starts_with("m+")) {
        change.what = WhatIfChange::What::Microbatches;
        change.more = text[1] == '+';
        if (readNumber(text.substr(2), change.microbatches) && change.microbatches > 0 &&
            change.microbatches <= 1'000'000)
            return change;
    } else if (text.starts_with("lower=")) {
        change.what = WhatIfChange::What::Lower;
        auto lowering = parseLowering(text.substr(6));
        if (!lowering) return tl::unexpected(std::move(lowering.error()).with(fmt::format("what if '{}'", text)));
        change.lowering = *lowering;
        return change;
    } else if (text == "sends=buffered" || text == "sends=rendezvous") {
        change.what = WhatIfChange::What::Sends;
        change.sends = text == "sends=buffered" ? SendMode::Buffered : SendMode::Rendezvous;
        return change;
    } else if (text.starts_with("channels=")) {
        change.what = WhatIfChange::What::Channels;
        if (readLimit(text.substr(9), change.channels)) return change;
    } else if (text == "receives=posted" || text == "receives=blocking") {
        change.what = WhatIfChange::What::Receives;
        change.receives = text == "receives=posted" ? ReceiveMode::Posted : ReceiveMode::Blocking;
        return change;
    } else {
        const auto [subject, factor] = keyValueOf(text, '*');
        if (factor && readNumber(*factor, change.factor) && change.factor >= 0 && change.factor <= 1e6 &&
            readSubject(subject, change))
            return change;
    }
    return fail(ErrorCode::Usage, fmt::format("what if '{}': it is not a change", text), forms);
}

Result<void> checkPlaces(const Schedule& schedule, const WhatIfChange& change)
{
    const auto outside = [&](const char* what, int number, int count) {
        return fail(ErrorCode::Usage, fmt::format("what if '{}': there is no {} {}", toText(change), what, number),
                    fmt::format("{}s are 0 to {}", what, count - 1));
    };
    if (change.stage >= schedule.stages) return outside("stage", change.stage, schedule.stages);
    for (const int rank : {change.rank, change.toRank})
        if (rank >= schedule.ranks) return outside("rank", rank, schedule.ranks);
    return {};
}

// Whose duration a change of ops changes, if they match: collectives and optimizers only where it names them.
bool canScale(OpKind kind, const WhatIfChange& change)
{
    return isCompute(kind) ||
           (static_cast<int>(kind) == change.kind && (isCollective(kind) || kind == OpKind::Optimizer));
}

// A change of ops that the schedule does not have would change nothing: it is a mistake.
Result<void> checkMatches(const Schedule& schedule, const WhatIfChange& change)
{
    if (change.what != WhatIfChange::What::Ops) return {};
    std::array<bool, opKindRoom> there{};
    for (int rank = 0; rank < static_cast<int>(schedule.order.size()); ++rank)
        for (const Op& op : schedule.order[static_cast<std::size_t>(rank)]) {
            if (!canScale(op.kind, change) || (change.stage >= 0 && op.stage != change.stage) ||
                (change.rank >= 0 && rank != change.rank))
                continue;
            if (change.kind < 0 || static_cast<int>(op.kind) == change.kind) return {};
            if (isCompute(op.kind)) there[static_cast<std::size_t>(op.kind)] = true;
        }
    std::string kinds;
    for (std::size_t k = 0; k < allKinds().size(); ++k)
        if (there[k]) kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", ruleOf(static_cast<OpKind>(k)).text);
    return fail(ErrorCode::Usage, fmt::format("what if '{}': no op of the schedule matches", toText(change)),
                kinds.empty() ? "there is no op at that place" : "its kinds there are " + kinds);
}

void apply(const WhatIfChange& change, const Schedule& schedule, CostModel& costs)
{
    const double factor = change.factor;
    const auto slow = [&](Link& link) {
        link.latency = scaled(link.latency, factor);
        link.bytesPerSecond = factor > 0 ? link.bytesPerSecond / factor : 0; // 0: infinite
    };
    switch (change.what) {
    case WhatIfChange::What::Launch:
        for (Nanos& launch : costs.launch) launch = scaled(launch, factor);
        break;
    case WhatIfChange::What::Jitter: costs.jitter *= factor; break;
    case WhatIfChange::What::Links:
        if (change.rank < 0) {
            slow(costs.links.all);
            for (auto& [ends, link] : costs.links.overrides) slow(link);
            slow(costs.links.cards.link);
            for (int stage = 0; stage < costs.stages(); ++stage)
                // links' users too
                for (const OpKind kind : {OpKind::Unshard, OpKind::ReduceGrad}) costs.scale(kind, stage, factor);
            break;
        }
        for (const auto& ends : {std::pair(change.rank, change.toRank), std::pair(change.toRank, change.rank)})
            slow(costs.links.overrides.try_emplace(ends, costs.links.all).first->second);
        break;
    case WhatIfChange::What::Ops:
        for (int stage = 0; stage < schedule.stages; ++stage) {
            if (change.stage >= 0 && stage != change.stage) continue;
            for (std::size_t k = 0; k < allKinds().size(); ++k) {
                const auto kind = static_cast<OpKind>(k);
                if (!canScale(kind, change) || (change.kind >= 0 && change.kind != static_cast<int>(k))) continue;
                const auto& copies = schedule.placement.copiesOf(stage);
                if (change.rank < 0)
                    costs.scale(kind, stage, factor);
                else if (std::any_of(copies.begin(), copies.end(),
                                     [&](const auto& copy) { return copy.rank == change.rank; }))
                    costs.scaleOnRank(kind, stage, change.rank, schedule.placement, factor);
            }
        }
        break;
    default: // of the schedule, not of its costs
        break;
    }
}

} // namespace

Result<std::vector<WhatIfChange>> parseWhatIf(std::string_view text)
{
    std::vector<WhatIfChange> out;
    for (const std::string_view part : split(text, ",")) {
        STAGEWRIGHT_TRY(auto change, readChange(part));
        out.push_back(change);
    }
    return out;
}

std::string toText(const WhatIfChange& change)
{
    if (change.what == WhatIfChange::What::Microbatches)
        return fmt::format("m{}{}", change.more ? '+' : '=', change.microbatches);
    if (change.what == WhatIfChange::What::Lower) return "lower=" + toText(change.lowering);
    if (change.what == WhatIfChange::What::Sends)
        return change.sends == SendMode::Buffered ? "sends=buffered" : "sends=rendezvous";
    if (change.what == WhatIfChange::What::Receives)
        return change.receives == ReceiveMode::Posted ? "receives=posted" : "receives=blocking";
    if (change.what == WhatIfChange::What::Channels) return "channels=" + limitText(change.channels);
    std::string subject;
    if (change.what == WhatIfChange::What::Launch) subject = "launch";
    if (change.what == WhatIfChange::What::Jitter) subject = "jitter";
    if (change.what == WhatIfChange::What::Links)
        subject = change.rank < 0 ? std::string("link") : fmt::format("link{}-{}", change.rank, change.toRank);
    if (change.what == WhatIfChange::What::Ops) {
        if (change.kind >= 0) subject = std::string(ruleOf(static_cast<OpKind>(change.kind)).text);
        const char* at = subject.empty() ? "" : "@";
        if (change.stage >= 0) subject += fmt::format("{}stage{}", at, change.stage);
        if (change.rank >= 0) subject += fmt::format("{}rank{}", at, change.rank);
    }
    return fmt::format("{}*{}", subject, change.factor);
}

Result<WhatIf> WhatIf::create(Schedule schedule, CostModel costs, const Channels& channels,
                              const std::optional<Lowering>& lowering)
{
    WhatIf out;
    out.m_channels = channels;
    out.m_lowering = lowering;
    if (lowering && !isLowered(schedule)) {
        STAGEWRIGHT_TRY(schedule, lower(schedule, *lowering));
    }
    STAGEWRIGHT_TRY(out.m_result, simulate(schedule, costs, channels));
    out.m_figures = figuresOf(schedule, out.m_result);
    out.m_schedule = std::move(schedule);
    out.m_costs = std::move(costs);
    return out;
}

Result<Schedule> WhatIf::repeated(int microbatches) const
{
    const Shape shape{m_schedule.ranks, microbatches, m_schedule.ranks > 0 ? m_schedule.stages / m_schedule.ranks : 1};
    Shape now = shape;
    now.microbatches = m_schedule.microbatches;
    const Schedule lists = isLowered(m_schedule) ? withoutMessages(m_schedule) : m_schedule;
    std::string name = lists.name; // its own name is tried first: recognising tries every schedule
    const auto made = makeSchedule(name, now);
    if (!made || !(*made == lists)) name = recognise(lists);
    if (name.empty() || name.find(',') != std::string::npos)
        return fail(
            ErrorCode::Usage,
            fmt::format("{} is not a library schedule as it is, so its microbatches can't be changed", m_schedule.name),
            "simulate it by name with other microbatches: an order built for its costs or a memory cap is recomputed "
            "then");
    auto other = makeSchedule(name, shape);
    if (other && other->sliceLengths != m_schedule.sliceLengths)
        return fail(
            ErrorCode::Usage,
            fmt::format("{} cuts sequences differently for {} microbatches, but these costs are for its present slices",
                        name, microbatches),
            "simulate it by name with other microbatches");
    return other;
}

Result<WhatIfCase> WhatIf::caseOf(const std::vector<WhatIfChange>& changes) const
{
    WhatIfCase out{m_schedule, m_costs, m_channels, {}};
    std::optional<Lowering> asked;
    std::optional<ReceiveMode> receives;
    bool sent = false; // how messages travel matters
    for (const WhatIfChange& change : changes) {
        if (change.what == WhatIfChange::What::Lower) asked = change.lowering;
        if (change.what == WhatIfChange::What::Sends) out.channels.sends = change.sends;
        if (change.what == WhatIfChange::What::Receives) receives = change.receives;
        if (change.what == WhatIfChange::What::Channels) {
            out.channels.perDirection = change.channels.perDirection;
            out.channels.apart = change.channels.apart;
            out.channels.oneStream = change.channels.oneStream;
        }
        sent = sent || change.what == WhatIfChange::What::Sends ||
               (change.what == WhatIfChange::What::Channels && change.channels.limited());
        STAGEWRIGHT_CHECK(checkPlaces(m_schedule, change));
        STAGEWRIGHT_CHECK(checkMatches(m_schedule, change));
        apply(change, m_schedule, out.costs);
        if (change.what != WhatIfChange::What::Microbatches) continue;
        auto other = repeated(change.more ? out.schedule.microbatches + change.microbatches : change.microbatches);
        if (!other) return tl::unexpected(std::move(other.error()).with(fmt::format("what if '{}'", toText(change))));
        out.schedule = std::move(*other);
    }
    std::optional<Lowering> lowering = asked;
    // other microbatches: as before
    if (!asked && !isLowered(out.schedule) && (sent || isLowered(m_schedule)))
        lowering = m_lowering.value_or(Lowering{});
    if (lowering) {
        STAGEWRIGHT_TRY(out.schedule, lower(withoutMessages(out.schedule), *lowering));
        // Those meant for the rule, where the run's were meant for its own.
        const ReceiveMode meant = receivesOf(m_lowering.value_or(Lowering{}).rule);
        if (asked && m_channels.receives == meant) out.channels.receives = receivesOf(asked->rule);
    }
    if (receives) out.channels.receives = *receives;
    STAGEWRIGHT_TRY(out.result, simulate(out.schedule, out.costs, out.channels));
    return out;
}

Result<WhatIfAnswer> WhatIf::answer(const std::vector<WhatIfChange>& changes) const
{
    STAGEWRIGHT_TRY(auto changed, caseOf(changes));
    WhatIfAnswer out;
    const SimFigures after = figuresOf(changed.schedule, changed.result);
    out.makespanBefore = m_figures.step;
    out.makespanAfter = after.step;
    out.bubbleBefore = m_figures.bubbleFraction;
    out.bubbleAfter = after.bubbleFraction;
    if (m_costs.knowsActivations()) {
        out.peakBefore = m_result.peakActivation;
        out.peakAfter = std::move(changed.result.peakActivation);
    }
    out.microbatchesBefore = m_schedule.microbatches;
    out.microbatchesAfter = changed.schedule.microbatches;
    return out;
}

} // namespace stagewright
