#include "app/ui/program/end_signals.h"

#include <csignal>

#include <QCoreApplication>
#include <QSocketNotifier>

#include <fcntl.h>
#include <unistd.h>

#include "app/ui/shell/window_set.h"

namespace stagewright {
namespace {

constexpr int interrupted = 130; // as of the command line
constexpr unsigned patience = 2; // s

int wakePipe[2] = {-1, -1};
volatile std::sig_atomic_t asked = 0;

extern "C" void onEndSignal(int number)
{
    if (number == SIGALRM || asked != 0) ::_exit(interrupted);
    asked = 1;
    ::alarm(patience);
    const char byte = 's';
    if (::write(wakePipe[1], &byte, 1) != 1) ::_exit(interrupted);
}

} // namespace

EndSignals::EndSignals(QObject* parent) : QObject(parent)
{
    if (::pipe2(wakePipe, O_CLOEXEC | O_NONBLOCK) != 0) return; // the default actions stay
    auto* woken = new QSocketNotifier(wakePipe[0], QSocketNotifier::Read, this);
    connect(woken, &QSocketNotifier::activated, this, [woken] {
        woken->setEnabled(false);
        WindowSet::instance().keep();
        QCoreApplication::exit(interrupted);
    });
    for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGALRM}) {
        struct sigaction action {};
        struct sigaction before {};
        action.sa_handler = onEndSignal;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        // nohup
        if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN && number != SIGTERM) continue;
        ::sigaction(number, &action, nullptr);
    }
}

} // namespace stagewright
