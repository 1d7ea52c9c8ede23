#include "app/cli/interrupt.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "app/cli/command.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

// The handler may only write to a pipe; a thread turns that into the stop request.
volatile std::sig_atomic_t signalsSeen = 0;
int wakePipe[2] = {-1, -1};

// The end at once: by SIGINT itself, which shells tell from an exit, or with the code of an interruption.
extern "C" void onEndSignal(int number)
{
    if (number == SIGINT) {
        std::signal(number, SIG_DFL);
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, number);
        pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
        raise(number);
    }
    ::_exit(ExitInterrupted);
}

extern "C" void onStopSignal(int number)
{
    const int savedErrno = errno;
    const bool again = signalsSeen != 0;
    signalsSeen = 1;
    if (again || writingDirectly()) onEndSignal(number); // a pipe's reader may never come
    const char byte = 's';
    [[maybe_unused]] const auto written = write(wakePipe[1], &byte, 1);
    errno = savedErrno;
}

void install(void (*handler)(int))
{
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        // nohup
        if (number == SIGHUP && sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(number, &action, nullptr);
    }
}

} // namespace

void Interrupt::endOnSignals() { install(onEndSignal); }

Interrupt::Interrupt(bool watchStdin, std::string stopFile)
{
    signalsSeen = 0;
    if (pipe2(wakePipe, O_CLOEXEC | O_NONBLOCK) != 0) return; // no descriptors left: the default actions stay
    m_watcher = std::thread([this, watchStdin, file = std::move(stopFile)] { watch(watchStdin, file); });
    install(onStopSignal);
}

Interrupt::~Interrupt()
{
    if (!m_watcher.joinable()) return;
    install(onEndSignal);
    const char byte = 'q';
    [[maybe_unused]] const auto written = write(wakePipe[1], &byte, 1);
    m_watcher.join();
    close(wakePipe[0]);
    close(wakePipe[1]);
}

void Interrupt::watch(bool watchStdin, const std::string& stopFile)
{
    constexpr int lookEvery = 200; // ms; a network's file system says nothing by itself
    const int patience = stopFile.empty() ? -1 : lookEvery;
    std::array<pollfd, 2> watched{{{wakePipe[0], POLLIN, 0}, {watchStdin ? STDIN_FILENO : -1, POLLIN, 0}}};
    for (;;) {
        if (poll(watched.data(), watched.size(), patience) < 0) {
            if (errno == EINTR) continue;
            return;
        }
        if (!stopFile.empty() && access(stopFile.c_str(), F_OK) == 0) m_source.request_stop();
        if (watched[0].revents != 0) {
            char byte = 0;
            if (read(wakePipe[0], &byte, 1) == 1) {
                if (byte == 'q') return;
                m_source.request_stop();
            }
        }
        if (watched[1].revents != 0) {
            std::array<char, 256> ignored{};
            const auto count = read(STDIN_FILENO, ignored.data(), ignored.size());
            if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
                m_source.request_stop();
                watched[1].fd = -1;
            }
        }
    }
}

} // namespace stagewright
