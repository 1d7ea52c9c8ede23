// Arguments of a trace's events, until their event is given: the two numbers that most have, and the others as members
// of a JSON object in which Kineto's reader reads them. Each is asked for on every event, so that what a name means is
// looked up once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/foreign/foreign_trace.h"
#include "traces/import/kineto/kineto_event.h"
#include "traces/import/perfetto/sequence_state.h"

namespace stagewright {

class PerfettoArgs {
public:
    explicit PerfettoArgs(KinetoArgs& of) : m_args(of) {} // the event's that is given next; lives longer

    // The arguments of an open slice.
    struct Notes {
        std::int64_t correlation = -1, external = -1;
        std::uint32_t others = 0; // of m_others; 0: none
        bool sync = false;        // it has what only calls that wait have
    };
    // A DebugAnnotation that the event's category uses. Throws protozero::exception where it is damaged.
    void note(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts, Notes& to);
    void give(const Notes& notes); // to the event's arguments

    void clear();                // the event's arguments: they are many, and most events have two of them at most
    void set() { m_set = true; } // one beside correlation and external was set from outside

    // ExtraData of a device's work, into the event's arguments; finish() reads those that are lists.
    struct Place {
        std::string_view stream, device;
    };
    void extra(std::string_view key, std::string_view value, Place& place);
    void finishExtra();

private:
    // What an argument's name means here.
    struct Name {
        enum class Use : std::uint8_t { Other, Correlation, External, Sync, Stream, Device };
        std::string text;
        Use use = Use::Other;
        bool read = false; // by Kineto's reader
        std::int64_t* number = nullptr;
        std::string_view* words = nullptr; // one of both: the member of m_args that takes it
    };
    const Name& named(std::string_view name); // valid until the next call
    std::string& othersOf(Notes& notes);
    void readMembers(std::string_view members);

    KinetoArgs& m_args;
    bool m_set = false; // an argument beside correlation and external is not as it is from the start
    std::array<Name, 64> m_names;
    std::vector<std::string> m_others = std::vector<std::string>(1); // of open slices
    std::vector<std::uint32_t> m_free;                               // of those, places that none uses
    std::string m_members;                                           // of extra()
    KinetoEventParser m_parser;
    std::string m_json;
};

} // namespace stagewright
