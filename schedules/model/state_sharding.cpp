#include "schedules/model/state_sharding.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 4> levelNames{"none", "optimizer", "gradients", "weights"};
constexpr std::int64_t largestTerm = 1'000'000;

std::optional<ShardShare> shareOf(std::string_view text)
{
    const auto [part, of] = keyValueOf(text, '/');
    const auto above = wholeOf<std::int64_t>(part);
    const auto below = of ? wholeOf<std::int64_t>(*of) : std::optional<std::int64_t>(1);
    if (!above || !below || *above < 0 || *below < 1 || *above > *below || *below > largestTerm) return std::nullopt;
    return ShardShare{*above, *below};
}

// Exactly 1, in whole numbers.
bool sumToOne(const std::vector<ShardShare>& shares)
{
    std::int64_t above = 0;
    std::int64_t below = 1;
    for (const ShardShare& share : shares) {
        const std::int64_t common = std::lcm(below, share.of);
        if (common > largestTerm * largestTerm) return false;
        above = above * (common / below) + share.part * (common / share.of);
        below = common;
        if (above > below) return false;
    }
    return above == below;
}

void addPiece(std::vector<ShardPiece>& pieces, int owner, std::int64_t begin, std::int64_t end)
{
    if (begin == end) return;
    if (!pieces.empty() && pieces.back().owner == owner && pieces.back().end == begin)
        pieces.back().end = end;
    else
        pieces.push_back({owner, begin, end});
}

std::int64_t roundedPart(std::int64_t whole, const ShardShare& upTo)
{
    return whole / upTo.of * upTo.part + whole % upTo.of * upTo.part / upTo.of;
}

void divideByShares(FlatState& state, const std::vector<ShardShare>& shares)
{
    ShardShare upTo{0, 1};
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const std::int64_t common = std::lcm(upTo.of, shares[i].of);
        upTo = {upTo.part * (common / upTo.of) + shares[i].part * (common / shares[i].of), common};
        const std::int64_t end = i + 1 == shares.size() ? state.elements : roundedPart(state.elements, upTo);
        addPiece(state.pieces, static_cast<int>(i), begin, end);
        begin = end;
    }
}

void divideByLayer(FlatState& state, std::span<const std::int64_t> layers, int members)
{
    std::vector<std::int64_t> owned(static_cast<std::size_t>(members), 0);
    std::int64_t begin = 0;
    for (const std::int64_t layer : layers) {
        const auto least = std::min_element(owned.begin(), owned.end());
        *least += layer;
        addPiece(state.pieces, static_cast<int>(least - owned.begin()), begin, begin + layer);
        begin += layer;
    }
}

} // namespace

std::string_view toText(ShardLevel level) { return levelNames[static_cast<std::size_t>(level)]; }

Result<StateSharding> parseSharding(std::string_view text)
{
    const auto [name, parameter] = keyValueOf(text, ':');
    const auto at = std::find(levelNames.begin(), levelNames.end(), name);
    if (at == levelNames.end())
        return fail(ErrorCode::Usage, fmt::format("there is nothing called '{}' to shard", name),
                    "use none, optimizer, gradients or weights; each includes the one before");
    StateSharding out;
    out.level = static_cast<ShardLevel>(at - levelNames.begin());
    if (!parameter) return out;
    const auto [key, value] = keyValueOf(*parameter);
    if (out.level == ShardLevel::None)
        return fail(ErrorCode::Usage, fmt::format("'{}': nothing is sharded, so nothing is divided", text),
                    "leave out what follows the colon");
    if (key == "by" && value == "layer") {
        out.by = ShardBy::Layer;
        return out;
    }
    if (key != "shares" || !value)
        return fail(ErrorCode::Usage, fmt::format("'{}' does not say how to divide the state", *parameter),
                    "use by=layer or shares=3/5,2/5");
    out.by = ShardBy::Shares;
    for (const std::string_view item : split(*value, ",")) {
        const auto share = shareOf(item);
        if (!share)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not a share", item),
                        "write fractions from 0 to 1 such as 3/5");
        out.shares.push_back(*share);
    }
    if (!sumToOne(out.shares))
        return fail(ErrorCode::Usage, fmt::format("the shares {} do not sum to 1", *value),
                    "give one for each replica that sum to 1, such as 3/5,2/5");
    return out;
}

std::string toText(const StateSharding& sharding)
{
    std::string out(toText(sharding.level));
    if (sharding.by == ShardBy::Layer) out += ":by=layer";
    if (sharding.by != ShardBy::Shares) return out;
    for (std::size_t i = 0; i < sharding.shares.size(); ++i) {
        const ShardShare& share = sharding.shares[i];
        out += fmt::format("{}{}", i == 0 ? ":shares=" : ",", share.part);
        if (share.of != 1) out += fmt::format("/{}", share.of);
    }
    return out;
}

Result<void> checkMembers(const StateSharding& sharding, int members)
{
    if (sharding.by != ShardBy::Shares || sharding.shares.size() == static_cast<std::size_t>(members)) return {};
    return fail(ErrorCode::Usage,
                fmt::format("{} shares of the state for {} ranks that share a stage", sharding.shares.size(), members),
                "give one share for each");
}

std::int64_t FlatState::ownedBy(int member) const
{
    std::int64_t sum = 0;
    for (const ShardPiece& piece : pieces)
        if (piece.owner == member) sum += piece.size();
    return sum;
}

std::int64_t FlatState::largestOwned(int members) const
{
    std::int64_t largest = 0;
    for (int member = 0; member < members; ++member) largest = std::max(largest, ownedBy(member));
    return largest;
}

FlatState flatStateOf(const StateSharding& sharding, std::span<const std::int64_t> layers, int members)
{
    FlatState out;
    out.elements = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    out.padded = out.elements;
    const bool even = sharding.level == ShardLevel::None || sharding.by == ShardBy::Even;
    if (even) {
        const std::int64_t shard = (out.elements + members - 1) / members;
        out.padded = shard * members;
        for (int member = 0; member < members; ++member)
            addPiece(out.pieces, member, member * shard, (member + 1) * shard);
    } else if (sharding.by == ShardBy::Layer) {
        divideByLayer(out, layers, members);
    } else {
        divideByShares(out, sharding.shares);
    }
    return out;
}

std::vector<ShardPiece> bucketsOf(std::int64_t elements, std::int64_t perBucket)
{
    std::vector<ShardPiece> out;
    if (perBucket < 1) perBucket = elements;
    for (std::int64_t end = elements; end > 0; end -= perBucket)
        out.push_back({static_cast<int>(out.size()), std::max<std::int64_t>(0, end - perBucket), end});
    return out;
}

} // namespace stagewright
