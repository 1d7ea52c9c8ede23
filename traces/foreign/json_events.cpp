#include "traces/foreign/json_events.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "schedules/base/text.h"

namespace stagewright {

namespace {

bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

#if defined(__SSE2__)
__m128i sixteen(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
#endif

#if defined(__SSE2__)
// What 64 bytes are, one bit each.
struct Marks {
    std::uint64_t quotes = 0, slashes = 0, opening = 0, closing = 0;
};

Marks marksOf(const char* at)
{
    Marks marks;
    for (int i = 0; i < 4; ++i) {
        const __m128i v = sixteen(at + std::ptrdiff_t{16} * i);
        const __m128i w = _mm_or_si128(v, _mm_set1_epi8(0x20)); // '[' and ']' become '{' and '}'
        const auto bits = [i](__m128i equal) {
            return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(equal))) << (16 * i);
        };
        marks.quotes |= bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
        marks.slashes |= bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        marks.opening |= bits(_mm_cmpeq_epi8(w, _mm_set1_epi8('{')));
        marks.closing |= bits(_mm_cmpeq_epi8(w, _mm_set1_epi8('}')));
    }
    return marks;
}

// From each quote up to the one before which a string ends, if none is escaped.
std::uint64_t between(std::uint64_t quotes)
{
    for (int by = 1; by < 64; by *= 2) quotes ^= quotes << by;
    return quotes;
}
#endif

// The first quote or backslash, or `end`.
const char* inString(const char* at, const char* end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    for (; end - at >= 16; at += 16) {
        const __m128i v = sixteen(at);
        const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
        if (found != 0) return at + __builtin_ctz(static_cast<unsigned>(found));
    }
#endif
    while (at < end && *at != '"' && *at != '\\') ++at;
    return at;
}

// The first quote or bracket, or `end`.
const char* outsideString(const char* at, const char* end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i lower = _mm_set1_epi8(0x20); // '[' and ']' become '{' and '}'
    const __m128i open = _mm_set1_epi8('{');
    const __m128i close = _mm_set1_epi8('}');
    for (; end - at >= 16; at += 16) {
        const __m128i v = sixteen(at);
        const __m128i w = _mm_or_si128(v, lower);
        const __m128i hit =
            _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_or_si128(_mm_cmpeq_epi8(w, open), _mm_cmpeq_epi8(w, close)));
        const int found = _mm_movemask_epi8(hit);
        if (found != 0) return at + __builtin_ctz(static_cast<unsigned>(found));
    }
#endif
    while (at < end && *at != '"' && *at != '{' && *at != '}' && *at != '[' && *at != ']') ++at;
    return at;
}

} // namespace

JsonEvents::JsonEvents(ByteSource& source, std::stop_token stop, const Sizes& sizes)
    : m_source(source), m_stop(std::move(stop)), m_sizes(sizes), m_limit(sizes.batch)
{
    constexpr std::size_t least = std::size_t{1} << 16; // of small files, of which there may be thousands
    m_sizes.window = std::min(sizes.window, std::max(least, static_cast<std::size_t>(source.size())));
    m_buffer.resize(front + 4 * m_sizes.window + padding);
}

bool JsonEvents::fill()
{
    if (m_sourceEnded) return false;
    if (m_stop.stop_requested()) {
        m_sourceEnded = true;
        return false;
    }
    const std::size_t by = std::min(m_at, m_eventBegin) - front;
    if (by > 0 && m_end + m_sizes.window + padding > m_buffer.size()) {
        std::memmove(m_buffer.data() + front, m_buffer.data() + front + by, m_end - front - by);
        m_passed += static_cast<std::int64_t>(by);
        m_at -= by;
        m_scan = std::max(m_scan, front + by) - by;
        m_eventBegin -= by;
        m_end -= by;
        if (m_rejectedEnd > 0) m_rejectedEnd -= by;
    }
    if (m_end + m_sizes.window + padding > m_buffer.size()) m_buffer.resize(m_buffer.size() * 2);
    const std::size_t got = m_source.read(m_buffer.data() + m_end, m_sizes.window);
    m_end += got;
    std::memset(m_buffer.data() + m_end, 0, padding);
    m_sourceEnded = got == 0;
    constexpr std::size_t tail = 4096;
    const std::size_t last = std::min(got, tail);
    m_tail.append(m_buffer.data() + m_end - last, last);
    if (m_tail.size() > tail) m_tail.erase(0, m_tail.size() - tail);
    return got > 0;
}

