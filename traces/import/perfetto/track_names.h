// Tracks of a Perfetto trace by their descriptors: of which process and thread each is, in Chrome's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedules/base/units.h"
#include "traces/import/kineto/kineto_event.h"

namespace stagewright {

class PerfettoTracks {
public:
    struct Place {
        std::string process, thread; // as Chrome's pid and tid
        std::string name;            // the track's own; of a thread that, else its process's
        std::string unit;            // of a counter; "": none
        std::int64_t multiplier = 1; // of a counter's values
        bool incremental = false;    // of a counter: each value is added to those before
        std::int64_t sum = 0;        // of such a counter
        KinetoPlace numbers = {};
    };
    struct Named {                         // as Chrome's metadata events
        std::string process, thread, name; // thread "": of the process
    };

    static constexpr std::size_t most = 1'000'000; // tracks; those beyond are one

    // A TrackDescriptor. Throws protozero::exception where it is damaged.
    void add(std::string_view descriptor);
    Place& placeOf(std::uint64_t track);                            // valid until the next add()
    std::string_view processName(const std::string& process) const; // "": it has none so far
    std::uint64_t said() const { return m_said; }                   // places are valid as long as it stays
    std::vector<Named> names() const; // of all processes and threads so far, and of tracks that are rows

private:
    struct Track {
        std::uint64_t parent = 0;
        bool isProcess = false, isThread = false;
        std::int64_t pid = 0, tid = 0;
        std::string processName;
        Place place;
        std::uint64_t placed = 0; // with what of m_said; 0: never
    };
    void place(std::uint64_t uuid, Track& track);

    std::unordered_map<std::uint64_t, Track> m_tracks;
    std::unordered_map<std::string, std::string> m_processNames;
    std::vector<std::uint64_t> m_order; // as they came
    std::uint64_t m_said = 1;           // descriptors, from 1
};

} // namespace stagewright
