// Result<T>: a value or an Error. Expected failures (bad file, invalid schedule, full disk) travel this way; exceptions
// of third parties stop in the .cpp that called them. Libraries never print and never exit.
//
//     Result<Schedule> s = readScheduleCsv(text, {});
//     if (!s) return tl::unexpected(std::move(s.error()).with("file " + path));
//
// Messages are lower case, without a full stop, and name the object and both numbers:
// "rank 2, op 7 (3B1): backward before forward; forward is at op 9".
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace stagewright {

// What kind of failure it is; the command line maps each to an exit code (docs/cli: 1, 2, 3, 4, 5, 130).
enum class ErrorCode : std::uint8_t {
    Invalid,     // a check failed (invalid schedule, mismatch)                              → exit 1
    Usage,       // the caller asked for something impossible (unknown name, bad shape)      → exit 2
    Unreadable,  // a file is missing, unreadable or damaged                                 → exit 3
    Unavailable, // a device, host or feature is missing                                     → exit 4
    Failed,      // a run failed (exception in a rank, full disk); complete steps are kept   → exit 5
    Cancelled,   // the stop token fired                                                     → exit 130
};

struct Error {
    ErrorCode code = ErrorCode::Failed;
    std::string message; // innermost cause, as above
    std::string remedy;  // what to do next; may be empty

    // Adds context in front on the way up: "file x.csv: rank 2, …".
    Error with(const std::string& context) &&
    {
        message = context + ": " + message;
        return std::move(*this);
    }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string remedy = {})
{
    return tl::unexpected<Error>(Error{code, std::move(message), std::move(remedy)});
}

} // namespace stagewright
