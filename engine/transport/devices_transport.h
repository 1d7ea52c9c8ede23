// Messages of the schedule between devices of several processes, from device to device: each rank posts its own ends
// (DeviceEnd) on its own thread, in one order that is known to all ranks before. That a message has been sent is said
// through the transport of the processes, whose rules of availability hold; a post waits for its other end on the
// device alone. Control messages go through the host, as ever.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/device/device_end.h"
#include "engine/transport/processes_transport.h"

namespace stagewright {

// A message of one step; the lists have them in the order in which ranks post them.
struct PostedMessage {
    MessageKey key;
    int fromRank = 0;
    int toRank = 0;
    std::size_t floats = 0;
};

// Null where the rank is elsewhere. Both outlive the transport.
struct DeviceRank {
    DeviceEnd* end = nullptr;
    Allocator* allocator = nullptr;
};

// said: carries what is said. ranks: all of them. connection: DeviceEnd::newConnection() of one of their ends.
std::unique_ptr<ProcessesTransport> makeDevicesTransport(std::unique_ptr<ProcessesTransport> said,
                                                         const std::vector<DeviceRank>& ranks,
                                                         std::vector<std::byte> connection,
                                                         const std::vector<PostedMessage>& messages);

} // namespace stagewright
