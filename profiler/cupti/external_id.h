// ExternalId: what the engine pushes around the launches of an op or a message, so that every kernel and copy can be
// joined to it. Shared by the engine, which packs, and correlate.cpp, which unpacks. 64 bits, never 0:
//
//   63      1: an id of this program; other tools' ids have it clear as a rule and are counted apart
//   62…44   step, modulo 2^19
//   43…40   role
//   39…24   rank                 of ops and other work
//   23…0    position in the rank's list; norm and optimizer, which follow the list: besidePosition()
//   39…0    number of the message (MessageNumbers)   of sends and receives
//
// An op's id lies on CUPTI's stack CUSTOM0, a send's on CUSTOM1, a receive's on CUSTOM2, so that one launch (a NCCL
// group) can carry a send and a receive within an op. Stacks belong to the thread that launches.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/record/message_key.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

enum class ExternalRole : std::uint8_t {
    Op = 1,    // an op of the rank's list
    Norm,      // gradient norm after the list, by stage
    Optimizer, // after the list, by stage
    Send,
    Receive,
    Other, // work of a rank that belongs to no op: fetching losses, bringing copies' gradients together
};

struct ExternalId {
    ExternalRole role = ExternalRole::Op;
    int step = 0; // modulo ExternalId::steps
    int rank = 0;
    int position = 0;
    std::uint64_t message = 0;

    static constexpr int steps = 1 << 19;
    static constexpr int ranks = 1 << 16;
    static constexpr int positions = 1 << 24;
    static constexpr std::uint64_t messages = std::uint64_t{1} << 40;

    bool isMessage() const { return role == ExternalRole::Send || role == ExternalRole::Receive; }
    bool operator==(const ExternalId&) const = default;
};

// Names an op after the list: the stage, and how many of this role and stage the rank ran before it in the step.
constexpr int besidePosition(int stage, int earlier) { return (earlier & 0xff) << 16 | (stage & 0xffff); }

// Preconditions: rank, position and message below the limits above. The step wraps.
constexpr std::uint64_t pack(const ExternalId& id)
{
    const std::uint64_t what =
        id.role == ExternalRole::Send || id.role == ExternalRole::Receive
            ? id.message
            : static_cast<std::uint64_t>(id.rank) << 24 | static_cast<std::uint64_t>(id.position);
    return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(id.step & (ExternalId::steps - 1)) << 44 |
           static_cast<std::uint64_t>(id.role) << 40 | what;
}

// None: not an id of this program.
constexpr std::optional<ExternalId> unpackExternalId(std::uint64_t packed)
{
    const auto role = static_cast<std::uint8_t>(packed >> 40 & 0xf);
    if (packed >> 63 == 0 || role < 1 || role > static_cast<std::uint8_t>(ExternalRole::Other)) return {};
    ExternalId id;
    id.role = static_cast<ExternalRole>(role);
    id.step = static_cast<int>(packed >> 44 & (ExternalId::steps - 1));
    const std::uint64_t what = packed & (ExternalId::messages - 1);
    if (id.isMessage()) {
        id.message = what;
    } else {
        id.rank = static_cast<int>(what >> 24);
        id.position = static_cast<int>(what & (ExternalId::positions - 1));
    }
    return id;
}

// Numbers of a schedule's messages, the same on every rank.
class MessageNumbers {
public:
    // Usage where the schedule is too large for the ids: ranks, ops of a rank, messages.
    static Result<MessageNumbers> of(const CheckedSchedule& checked);

    std::uint64_t operator()(const MessageKey& key) const
    {
        return key.stage * m_space.perStage() + m_space.within(key);
    }

private:
    MessageSpace m_space;
};

} // namespace stagewright
