#include "traces/import/message_ops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "schedules/model/kinds.h"

namespace stagewright {

bool consumerOf(const Op& op, int stages, Op& consumer)
{
    if (!isForward(op.kind) && !isReturn(op.kind)) return false;
    const int stage = op.stage + (isForward(op.kind) ? 1 : -1);
    if (stage < 0 || stage >= stages) return false;
    consumer = op;
    consumer.stage = static_cast<std::uint16_t>(stage);
    return true;
}

std::vector<MessageOp> opsOfMessages(const std::vector<MessagePairs::Pair>& pairs,
                                     const std::vector<ForeignRank>& ranks, const std::vector<RankOps>& ops,
                                     const std::vector<RankWork>& work, const Schedule& schedule)
{
    std::unordered_map<Op, int> rankOfOp;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const Op& op : schedule.order[r]) rankOfOp[op] = static_cast<int>(r);
    const auto rankOf = [&rankOfOp](Op op) { // which works on that microbatch of the stage
        for (const OpKind kind : {op.kind, otherReturn(op.kind)}) {
            op.kind = kind;
            if (const auto found = rankOfOp.find(op); found != rankOfOp.end()) return found->second;
        }
        return -1;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> channels;
    for (std::uint32_t i = 0; i < pairs.size(); ++i) channels[{pairs[i].send.rank, pairs[i].receive.rank}].push_back(i);
    std::vector<MessageOp> out(pairs.size());
    const auto postedAt = [&](std::uint32_t pair) {
        return ranks[pairs[pair].send.rank].messages[pairs[pair].send.message].start;
    };
    for (auto& [key, list] : channels) {
        const auto [from, to] = key;
        std::sort(list.begin(), list.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return postedAt(a) < postedAt(b); });
        const std::vector<OpRange>& own = ops[from].ops;
        std::vector<std::uint32_t> makers;
        for (const std::uint32_t i : work[from].compute) {
            Op consumer;
            if (consumerOf(own[i].op, schedule.stages, consumer) && rankOf(consumer) == static_cast<int>(to))
                makers.push_back(i);
        }
        const bool regular = !makers.empty() && list.size() % makers.size() == 0;
        const std::size_t each = regular ? list.size() / makers.size() : 1;
        std::size_t maker = 0;
        for (std::size_t i = 0; i < list.size() && !makers.empty(); ++i) {
            if (regular) {
                maker = i / each;
            } else {
                const Nanos posted = postedAt(list[i]);
                while (maker + 1 < makers.size() && own[makers[maker + 1]].end <= posted) ++maker;
                if (own[makers[maker]].end > posted) continue;
            }
            const OpRange& range = own[makers[maker]];
            out[list[i]] = {range.step, static_cast<int>(from), range.op};
        }
    }
    return out;
}

} // namespace stagewright
