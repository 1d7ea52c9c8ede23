// Threads of control on one thread of the host, each on a stack of its own, told to the sanitizers. Who runs says who runs next.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace stagewright::fake {

class Fibers
{
public:
    // `count` fibers that have not begun; each runs entry(number) once it is first switched to, and must not return from it but by
    // leave().
    Fibers(int count, std::function<void(int)> entry);
    ~Fibers();
    Fibers(const Fibers&) = delete;
    Fibers& operator=(const Fibers&) = delete;

    void enter(int fiber);        // from the caller; returns at leave()
    void to(int from, int fiber); // from a fiber to another
    void leave(int from);         // to the caller; the fibers may be dropped where they are if their stacks own nothing

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace stagewright::fake
