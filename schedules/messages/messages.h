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

// A part of what an op needs, and what brings it to its rank.
struct Delivery {
    int stage = 0;                 // where it is made
    std::uint32_t producer = noOp; // noOp: nobody makes it
    OpPlace from;                  // the producer's
    std::uint32_t message = noOp;  // from another rank; noOp where no receive covers it
};

class MessageIndex {
public:
    MessageIndex(const Schedule& schedule, const OpIndex& index); // the first of two equal sends or receives counts

    // in the order in which an op first names them
    const std::vector<MessagePair>& messages() const { return m_messages; }
    // The message of a send or receive.
    std::uint32_t messageOf(std::uint32_t op) const { return m_messageOfOp[op]; }
    // Calls visit(delivery) for each cell of each need of a rank's op; false: no more of that need.
    template <typename Visit>
    void eachDelivery(const Schedule& schedule, const OpIndex& index, const Op& op, int rank, Visit&& visit) const
    {
        const CellSpace& cells = index.cells();
        const auto perStage = static_cast<std::size_t>(cells.microbatches) * cells.perMicrobatch();
        schedule.graph.eachNeed(op, cells.stages, [&](const Need& need, int stage) {
            const Product product = productOf(need.kind);
            const auto& table = m_byCell[product == Product::Gradient ? 1 : 0];
            cells.each(op, stage, [&](std::size_t cell) {
                Delivery one{stage, index.producer(product, cell), {}, noOp};
                if (one.producer == noOp && need.ifThere) return true;
                if (one.producer != noOp) one.from = index.placeOf(one.producer);
                if (one.producer != noOp && one.from.rank != rank && !table.empty())
                    one.message = table[cell - static_cast<std::size_t>(stage) * perStage + op.stage * perStage];
                return visit(one);
            });
        });
    }

private:
    std::vector<MessagePair> m_messages;
    std::vector<std::uint32_t> m_messageOfOp;
    std::array<std::vector<std::uint32_t>, 2> m_byCell; // of the receiving stage
};

} // namespace stagewright
