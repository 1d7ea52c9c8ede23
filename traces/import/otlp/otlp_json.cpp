#include "traces/import/otlp/otlp_json.h"

#include <cstddef>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

using Parsed = nlohmann::json;

// The bytes one by one, and the number of the line.
struct Bytes1 {
    explicit Bytes1(ByteSource& from) : source(from) {}
    bool atEnd()
    {
        if (at < buffer.size()) return false;
        buffer.resize(std::size_t{1} << 16);
        buffer.resize(source.read(buffer.data(), buffer.size()));
        at = 0;
        return buffer.empty();
    }
    char current() { return atEnd() ? '\0' : buffer[at]; }
    void advance()
    {
        if (atEnd()) return;
        lines += buffer[at] == '\n' ? 1 : 0;
        ++at;
    }

    ByteSource& source;
    std::string buffer;
    std::size_t at = 0;
    std::int64_t lines = 1;
};

struct ByteIterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    char operator*() const { return bytes->current(); }
    ByteIterator& operator++()
    {
        bytes->advance();
        return *this;
    }
    ByteIterator operator++(int)
    {
        bytes->advance();
        return *this;
    }
    bool operator==(const ByteIterator&) const { return bytes->atEnd(); } // with the end only
    bool operator!=(const ByteIterator&) const { return !bytes->atEnd(); }

    Bytes1* bytes = nullptr;
};

class RequestEvents {
public:
    RequestEvents(OtlpSpans& to, Bytes1& bytes, const Progress& progress)
        : m_to(to), m_bytes(bytes), m_progress(progress)
    {
    }

    bool null() { return value(""); }
    bool boolean(bool is) { return value(is ? "true" : "false"); }
    bool number_integer(std::int64_t number) { return value(std::to_string(number)); }
    bool number_unsigned(std::uint64_t number) { return value(std::to_string(number)); }
    bool number_float(double number, const std::string&) { return value(fmt::format("{}", number)); }
    bool string(std::string& text) { return value(std::move(text)); }
    bool binary(Parsed::binary_t&) { return false; }
    bool key(std::string& name)
    {
        m_key = std::move(name);
        return true;
    }

    bool start_object(std::size_t)
    {
        switch (at()) {
        case In::Nothing:
        case In::Requests: return enter(In::Request);
        case In::Resources:
            m_resource = m_to.addResource();
            m_ofResource.clear();
            return enter(In::ResourceSpans);
        case In::ResourceSpans:
            if (m_key != "resource") return enter(In::Other);
            m_attributes = &m_ofResource;
            return enter(In::Resource);
        case In::Scopes: return enter(In::ScopeSpans);
        case In::Spans:
            m_span = {};
            m_attributes = &m_span.attributes;
            return enter(In::Span);
        case In::Events: ++m_span.events; return enter(In::Other);
        case In::Attributes:
            m_name.clear();
            m_value.clear();
            return enter(In::Attribute);
        case In::Attribute: return enter(m_key == "value" ? In::Value : In::Other);
        default: return enter(In::Other);
        }
    }

    bool end_object()
    {
        const In ended = leave();
        if (ended == In::Span) {
            m_to.add(m_resource, m_span);
            if (m_to.spans() % 1024 == 0) {
                if (m_progress.cancelled()) return false;
                m_progress.tell("reading", m_bytes.source.consumed(), m_bytes.source.size());
            }
        } else if (ended == In::ResourceSpans) {
            m_to.setResource(m_resource, m_ofResource);
        } else if (ended == In::Attribute && !m_name.empty() && !m_value.empty()) {
            m_attributes->emplace_back(std::move(m_name), std::move(m_value));
        }
        return true;
    }

    bool start_array(std::size_t)
    {
        switch (at()) {
        case In::Nothing: return enter(In::Requests);
        case In::Request: return enter(m_key == "resourceSpans" ? In::Resources : In::Other);
        case In::ResourceSpans: return enter(m_key == "scopeSpans" ? In::Scopes : In::Other);
        case In::ScopeSpans: return enter(m_key == "spans" ? In::Spans : In::Other);
        case In::Resource: return enter(m_key == "attributes" ? In::Attributes : In::Other);
        case In::Span:
            return enter(m_key == "attributes" ? In::Attributes : m_key == "events" ? In::Events : In::Other);
        default: return enter(In::Other);
        }
    }
    bool end_array()
    {
        leave();
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const Parsed::exception& error)
    {
        m_error = error.what();
        return false;
    }

