// stagewright: the command line. One verb per call; see command.h.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <unistd.h>

#include <fmt/core.h>

#include "app/cli/call.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/session.h"
#include "app/cli/session_of_call.h"
#include "schedules/base/shown_text.h"
#include "schedules/base/standard_streams.h"

namespace stagewright {
namespace {

constexpr char outOfMemory[] =
    "stagewright: out of memory\n  take fewer ranks, microbatches or steps, or a smaller model\n";

// After an error: what libraries do at an exit may wait for memory or threads that they did not get.
[[noreturn]] void endNow(int code)
{
    std::fflush(nullptr);
    ::_exit(code);
}

// An exception that nothing could catch: on a thread of a library, or while another one was under way.
[[noreturn]] void endUncaught()
{
    static bool ending = false;
    if (!ending) {
        ending = true;
        if (::write(STDERR_FILENO, outOfMemory, sizeof outOfMemory - 1) < 0) ::_exit(ExitFailed);
    }
    ::_exit(ExitFailed);
}

// Only what is out of memory ends in a sentence: anything else is a fault of the program, and leaves its trace.
void onTerminate()
{
    try {
        if (std::current_exception()) std::rethrow_exception(std::current_exception());
    } catch (const std::bad_alloc&) {
        endUncaught();
    } catch (...) {
    }
    std::abort();
}

int finish(Session& session, int code)
{
    if (auto written = session.finish(); !written) {
        session.complain(written.error());
        return exitCodeOf(written.error().code);
    }
    return code;
}

int runProgram(int count, char** words)
{
    Session session;
    auto call = readCall(count, words, session);
    if (call && !call->run) return finish(session, ExitDone);
    Result<int> result = 0;
    if (call) {
        session.verb = call->verb;
        stagewright::sessionOfCall = &session;
        result = call->run(session);
    } else {
        result = tl::unexpected(std::move(call.error()));
    }
    if (result) return finish(session, *result);
    session.complain(result.error());
    endNow(finish(session, exitCodeOf(result.error().code)));
}

} // namespace
} // namespace stagewright

int main(int count, char** words)
{
    stagewright::tieStandardStreams();
    std::signal(SIGPIPE, SIG_IGN); // a reader that leaves must not end a recording
    std::signal(SIGXFSZ, SIG_IGN); // a file at its size limit is like a full disk: an error that can be reported
    stagewright::Interrupt::endOnSignals();
    std::set_terminate(stagewright::onTerminate);
    try {
        return stagewright::runProgram(count, words);
    } catch (const std::bad_alloc&) {
        stagewright::endUncaught();
    } catch (const std::system_error& error) { // threads, as a rule
        stagewright::sayOnStandardError(
            fmt::format("stagewright: the system refuses more threads or memory: {}\n  raise ulimit -u or -v\n",
                        stagewright::shownText(error.code().message())));
    } catch (const std::exception& error) {
        stagewright::sayOnStandardError(fmt::format("stagewright: {}\n", stagewright::shownText(error.what())));
    }
    stagewright::endNow(stagewright::ExitFailed);
}
