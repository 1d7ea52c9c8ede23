// Threads of control on one thread of the host, each on its own stack, which the sanitizers know about. Who runs says
// who runs next.
#pragma once

#include <memory>

namespace stagewright::fake {

class Fibers {
public:
    explicit Fibers(int count);
    ~Fibers(); // the fibers may be dropped where they are, if their stacks own nothing
    Fibers(const Fibers&) = delete;
    Fibers& operator=(const Fibers&) = delete;

    // Each fiber runs body(context, number) once it is first switched to. A body ends by switching away for good; a
    // fiber that is switched to in a later run returns from that and runs the body of then. So what follows the last
    // switch may touch nothing.
    void run(int first, void (*body)(void* context, int fiber), void* context); // from the caller; returns at leave()
    void to(int from, int fiber);                                               // from a fiber to another
    void leave(int from);                                                       // to the caller

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace stagewright::fake
