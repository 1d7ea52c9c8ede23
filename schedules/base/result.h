// Result<T>: a value or an Error. Expected failures (bad file, invalid schedule, full disk) travel this way; exceptions
// of third parties stop in the .cpp that called them. Libraries never print and never exit.
//
//     Result<Schedule> s = readScheduleCsv(text, {});
//     if (!s) return tl::unexpected(std::move(s.error()).with("file " + path));
//
// Where nothing is added to the error, STAGEWRIGHT_TRY forwards it, and STAGEWRIGHT_CHECK does where only success counts:
//
//     STAGEWRIGHT_TRY(const Schedule s, readScheduleCsv(text, {}));
//     STAGEWRIGHT_CHECK(checkShape(s));
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

    // Adds context in front on the way up: "file x.csv: rank 2, …". Once: "x.csv can't be opened" says it itself.
    Error with(const std::string& context) &&
    {
        if (!message.starts_with(context + ' ') && !message.starts_with(context + ':'))
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

#define STAGEWRIGHT_JOIN_NOW(first, second) first##second
#define STAGEWRIGHT_JOIN(first, second) STAGEWRIGHT_JOIN_NOW(first, second)
#define STAGEWRIGHT_TRY_AS(result, declaration, ...)                                                                   \
    auto result = (__VA_ARGS__);                                                                                       \
    if (!result) return tl::unexpected(std::move(result.error()));                                                     \
    declaration = std::move(*result)

// STAGEWRIGHT_TRY(declaration, expression): the expression's value is what is declared, or what exists is set to it; the
// function returns its error if it has none. In a block of its own, since it makes a second variable.
#define STAGEWRIGHT_TRY(declaration, ...)                                                                              \
    STAGEWRIGHT_TRY_AS(STAGEWRIGHT_JOIN(triedInLine, __LINE__), declaration, __VA_ARGS__)

// STAGEWRIGHT_CHECK(expression): the function returns the expression's error if it has one; its value is not kept. A lock
// or a view that is to live on needs STAGEWRIGHT_TRY(const auto lock, …).
#define STAGEWRIGHT_CHECK(...)                                                                                         \
    do {                                                                                                               \
        if (auto STAGEWRIGHT_JOIN(checkedInLine, __LINE__) = (__VA_ARGS__);                                            \
            !STAGEWRIGHT_JOIN(checkedInLine, __LINE__))                                                                \
            return tl::unexpected(std::move(STAGEWRIGHT_JOIN(checkedInLine, __LINE__).error()));                       \
    } while (false)
