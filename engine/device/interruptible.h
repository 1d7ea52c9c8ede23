// What a rank may wait for besides its transport, such as another device: a memory that implements this can be made to give up.
#pragma once

namespace stagewright {

class Interruptible {
public:
    virtual ~Interruptible() = default;
    virtual void interrupt() = 0; // any thread, at any time: waits end with an exception
};

} // namespace stagewright
