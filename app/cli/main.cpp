// stagewright: the command line. One verb per call; see command.h.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/core.h>

#include "app/cli/call.h"
#include "app/cli/session.h"
#include "schedules/base/shown_text.h"

namespace stagewright {
namespace {

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
        result = call->run(session);
    } else {
        result = tl::unexpected(std::move(call.error()));
    }
    if (result) return finish(session, *result);
    session.complain(result.error());
    return finish(session, exitCodeOf(result.error().code));
}

} // namespace
} // namespace stagewright

int main(int count, char** words)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that leaves must not end a recording
    std::signal(SIGXFSZ, SIG_IGN); // a file at its size limit is like a full disk: an error that can be reported
    try {
        return stagewright::runProgram(count, words);
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "stagewright: out of memory\n  take fewer ranks, microbatches or steps, or a smaller model\n");
    } catch (const std::exception& error) {
        fmt::print(stderr, "stagewright: {}\n", stagewright::shownText(error.what()));
    }
    return stagewright::ExitFailed;
}