    // What was read of a request that does not end is kept.
    void finish()
    {
        for (const In in : m_in)
            if (in == In::ResourceSpans) m_to.setResource(m_resource, m_ofResource);
    }
    std::string m_error;

private:
    enum class In : unsigned char {
        Nothing,
        Requests,
        Request,
        Resources,
        ResourceSpans,
        Resource,
        Scopes,
        ScopeSpans,
        Spans,
        Span,
        Events,
        Attributes,
        Attribute,
        Value,
        Other,
    };
    static constexpr std::size_t mostLevels = 512;

    In at() const { return m_in.empty() ? In::Nothing : m_in.back(); }
    bool enter(In in)
    {
        if (m_in.size() >= mostLevels) {
            m_error = fmt::format("it has more than {} levels of brackets", mostLevels);
            return false;
        }
        m_in.push_back(in);
        return true;
    }
    In leave()
    {
        const In in = at();
        if (!m_in.empty()) m_in.pop_back();
        return in;
    }

    bool value(std::string text)
    {
        const In in = at();
        if (in == In::Nothing || in == In::Requests) {
            m_error = "it is not an object, as a request is";
            return false;
        }
        if (in == In::Span) {
            if (m_key == "name")
                m_span.name = std::move(text);
            else if (m_key == "traceId")
                m_span.traceId = lowered(text);
            else if (m_key == "spanId")
                m_span.spanId = lowered(text);
            else if (m_key == "startTimeUnixNano")
                m_span.start = wholeOf<std::uint64_t>(text).value_or(0);
            else if (m_key == "endTimeUnixNano")
                m_span.end = wholeOf<std::uint64_t>(text).value_or(0);
        } else if (in == In::Attribute && m_key == "key") {
            m_name = std::move(text);
        } else if (in == In::Value &&
                   (m_key == "stringValue" || m_key == "intValue" || m_key == "boolValue" || m_key == "doubleValue")) {
            m_value = std::move(text);
        }
        return true;
    }

    OtlpSpans& m_to;
    Bytes1& m_bytes;
    const Progress& m_progress;
    std::vector<In> m_in;
    std::string m_key, m_name, m_value;
    int m_resource = -1;
    OtlpAttributes m_ofResource;
    OtlpAttributes* m_attributes = nullptr; // of the resource or the span that is read
    OtlpSpan m_span;
};

} // namespace

bool readOtlpJson(ByteSource& source, const Progress& progress, OtlpSpans& to)
{
    Bytes1 bytes(source);
    const auto skipTo = [&bytes](auto&& found) {
        while (!bytes.atEnd() && !found(bytes.current())) bytes.advance();
    };
    constexpr std::string_view mark = "\xef\xbb\xbf";
    if (bytes.current() == mark.front())
        for (std::size_t i = 0; i < mark.size(); ++i) bytes.advance();
    while (true) {
        skipTo([](char c) { return c != ' ' && c != '\t' && c != '\r' && c != '\n'; });
        if (bytes.atEnd()) break;
        const std::int64_t line = bytes.lines;
        RequestEvents events(to, bytes, progress);
        const bool whole =
            Parsed::sax_parse(ByteIterator{&bytes}, ByteIterator{&bytes}, &events, Parsed::input_format_t::json, false);
        if (progress.cancelled()) return false;
        if (whole) continue;
        events.finish();
        const bool ended = bytes.atEnd();
        to.damage(ended ? fmt::format("it is cut off within the request at line {}, after {} spans", line, to.spans())
                        : fmt::format("line {}: {}", bytes.lines, events.m_error));
        do { // the next line that starts an object
            skipTo([](char c) { return c == '\n'; });
            bytes.advance();
        } while (!bytes.atEnd() && bytes.current() != '{');
    }
    if (!source.damage().empty()) to.note(source.damage());
    return true;
}

} // namespace stagewright
