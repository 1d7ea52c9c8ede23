// JsonEvents: cuts a trace's JSON, an object with `traceEvents` or an array, into batches of its events and the other
// members of the object, whatever its size: a window of a few megabytes moves over the bytes. It only follows strings
// and brackets; the content of an event is up to the caller, who rejects events that do not parse. Damage is skipped,
// however much of it there is: after an event that does not end within mostEventBytes, or that was rejected, reading
// continues at the next place that looks like the start of an event, or after the rejected one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"

namespace stagewright {

class JsonEvents {
public:
    static constexpr std::size_t mostEventBytes = std::size_t{1} << 20;
    // of a member besides traceEvents; larger ones are skipped
    static constexpr std::size_t mostMemberBytes = std::size_t{32} << 20;
    static constexpr std::size_t padding = 64; // readable bytes after every text

    struct Sizes {
        std::size_t window = std::size_t{1} << 20; // bytes read at once
        std::size_t batch = std::size_t{1} << 18;  // a batch ends with the event that reaches it
    };
    explicit JsonEvents(ByteSource& source, std::stop_token stop = {}) : JsonEvents(source, std::move(stop), Sizes()) {}
    JsonEvents(ByteSource& source, std::stop_token stop, const Sizes& sizes);

    struct Item {
        bool member = false;   // of the object; else a batch of events
        std::string_view key;  // of a member, as in the file
        std::string_view text; // of the member; of a batch: a JSON array of its events. Valid until the next call
        std::size_t events = 0;
    };
    // False: the end, also if a stop was requested. An Error (Unreadable) if the bytes are not such JSON at all.
    Result<bool> next(Item& item);
    // One event of the last batch by itself. Valid as long as the batch.
    std::string_view event(std::size_t number) const
    {
        return {m_buffer.data() + m_events[number].begin, m_events[number].size};
    }
    // That event of the last batch does not parse: reading continues inside it, where another event may start. Counts
    // one damaged event; those after it come again.
    void reject(std::size_t number);

    const std::vector<std::string>& skipped() const
    {
        return m_skipped;
    }                                              // keys of the first members that were too large
    bool sawEvents() const { return m_sawEvents; } // a `traceEvents` array, or the root is one
    // The bytes ended before the JSON did. Not where only the bracket after an array's last event is missing, which the
    // format allows.
    bool cutOff() const { return m_cutOff; }
    std::int64_t damaged() const { return m_damaged; }
    // uncompressed, until here
    std::int64_t bytes() const { return m_passed + static_cast<std::int64_t>(m_at - front); }

private:
    enum class State {
        Begin,
        Object,
        Events,
        End,
    };

    bool fill();      // more bytes after the buffered ones; false: there are none
    bool skipSpace(); // to the next byte that is not a space; false: the end
    // m_at at a value's first byte: m_scan at its end; false: too long or cut off, or `here` and it ends after the
    // buffered bytes.
    bool scanValue(std::size_t most, bool here = false);
    bool skipValue(); // m_at at a value's first byte: behind the value, however long it is; false: it does not end
    enum class Search {
        Found,
        Passed, // the rejected event has none in it: m_at is after it
        Ended,
    };
    Search toNextEvent();  // after damage
    bool isClosed() const; // the last bytes close the events and the object around them
    // Scanning the same bytes again and again after damage takes no more than a multiple of the bytes read: then only
    // short events are looked for.
    bool maySearchFar() const;
    Result<bool> begin();
    Result<bool> nextMember(Item& item);
    bool nextBatch(Item& item);
    void endBatch(); // restores the byte after the last batch

    struct Piece {
        std::size_t begin;
        std::size_t size;
    };
    static constexpr std::size_t front = 1; // a byte before all others, for a batch's bracket

    ByteSource& m_source;
    std::stop_token m_stop;
    Sizes m_sizes;
    std::vector<char> m_buffer;
    std::vector<Piece> m_events; // of the last batch
    std::size_t m_limit;         // bytes of the next batch: few after damage
    std::size_t m_bracket = 0;   // where a batch's bracket replaces m_under; 0: nowhere
    char m_under = 0;
    std::size_t m_at = front;  // next byte to be examined
    std::size_t m_end = front; // of the buffered bytes
    std::size_t m_scan = front;
    std::size_t m_eventBegin = front; // of the last batch: kept in the buffer
    std::string m_keyText;
    std::vector<std::string> m_skipped;
    std::string m_tail;            // the last bytes read
    std::size_t m_rejectedEnd = 0; // of the rejected event in which the next one is looked for; 0: none
    std::int64_t m_passed = 0;     // bytes before the buffer
    std::int64_t m_damaged = 0;
    std::int64_t m_searched = 0; // bytes scanned without finding an event
    State m_state = State::Begin;
    bool m_inObject = false;
    bool m_sawEvents = false;
    bool m_cutOff = false;
    bool m_searching = false;
    bool m_sourceEnded = false;
};

} // namespace stagewright
