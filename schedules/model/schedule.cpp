#include "schedules/model/schedule.h"

#include <algorithm>
#include <array>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

const std::vector<std::uint32_t>& pairsOf(const Schedule& schedule, std::size_t rank)
{
    static const std::vector<std::uint32_t> noPairs;
    return rank < schedule.paired.size() ? schedule.paired[rank] : noPairs;
}

constexpr std::array<std::string_view, 4> weightRuleNames{"synchronous", "stashed", "two_versions", "predicted"};

} // namespace

std::string_view toText(WeightRule rule) { return weightRuleNames[static_cast<std::size_t>(rule)]; }

std::optional<WeightRule> weightRuleOf(std::string_view text)
{
    for (std::size_t i = 0; i < weightRuleNames.size(); ++i)
        if (weightRuleNames[i] == text) return static_cast<WeightRule>(i);
    return std::nullopt;
}

const std::string& Shape::parameter(std::string_view name) const
{
    static const std::string none;
    for (const auto& [key, value] : parameters)
        if (key == name) return value;
    return none;
}

int Shape::number(std::string_view name, int otherwise) const
{
    return wholeOf<int>(parameter(name)).value_or(otherwise);
}

bool Schedule::operator==(const Schedule& other) const
{
    if (ranks != other.ranks || stages != other.stages || microbatches != other.microbatches ||
        replicas != other.replicas || placement != other.placement || order != other.order ||
        weights != other.weights || sliceLengths != other.sliceLengths || !(graph == other.graph))
        return false;
    const std::size_t rows = std::max(paired.size(), other.paired.size());
    for (std::size_t r = 0; r < rows; ++r)
        if (pairsOf(*this, r) != pairsOf(other, r)) return false;
    return true;
}

std::size_t Schedule::opCount() const
{
    std::size_t count = 0;
    for (const auto& ops : order) count += ops.size();
    return count;
}

bool Schedule::isPaired(int rank, std::size_t position) const
{
    const auto& pairs = pairsOf(*this, static_cast<std::size_t>(rank));
    return std::binary_search(pairs.begin(), pairs.end(), static_cast<std::uint32_t>(position));
}

bool Schedule::splitsBackward() const
{
    for (const auto& ops : order)
        for (const Op& op : ops)
            if (op.kind == OpKind::InputGrad || op.kind == OpKind::WeightGrad) return true;
    return false;
}

std::vector<std::int64_t> sliceStartsOf(const Schedule& schedule)
{
    int slices = 0;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (!isInPieces(op.kind)) slices = std::max(slices, op.slice + 1);
    std::vector<std::int64_t> starts;
    if (slices == 0) return starts;
    starts.push_back(0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(slices); ++i)
        starts.push_back(starts.back() + (i < schedule.sliceLengths.size() ? schedule.sliceLengths[i] : 1));
    return starts;
}

std::int64_t shareOfSlice(std::int64_t whole, const std::vector<std::int64_t>& starts, int slice)
{
    const auto i = static_cast<std::size_t>(slice);
    if (slice < 0 || i + 1 >= starts.size() || starts.back() == 0) return whole;
    const std::int64_t total = starts.back();
    // Quotient and rest apart: whole × start could overflow.
    auto upTo = [&](std::int64_t start) { return whole / total * start + whole % total * start / total; };
    return upTo(starts[i + 1]) - upTo(starts[i]);
}

namespace {

bool overlapsNext(const Schedule& schedule, std::size_t rank, std::uint32_t position)
{
    const OpKind kind = schedule.order[rank][position].kind;
    return kind != OpKind::Recompute && !isMessage(kind);
}

} // namespace

bool overlapsOps(const Schedule& schedule)
{
    for (std::size_t rank = 0; rank < schedule.paired.size(); ++rank)
        for (const std::uint32_t position : schedule.paired[rank])
            if (overlapsNext(schedule, rank, position)) return true;
    return false;
}

Schedule serialised(Schedule schedule)
{
    for (std::size_t rank = 0; rank < schedule.paired.size(); ++rank)
        std::erase_if(schedule.paired[rank],
                      [&](std::uint32_t position) { return overlapsNext(schedule, rank, position); });
    return schedule;
}

std::uint64_t hashOf(const Schedule& schedule)
{
    std::uint64_t hash = 0xcbf29ce484222325ull;
    auto add = [&hash](std::uint64_t value) { // FNV-1a over the eight bytes of each field
        for (int i = 0; i < 8; ++i) {
            hash ^= (value >> (8 * i)) & 0xff;
            hash *= 0x100000001b3ull;
        }
    };
    auto addInt = [&add](std::int64_t value) { add(static_cast<std::uint64_t>(value)); };
    addInt(schedule.ranks);
    addInt(schedule.stages);
    addInt(schedule.microbatches);
    for (int s = 0; s < schedule.placement.stages(); ++s) {
        addInt(-1);
        for (const auto& copy : schedule.placement.copiesOf(s)) {
            addInt(copy.firstMicrobatch);
            addInt(copy.rank);
        }
    }
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        addInt(-2);
        for (const Op& op : schedule.order[r]) {
            addInt(op.microbatch);
            addInt(op.delay);
            addInt(op.stage);
            addInt(op.count);
            addInt(op.slice);
            addInt(static_cast<int>(op.kind));
            addInt(op.half);
        }
        addInt(-3);
        for (std::uint32_t position : pairsOf(schedule, r)) addInt(position);
    }
    if (schedule.weights != WeightRule::Synchronous) {
        addInt(-4);
        addInt(static_cast<int>(schedule.weights));
    }
    for (std::size_t i = 0; i < schedule.sliceLengths.size(); ++i) {
        if (i == 0) addInt(-5);
        addInt(schedule.sliceLengths[i]);
    }
    if (schedule.replicas != 1) {
        addInt(-6);
        addInt(schedule.replicas);
    }
    if (!schedule.graph.isChain()) {
        addInt(-7);
        for (const auto& [from, to] : schedule.graph.edges(schedule.stages)) {
            addInt(from);
            addInt(to);
        }
    }
    return hash;
}

std::string toText(const Schedule& schedule)
{
    std::string out;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const bool joined = i > 0 && schedule.isPaired(static_cast<int>(r), i - 1);
            const bool joins = i + 1 < ops.size() && schedule.isPaired(static_cast<int>(r), i);
            if (i > 0) out += joined ? ';' : ' ';
            if (joins && !joined) out += '(';
            out += toText(ops[i]);
            if (joined && !joins) out += ')';
        }
        out += '\n';
    }
    return out;
}

} // namespace stagewright
