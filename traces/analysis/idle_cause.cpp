// The words of the idle causes.
#include <array>

#include "traces/analysis/bubbles.h"

namespace stagewright {

namespace {

struct Words {
    std::string_view text;
    std::string_view title;
    std::string_view meaning;
};

constexpr std::array<Words, idleCauseCount> words{{
    {"warmup", "Warm-up", "before the rank's first op: the pipeline fills"},
    {"drain", "Drain", "after the rank's last op: the pipeline empties"},
    {"dependency", "Waiting for input", "the op that produces the input had not finished"},
    {"transfer", "Transfer", "the input was produced and still under way"},
    {"peer_wait", "Waiting for peer", "the peer had not posted its side of the message"},
    {"head_of_line", "Behind a message", "another message went first on the link"},
    {"memory", "Memory cap", "another op was ready, but would have exceeded the memory cap"},
    {"order", "Order", "another op was ready, but the schedule's order puts it later, or a delay was wanted"},
    {"imbalance", "Imbalance", "an input came late because a stage costs more than the mean over stages"},
    {"straggler", "Straggler", "an input came late because an op took longer than the median of its own kind, stage and rank, or its rank than others for the same work"},
    {"recompute_wait", "Held back recompute", "a recomputation waited for the gradient although its input was there"},
    {"reload_wait", "Waiting for reload", "offloaded activations were on their way back"},
    {"launch", "Launch", "everything was ready and the op had not begun: runtime overhead"},
}};

} // namespace

std::string_view toText(IdleCause cause)
{
    return words[static_cast<std::size_t>(cause)].text;
}

std::string_view titleOf(IdleCause cause)
{
    return words[static_cast<std::size_t>(cause)].title;
}

std::string_view meaningOf(IdleCause cause)
{
    return words[static_cast<std::size_t>(cause)].meaning;
}

} // namespace stagewright
