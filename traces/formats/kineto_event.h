// One event of a JSON trace, parsed: what Kineto and Chrome's format say of it that the reader uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/units.h"

namespace stagewright {

struct KinetoArgs {
    std::int64_t correlation = -1;
    std::int64_t external = -1; // "External id", the same of an operator and what it launched
    std::int64_t stream = -1;
    std::int64_t sourceRank = -1;
    std::int64_t targetRank = -1;
    std::int64_t sequence = -1;
    std::int64_t bytes = 0;
    std::int64_t total = -1; // "Total Allocated"
    std::int64_t deviceType = -1;
    std::uint64_t address = 0;
    std::int64_t peer = -1; // third and fourth of "Concrete Inputs"
    std::int64_t tag = 0;
    std::string_view collective; // as it stands in the file, unescaped
    std::string_view group;
    std::string_view groupPurpose;
    std::string_view groupRanks;
    std::string_view name;  // of metadata
    std::string_view category; // of memory, in traces written here
    std::string_view object; // the whole text of args
};

// Texts point into the event or the parser: valid until the next parse.
struct KinetoEvent {
    char phase = 0; // 0: none
    std::string_view name;
    std::string_view category;
    std::string_view pid;    // token as it stands, strings without quotes
    std::string_view tid;
    std::string_view id;
    std::optional<Nanos> time;
    std::optional<Nanos> duration;
    KinetoArgs args;
};

class KinetoEventParser {
public:
    KinetoEventParser();
    ~KinetoEventParser();

    // False: no valid JSON object. `text` has JsonEvents::padding readable bytes behind it. wantArgs answers whether the
    // arguments of an event of this category and name are looked at (where both stand before them).
    using WantArgs = bool (*)(std::string_view category, std::string_view name);
    bool parse(std::string_view text, KinetoEvent& event, WantArgs wantArgs);
    // Every object of a JSON array in turn: how many were parsed and taken. Ends where one is not, or `take` says no.
    std::size_t parseAll(std::string_view array, KinetoEvent& event, WantArgs wantArgs, const std::function<bool()>& take);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

// "1694128201435418", "4331969872415.343", "1.5e3" microseconds, without rounding where there are at most three decimals.
// None: no number, or no such time.
std::optional<Nanos> nanosOfMicroseconds(std::string_view token);
std::optional<std::int64_t> wholeNumberOf(std::string_view token); // "12" with or without quotes

} // namespace stagewright
