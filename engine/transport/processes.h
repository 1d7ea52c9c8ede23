// Processes: bytes between the processes of one job, whoever carries them (engine/mpi). Messages are matched by sender
// and tag, those of one tag in the order of their sends. Nothing blocks. Any thread may call; failures throw
// std::runtime_error.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagewright {

class Processes {
public:
    using Request = void*; // null: nothing is under way
    struct Arrived {
        void* message = nullptr;
        std::size_t bytes = 0;
    };

    virtual ~Processes() = default;
    virtual std::string_view name() const = 0; // "mpi"
    virtual int index() const = 0;             // of this process, from 0
    virtual int count() const = 0;
    virtual int tagLimit() const = 0; // tags are below it
    // Whether the bytes sent and received may lie on a device (CUDA-aware MPI): then they are as they are to be when
    // send() is called, and the block of receive() is free.
    virtual bool takesDeviceMemory() const { return false; }

    // The bytes stay as they are until done(). met: that is not before the receiver has begun to take them.
    virtual Request send(int to, int tag, const void* data, std::size_t bytes, bool met = false) = 0;
    // A message that can be taken now; it is the caller's to receive().
    virtual std::optional<Arrived> arrived(int from, int tag) = 0;
    virtual Request receive(const Arrived& message, void* to) = 0;
    // Whether it is over; then the request is null.
    virtual bool done(Request& request) = 0;

    // The library and its version, for the run's environment.
    virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
    // All processes come to it, then each ends by itself; or one ends the whole job at once with this exit code.
    virtual void close() = 0;
    virtual void abort(int exitCode) = 0; // does not return
};

} // namespace stagewright
