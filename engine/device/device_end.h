// DeviceEnd: what one rank has of the connection between devices of several processes: its own end of every message.
// All ranks of a training join one connection; then each posts its sends and receives in an order that all of them
// follow (engine/training/message_order.h), so that no two wait for each other. On the rank's thread; failures throw
// std::runtime_error, and so does what waits once the rank's Memory is interrupted.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/device/memory.h"

namespace stagewright {

struct EndMessage {
    bool sends = false; // else it is received
    int peer = 0;       // the other rank
    void* data = nullptr;
    std::size_t bytes = 0;
    Mark written{};    // of a send: the data is there
    BlockUse before{}; // of a receive: until then the block is in use
};

class DeviceEnd {
public:
    virtual ~DeviceEnd() = default;
    virtual std::string device() const = 0; // its name among all on its host: two ranks can't have the same
    // What all ends are opened with; made by one of them.
    virtual std::vector<std::byte> newConnection() = 0;
    // Waits for all other ends, and for those of `sendsTo` and `receivesFrom` until messages can pass.
    virtual void join(std::span<const std::byte> connection, int rank, int ranks, std::span<const int> sendsTo,
                      std::span<const int> receivesFrom) = 0;
    // Requests all of them, at once; none waits for another. The mark is passed when all have gone over.
    virtual Mark exchange(std::span<const EndMessage> batch) = 0;
};

} // namespace stagewright
