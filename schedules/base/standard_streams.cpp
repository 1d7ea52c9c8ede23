#include "schedules/base/standard_streams.h"

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace stagewright {

void tieStandardStreams() noexcept
{
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) >= 0) continue;
        // As a closed one: input can't be read and output not written, which is an error; what is said on standard
        // error is lost.
        const int tied = ::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
        if (tied >= 0 && tied != stream) ::close(tied);
    }
}

void sayOnStandardError(std::string_view text) noexcept
{
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

} // namespace stagewright
