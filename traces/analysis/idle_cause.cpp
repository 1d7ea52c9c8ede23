#include "traces/analysis/idle_cause.h"

#include <array>

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
    {"transfer", "Transfer", "the input was computed but still in transit"},
    {"peer_wait", "Waiting for peer", "the peer had not posted its side of the message"},
    {"head_of_line", "Behind a message", "another message went first on the link"},
    {"memory", "Memory cap", "another op was ready, but would have exceeded the memory cap"},
    {"order", "Order", "another op was ready, but the schedule orders it later, or the delay is intended"},
    {"imbalance", "Imbalance", "an input came late because a stage costs more than the average stage"},
    {"straggler", "Straggler",
     "an input came late because an op took longer than the median of its kind, stage and rank, or its rank is slower "
     "than others at the same work"},
    {"recompute_wait", "Delayed recompute", "a recomputation waited for the gradient although its input was there"},
    {"reload_wait", "Waiting for reload", "offloaded activations were still being reloaded"},
    {"launch", "Launch", "everything was ready, but the op had not started: runtime overhead"},
    {"microbatch", "Long microbatch",
     "an input came late because a microbatch takes longer than the others on every stage"},
    {"collective", "Waiting for a collective",
     "weights were still being gathered, or gradients reduced, beside compute"},
}};

} // namespace

std::string_view toText(IdleCause cause) { return words[static_cast<std::size_t>(cause)].text; }

std::string_view titleOf(IdleCause cause) { return words[static_cast<std::size_t>(cause)].title; }

std::string_view meaningOf(IdleCause cause) { return words[static_cast<std::size_t>(cause)].meaning; }

} // namespace stagewright
