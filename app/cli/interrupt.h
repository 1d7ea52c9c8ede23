// Interrupt: SIGINT, SIGTERM and the end of stdin as one stop token. One object at a time.
#pragma once

#include <stop_token>
#include <thread>

namespace stagewright {

class Interrupt {
public:
    explicit Interrupt(bool watchStdin);
    ~Interrupt(); // restores the signals' default actions
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    std::stop_token token() const { return m_source.get_token(); }

private:
    void watch(bool watchStdin);

    std::stop_source m_source;
    std::thread m_watcher;
};

} // namespace stagewright