bool JsonEvents::skipSpace()
{
    while (true) {
        while (m_at < m_end && isSpace(m_buffer[m_at])) ++m_at;
        if (m_at < m_end) return true;
        m_eventBegin = m_at;
        if (!fill()) return false;
    }
}

bool JsonEvents::scanValue(std::size_t most, bool here)
{
    if (!here) m_eventBegin = m_at;
    m_scan = m_at;
    std::size_t depth = 0;
    bool string = false;
    bool word = false; // a number or a word, over windows too: to the comma or bracket
    while (true) {
        const char* data = m_buffer.data();
        const char* end = data + std::min(m_end, m_at + most + 2); // no further than what decides that it is too long
        const char* at = data + m_scan;
        while (at < end) {
#if defined(__SSE2__)
            while (depth > 0 && end - at >= 64) { // 64 bytes at once, unless they have escapes
                const Marks marks = marksOf(at);
                if (marks.slashes != 0) break;
                const std::uint64_t inside = between(marks.quotes) ^ (string ? ~std::uint64_t{0} : 0);
                for (std::uint64_t brackets = (marks.opening | marks.closing) & ~inside; brackets != 0;
                     brackets &= brackets - 1) {
                    if ((marks.opening & brackets & -brackets) != 0) {
                        ++depth;
                    } else if (--depth == 0) {
                        m_scan = static_cast<std::size_t>(at - data) +
                                 static_cast<std::size_t>(__builtin_ctzll(brackets)) + 1;
                        return m_scan - m_at <= most;
                    }
                }
                string = (inside >> 63) != 0;
                at += 64;
            }
            if (at == end) break;
#endif
            if (string) {
                at = inString(at, end);
                if (at == end) break;
                if (*at == '\\') {
                    if (end - at < 2) break; // the escaped character is not there yet
                    at += 2;
                    continue;
                }
                string = false;
                ++at;
                if (depth == 0) {
                    m_scan = static_cast<std::size_t>(at - data);
                    return true;
                }
                continue;
            }
            if (word || (depth == 0 && *at != '"' && *at != '{' && *at != '[')) {
                word = true;
                while (at < end && *at != ',' && *at != '}' && *at != ']' && !isSpace(*at)) ++at;
                m_scan = static_cast<std::size_t>(at - data);
                if (at < end) return m_scan > m_at;
                break;
            }
            at = outsideString(at, end);
            if (at == end) break;
            if (*at == '"') {
                string = true;
            } else if (*at == '{' || *at == '[') {
                ++depth;
            } else if (--depth == 0) {
                m_scan = static_cast<std::size_t>(at - data) + 1;
                return m_scan - m_at <= most;
            }
            ++at;
        }
        m_scan = static_cast<std::size_t>(at - data);
        if (m_scan - m_at > most || here) return false;
        if (!fill()) {
            m_cutOff = true;
            return false;
        }
    }
}

