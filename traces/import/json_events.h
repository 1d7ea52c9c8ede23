// JsonEvents: cuts a trace's JSON, an object with `traceEvents` or an array, into its events and the other members of the object,
// whatever its size: a window of a few megabytes moves over the bytes. It only follows strings and brackets; what is inside an
// event is the caller's matter, who rejects what does not parse. Damage is stepped over: an event that does not end within
// mostEventBytes, or that was rejected, is left, and reading goes on at the next place that looks like an event's begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "traces/import/byte_source.h"

namespace stagewright {

class JsonEvents {
public:
    static constexpr std::size_t mostEventBytes = std::size_t{1} << 20;
    static constexpr std::size_t mostMemberBytes = std::size_t{32} << 20; // of a member besides traceEvents; larger ones are left out
    static constexpr std::size_t padding = 64;                           // readable bytes behind every text
    static constexpr std::int64_t mostDamage = 10'000;                   // places; reading ends there

    explicit JsonEvents(ByteSource& source);

    struct Item {
        bool member = false;   // of the object; else an event
        std::string_view key;  // of a member, as it stands in the file
        std::string_view text; // valid until the next call
    };
    // False: the end. An Error (Unreadable) where the bytes are no such JSON at all.
    Result<bool> next(Item& item);
    // The last event does not parse: reading goes on inside it, where another event may begin. Counts one damaged event.
    void reject();

    bool sawEvents() const { return m_sawEvents; } // a `traceEvents` array, or the root is one
    bool cutOff() const { return m_cutOff; }       // the bytes ended before the JSON did
    bool gaveUp() const { return m_damaged >= mostDamage; }
    std::int64_t damaged() const { return m_damaged; }
    std::int64_t bytes() const { return m_passed + static_cast<std::int64_t>(m_at); } // uncompressed, until here

private:
    enum class State { Begin, Object, Events, End };

    bool fill();            // more bytes behind those that are there; false: there are none
    bool skipSpace();       // to the next byte that is no space; false: the end
    bool scanValue(std::size_t most); // m_at at a value's first byte: m_scan at its end; false: too long or cut off
    bool toNextEvent();     // after damage
    Result<bool> begin();
    Result<bool> nextMember(Item& item);
    bool nextEvent(Item& item);

    ByteSource& m_source;
    std::vector<char> m_buffer;
    std::size_t m_at = 0;   // next byte to be looked at
    std::size_t m_end = 0;  // of the bytes that are there
    std::size_t m_scan = 0;
    std::size_t m_eventBegin = 0; // of the last event: kept in the buffer
    std::string m_keyText;
    std::int64_t m_passed = 0; // bytes before the buffer
    std::int64_t m_damaged = 0;
    State m_state = State::Begin;
    bool m_inObject = false;
    bool m_sawEvents = false;
    bool m_cutOff = false;
    bool m_searching = false;
    bool m_sourceEnded = false;
};

} // namespace stagewright
