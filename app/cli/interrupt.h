// Interrupt: SIGINT, SIGTERM, the end of stdin and a file that appears as one stop token. One object at a time.
#pragma once

#include <stop_token>
#include <string>
#include <thread>

namespace stagewright {

class Interrupt {
public:
    explicit Interrupt(bool watchStdin, std::string stopFile = {}); // no file: ""
    ~Interrupt();                                                   // signals end the program again
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // Until there is an object: SIGTERM and SIGHUP end the program with the code of an interruption, SIGINT as it does
    // by itself.
    static void endOnSignals();

    std::stop_token token() const { return m_source.get_token(); }

private:
    void watch(bool watchStdin, const std::string& stopFile);

    std::stop_source m_source;
    std::thread m_watcher;
};

} // namespace stagewright
