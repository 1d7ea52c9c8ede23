// Messages between ranks: which a compute-only schedule needs, and which sends and receives of a lowered one belong
// together.
//
// A message carries what one op made and another rank's op needs: activations from F of stage s to F of stage s + 1,
// gradients from B or I of stage s + 1 to B or I of stage s. Where the two ops cover different microbatches, slices or
// halves, it carries what both cover: the finer side decides, so that an op may send or receive several messages.
// Copies of a stage: a message goes to the rank that holds the neighbouring stage for its microbatch. Neighbouring
// stages on one rank send none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct Message {
    std::uint32_t producer = noOp; // ids as in OpIndex
    std::uint32_t consumer = noOp;
    int fromRank = 0;
    int toRank = 0;
    Op send;    // SEND_F or SEND_B, of the sending stage
    Op receive; // RECV_F or RECV_B, of the receiving stage
};

// By consumer, in list order; sends and receives in the lists are ignored. Inputs that nobody makes are
// skipped. O(ops).
std::vector<Message> messagesOf(const Schedule& schedule, const OpIndex& index);

bool isLowered(const Schedule& schedule); // any send or receive in a list
Op receiveOf(const Op& send);             // the receive that takes what a send carries
Op sendOf(const Op& receive);

// A send and a receive of a lowered schedule that belong together.
struct MessagePair {
    std::uint32_t send = noOp; // noOp: nobody sends or takes it
    std::uint32_t receive = noOp;
};

class MessageIndex {
public:
    MessageIndex(const Schedule& schedule, const OpIndex& index); // the first of two equal sends or receives counts

    // in the order in which an op first names them
    const std::vector<MessagePair>& messages() const { return m_messages; }
    // The message of a send or receive.
    std::uint32_t messageOf(std::uint32_t op) const { return m_messageOfOp[op]; }
    // The message that brings a cell to the stage (and its rank), none (noOp) where no receive covers it.
    std::uint32_t bringing(bool gradient, std::size_t cell) const
    {
        const auto& table = m_byCell[gradient ? 1 : 0];
        return table.empty() ? noOp : table[cell];
    }

private:
    std::vector<MessagePair> m_messages;
    std::vector<std::uint32_t> m_messageOfOp;
    std::array<std::vector<std::uint32_t>, 2> m_byCell; // of the receiving stage
};

} // namespace stagewright
