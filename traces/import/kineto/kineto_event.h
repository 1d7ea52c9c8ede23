// One parsed event of a JSON trace: the fields of Kineto's and Chrome's format that the reader uses.
#pragma once

#include <array>
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
    std::int64_t external = -1; // "External id", the same for an operator and the work it launched
    std::int64_t stream = -1;
    std::int64_t step = -1; // in traces written here; "step_num" of a step in XLA's
    std::int64_t sourceRank = -1;
    std::int64_t targetRank = -1;
    std::int64_t sequence = -1;
    std::int64_t bytes = 0;
    std::int64_t total = -1; // "Total Allocated"
    std::int64_t deviceType = -1;
    std::int64_t deviceId = -1; // of memory
    std::uint64_t address = 0;
    std::int64_t peer = -1; // third and fourth of "Concrete Inputs"
    std::int64_t tag = 0;
    std::int64_t copied = -1; // "bytes" of a copy
    std::int64_t elementsIn = -1;
    std::int64_t elementsOut = -1;
    std::array<std::int64_t, 3> grid{}; // of a kernel's launch; 0: unknown
    std::array<std::int64_t, 3> block{};
    std::int64_t graph = -1; // "graph id", of a CUDA graph's kernel or copy; 0: none
    std::int64_t graphNode = -1;
    std::int64_t task = -1;       // of a stream of an NPU
    std::int64_t count = -1;      // elements of its collective
    bool ofPlane = false;         // it is a piece of one
    std::string_view taskType;    // "AI_CORE"
    std::string_view algorithm;   // of its collective
    std::string_view inputs;      // "Input Dims" as in the file: "[[64, 512], [512]]"
    std::string_view elementType; // "BFloat16"
    std::string_view collective;  // as in the file, unescaped
    std::string_view group;
    std::string_view groupPurpose;
    std::string_view groupRanks;
    std::string_view name;     // of metadata
    std::string_view category; // of memory, in traces written here
    std::string_view object;   // the whole text of args
};

// A process's thread and its stream of that name as numbers of ForeignRank::threads, once they are known.
struct KinetoPlace {
    static constexpr std::uint32_t unknown = 0xffffffffu;
    std::array<std::uint32_t, 2> numbers{unknown, unknown};
};

// Texts point into the event or the parser: valid until the next parse.
struct KinetoEvent {
    char phase = 0; // 0: none
    std::string_view name;
    std::string_view category;
    std::string_view pid; // token as in the file, strings without quotes
    std::string_view tid;
    std::string_view id;
    std::optional<Nanos> time;
    std::optional<Nanos> duration;
    bool repaired = false; // the name is a path whose backslashes were not escaped
    // What a reader knows of name, category and place besides: ids of ForeignRank::names, the place of earlier events.
    static constexpr std::uint32_t unknown = 0xffffffffu;
    std::uint32_t nameId = unknown;
    std::uint32_t categoryId = unknown;
    KinetoPlace* place = nullptr;
    std::optional<double> value; // of a counter with one series, named by the category; else args.object has them
    KinetoArgs args;
};

class KinetoEventParser {
public:
    KinetoEventParser();
    ~KinetoEventParser();

    // False: no valid JSON object. `text` is followed by JsonEvents::padding readable bytes. wantArgs says whether the
    // arguments of an event of this category and name are parsed. Keys come in any order.
    using WantArgs = bool (*)(std::string_view category, std::string_view name);
    bool parse(std::string_view text, KinetoEvent& event, WantArgs wantArgs);
    // The members of an event's `args`, likewise.
    bool parseArgs(std::string_view object, KinetoArgs& args);
    static bool reads(std::string_view name); // whether an argument of this name is used
    // Every object of a JSON array in turn; returns how many were parsed and accepted. Stops at the first that is not,
    // or if `take` returns false.
    std::size_t parseAll(std::string_view array, KinetoEvent& event, WantArgs wantArgs,
                         const std::function<bool()>& take);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

// The argument of this name that is a number, or a text; null: there is none.
std::int64_t* numberArg(std::string_view name, KinetoArgs& args);
std::string_view* textArg(std::string_view name, KinetoArgs& args);

// "1694128201435418", "4331969872415.343", "1.5e3" microseconds, without rounding if there are at most three decimals.
// Empty: not a number, or not a possible time.
std::optional<Nanos> nanosOfMicroseconds(std::string_view token);
std::optional<std::int64_t> wholeNumberOf(std::string_view token); // "12" with or without quotes

} // namespace stagewright