bool JsonEvents::skipValue()
{
    std::size_t depth = 0;
    bool string = false, escaped = false, word = false;
    while (true) {
        for (; m_at < m_end; ++m_at) {
            const char c = m_buffer[m_at];
            if (string) {
                if (escaped)
                    escaped = false;
                else if (c == '\\')
                    escaped = true;
                else if (c == '"')
                    string = false;
                else {
                    m_at = static_cast<std::size_t>(inString(m_buffer.data() + m_at, m_buffer.data() + m_end) -
                                                    m_buffer.data()) -
                           1;
                    continue;
                }
                if (string || depth > 0) continue;
                ++m_at;
                return true;
            }
            if (c == '"') {
                string = true;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if (c == '}' || c == ']') {
                if (depth == 0) return word;
                if (--depth > 0) continue;
                ++m_at;
                return true;
            } else if (depth == 0) {
                if (c == ',' || isSpace(c)) return word;
                word = true;
            }
        }
        m_eventBegin = m_at;
        if (!fill()) return false;
    }
}

Result<bool> JsonEvents::begin()
{
    if (skipSpace() && m_end - m_at >= 3 && std::memcmp(m_buffer.data() + m_at, "\xef\xbb\xbf", 3) == 0) m_at += 3;
    if (!skipSpace()) return fail(ErrorCode::Unreadable, "the file is empty");
    const char first = m_buffer[m_at];
    if (first != '{' && first != '[') return fail(ErrorCode::Unreadable, "not a JSON object or array");
    ++m_at;
    m_inObject = first == '{';
    m_sawEvents = !m_inObject;
    m_state = m_inObject ? State::Object : State::Events;
    return true;
}

Result<bool> JsonEvents::nextMember(Item& item)
{
    while (true) {
        while (skipSpace() && m_buffer[m_at] == ',') ++m_at;
        if (m_at >= m_end) {
            m_cutOff = true;
            return false;
        }
        if (m_buffer[m_at] == '}') {
            ++m_at;
            return false;
        }
        const auto broken = [this] {
            ++m_damaged;
            return m_sawEvents ? Result<bool>(false)
                               : fail(ErrorCode::Unreadable, "not a trace: the JSON is broken before its events");
        };
        if (m_buffer[m_at] != '"' || !scanValue(mostMemberBytes)) return broken();
        const std::string key(m_buffer.data() + m_at + 1, m_scan - m_at - 2);
        m_at = m_scan;
        if (!skipSpace() || m_buffer[m_at] != ':') return broken();
        ++m_at;
        if (!skipSpace()) {
            m_cutOff = true;
            return false;
        }
        if (key == "traceEvents" && m_buffer[m_at] == '[') {
            ++m_at;
            m_sawEvents = true;
            m_state = State::Events;
            return true;
        }
        if (!scanValue(mostMemberBytes)) {
            if (m_cutOff) return false;
            if (m_scan - m_at <= mostMemberBytes || !skipValue()) return broken();
            constexpr std::size_t mostNamed = 8;
            if (m_skipped.size() < mostNamed) m_skipped.push_back(key);
            continue;
        }
        if (m_cutOff) return false;
        m_keyText = key;
        item = {true, m_keyText, std::string_view(m_buffer.data() + m_at, m_scan - m_at), 0};
        m_at = m_scan;
        return true;
    }
}

bool JsonEvents::isClosed() const
{
    std::string_view rest = trimmed(m_tail);
    const auto takes = [&rest](char last) {
        if (!rest.ends_with(last)) return false;
        rest = trimmed(rest.substr(0, rest.size() - 1));
        return true;
    };
    if (!m_inObject) return takes(']');
    if (!takes('}')) return false;
    const std::size_t bracket = rest.rfind(']');
    if (bracket == std::string_view::npos) return false;
    const std::string_view others = trimmed(rest.substr(bracket + 1)); // other members of the object
    rest = rest.substr(0, bracket + 1);
    return (others.empty() || others.starts_with(',')) && takes(']') && (rest.ends_with('}') || rest.ends_with(','));
}

bool JsonEvents::maySearchFar() const
{
    constexpr std::int64_t least = std::int64_t{8} << 20, times = 32;
    return m_searched < least + times * bytes();
}

// Where a brace is followed by a key that events have. Metadata inside an event may look like one; it then lacks a
// phase.
JsonEvents::Search JsonEvents::toNextEvent()
{
    static constexpr auto keys = std::to_array<std::string_view>(
        {"\"ph\"", "\"name\"", "\"cat\"", "\"pid\"", "\"tid\"", "\"ts\"", "\"id\"", "\"args\"", "\"dur\""});
    while (true) {
        m_eventBegin = m_at;
        if (m_rejectedEnd > 0 && m_at >= m_rejectedEnd) {
            m_at = m_rejectedEnd;
            m_rejectedEnd = 0;
            return Search::Passed;
        }
        const char* data = m_buffer.data();
        const auto* found = static_cast<const char*>(std::memchr(data + m_at, '{', m_end - m_at));
        if (found == nullptr) {
            m_at = m_end;
            m_eventBegin = m_at;
            if (m_rejectedEnd == 0 && !fill()) return Search::Ended;
            continue;
        }
        m_at = static_cast<std::size_t>(found - data);
        m_eventBegin = m_at;
        if (m_rejectedEnd > 0 && m_at >= m_rejectedEnd) continue;
        std::size_t key = m_at + 1;
        while (key < m_end && key < m_at + 256 && isSpace(m_buffer[key])) ++key;
        if (m_end - key < 8 && fill()) continue;
        const std::string_view rest(m_buffer.data() + key, m_end - key);
        for (const std::string_view name : keys)
            if (rest.starts_with(name)) return Search::Found;
        ++m_at;
    }
}

void JsonEvents::endBatch()
{
    if (m_bracket > 0) m_buffer[m_bracket] = m_under;
    m_bracket = 0;
    m_events.clear();
}

// Events with a comma between them, in the bytes that are there: only the first may move the window.
bool JsonEvents::nextBatch(Item& item)
{
    while (m_events.empty()) {
        const bool searched = m_searching;
        if (m_searching) {
            m_searching = false;
            const Search search = toNextEvent();
            if (search == Search::Ended) {
                m_cutOff = !isClosed();
                break;
            }
            if (search == Search::Passed) continue;
        } else {
            while (skipSpace() && m_buffer[m_at] == ',') ++m_at;
        }
        if (m_at >= m_end) {
            m_cutOff = m_inObject;
            break;
        }
        if (m_buffer[m_at] == ']') {
            ++m_at;
            m_state = m_inObject ? State::Object : State::End;
            return false;
        }
        const bool cutBefore = m_cutOff;
        // a number, a word, a list
        if (const char first = m_buffer[m_at];
            !searched && std::string_view("{}\":").find(first) == std::string_view::npos && scanValue(mostEventBytes)) {
            ++m_damaged;
            m_at = m_scan;
            continue;
        }
        m_cutOff = cutBefore;
        constexpr std::size_t shortEvent = 4096;
        m_scan = m_at;
        const bool whole = m_buffer[m_at] == '{' &&
                           scanValue(searched && !maySearchFar() ? shortEvent : mostEventBytes) &&
                           m_buffer[m_scan - 1] == '}';
        const std::string_view text(m_buffer.data() + m_at, m_scan - m_at);
        if (whole && (!searched || text.find("\"ph\"") != std::string_view::npos)) {
            m_rejectedEnd = 0;
            m_events.push_back({m_at, m_scan - m_at});
            continue;
        }
        // The bytes may end inside a string that never closed: not necessarily the end of the file.
        m_cutOff = cutBefore;
        m_searched += static_cast<std::int64_t>(text.size());
        if (!whole && m_rejectedEnd == 0 && (!searched || text.substr(0, 512).find("\"ph\"") != std::string_view::npos))
            ++m_damaged;
        m_limit = 1;
        ++m_at;
        m_searching = true;
    }
    if (m_events.empty()) {
        m_state = State::End;
        return false;
    }
    const std::size_t begin = m_at;
    std::size_t end = m_scan;
    while (end - begin < m_limit) {
        std::size_t at = end;
        while (at < m_end && isSpace(m_buffer[at])) ++at;
        if (at == m_end || m_buffer[at] != ',') break;
        ++at;
        while (at < m_end && isSpace(m_buffer[at])) ++at;
        if (at == m_end || m_buffer[at] != '{') break;
        m_at = at;
        if (!scanValue(mostEventBytes, true) || m_buffer[m_scan - 1] != '}') break;
        end = m_scan;
        m_events.push_back({at, end - at});
    }
    m_limit = std::min(m_sizes.batch, std::max(m_limit, end - begin) * 2);
    m_at = end;
    m_eventBegin = begin;
    m_under = m_buffer[end];
    m_bracket = end;
    m_buffer[begin - 1] = '['; // passed already
    m_buffer[end] = ']';
    item = {false, {}, std::string_view(m_buffer.data() + begin - 1, end - begin + 2), m_events.size()};
    return true;
}

Result<bool> JsonEvents::next(Item& item)
{
    endBatch();
    if (m_state == State::Begin)
        if (auto begun = begin(); !begun) return begun;
    while (m_state != State::End) {
        if (m_state == State::Events) {
            if (nextBatch(item)) return true;
            continue;
        }
        auto member = nextMember(item);
        if (!member) return member;
        if (!*member)
            m_state = State::End;
        else if (m_state == State::Object)
            return true;
    }
    return false;
}

void JsonEvents::reject(std::size_t number)
{
    ++m_damaged;
    m_limit = 1;
    const Piece rejected = m_events[number];
    m_searched += static_cast<std::int64_t>(rejected.size);
    m_at = rejected.begin + rejected.size; // those behind it come again, whatever the batch held
    m_searching = maySearchFar();
    if (m_searching) m_at = rejected.begin + 1;
    m_rejectedEnd = m_searching ? rejected.begin + rejected.size : 0;
    endBatch();
}

} // namespace stagewright
