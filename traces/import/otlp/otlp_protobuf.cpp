#include "traces/import/otlp/otlp_protobuf.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "traces/import/otlp/otlp_fields.h"
#include "traces/import/perfetto/packets.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

std::string textIn(std::string_view bytes) // "": a list or an object
{
    Fields<otlp::AnyValue> value(bytes.data(), bytes.size());
    while (value.next()) {
        if (value.tag() == otlp::AnyValue::text && value.isBytes()) return std::string(value.bytes());
        if (value.tag() == otlp::AnyValue::boolean && value.isNumber()) return value.number() != 0 ? "true" : "false";
        if (value.tag() == otlp::AnyValue::whole && value.isNumber()) return std::to_string(value.whole());
        if (value.tag() == otlp::AnyValue::number && value.isDouble()) return fmt::format("{}", value.real());
    }
    return {};
}

void addAttribute(std::string_view bytes, OtlpAttributes& to)
{
    Fields<otlp::KeyValue> pair(bytes.data(), bytes.size());
    std::string key, value;
    while (pair.next())
        if (pair.tag() == otlp::KeyValue::key && pair.isBytes())
            key = std::string(pair.bytes());
        else if (pair.tag() == otlp::KeyValue::value && pair.isBytes())
            value = textIn(pair.bytes());
    if (!key.empty() && !value.empty()) to.emplace_back(std::move(key), std::move(value));
}

// As JSON has them, so that a span sent in both forms is known again.
std::string digitsOf(std::string_view id)
{
    std::string out;
    for (const char byte : id) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return out;
}

void takeSpan(std::string_view bytes, int resource, OtlpSpans& to)
{
    OtlpSpan out;
    Fields<otlp::Span> span(bytes.data(), bytes.size());
    while (span.next()) {
        const bool text = span.isBytes(), fixed = span.isDouble();
        switch (span.tag()) {
        case otlp::Span::traceId:
            if (text) out.traceId = digitsOf(span.bytes());
            break;
        case otlp::Span::spanId:
            if (text) out.spanId = digitsOf(span.bytes());
            break;
        case otlp::Span::name:
            if (text) out.name = std::string(span.bytes());
            break;
        case otlp::Span::start:
            if (fixed) out.start = span.number();
            break;
        case otlp::Span::end:
            if (fixed) out.end = span.number();
            break;
        case otlp::Span::attribute:
            if (text) addAttribute(span.bytes(), out.attributes);
            break;
        case otlp::Span::event: out.events += text ? 1 : 0; break;
        default: break;
        }
    }
    to.add(resource, out);
}

void takeResourceSpans(std::string_view bytes, OtlpSpans& to)
{
    const int resource = to.addResource();
    OtlpAttributes attributes;
    Fields<otlp::ResourceSpans> all(bytes.data(), bytes.size());
    try {
        while (all.next()) {
            if (all.tag() == otlp::ResourceSpans::resource && all.isBytes()) {
                Fields<otlp::Resource> of(all.bytes());
                while (of.next())
                    if (of.tag() == otlp::Resource::attribute && of.isBytes()) addAttribute(of.bytes(), attributes);
            } else if ((all.tag() == otlp::ResourceSpans::scopeSpans ||
                        all.tag() == otlp::ResourceSpans::librarySpans) &&
                       all.isBytes()) {
                Fields<otlp::ScopeSpans> scope(all.bytes());
                while (scope.next())
                    if (scope.tag() == otlp::ScopeSpans::span && scope.isBytes()) takeSpan(scope.bytes(), resource, to);
            }
        }
    } catch (const protozero::exception&) {
        to.damage("a message of spans is damaged");
    }
    to.setResource(resource, std::move(attributes));
}

// Without the length before each message. Nothing is between messages, so that they read as one.
class Unframed : public ByteSource {
public:
    explicit Unframed(ByteSource& framed) : m_framed(framed) { m_size = framed.size(); }

    std::size_t read(char* to, std::size_t size) override
    {
        while (m_left == 0) {
            unsigned char length[4] = {};
            for (std::size_t got = 0; got < sizeof length;) {
                const std::size_t more = m_framed.read(reinterpret_cast<char*>(length) + got, sizeof length - got);
                if (more == 0) return 0;
                got += more;
            }
            for (const unsigned char byte : length) m_left = m_left << 8 | byte;
        }
        const std::size_t got = m_framed.read(to, std::min(size, m_left));
        m_left -= got;
        m_damage = m_framed.damage();
        return got;
    }
    std::int64_t consumed() const override { return m_framed.consumed(); }
    bool restart() override { return false; }

private:
    ByteSource& m_framed;
    std::size_t m_left = 0;
};

// What is there of a first byte that was already read, then the rest.
class WithStart : public ByteSource {
public:
    WithStart(std::string start, ByteSource& rest) : m_start(std::move(start)), m_rest(rest) { m_size = rest.size(); }

    std::size_t read(char* to, std::size_t size) override
    {
        if (m_at == m_start.size()) {
            const std::size_t got = m_rest.read(to, size);
            m_damage = m_rest.damage();
            return got;
        }
        const std::size_t part = std::min(size, m_start.size() - m_at);
        std::memcpy(to, m_start.data() + m_at, part);
        m_at += part;
        return part;
    }
    std::int64_t consumed() const override { return m_rest.consumed(); }
    bool restart() override { return false; }

private:
    std::string m_start;
    std::size_t m_at = 0;
    ByteSource& m_rest;
};

// The fields of a message that may be cut off: `take(tag, wire, content)` returns false to end. False: it ended so, or
// what is there can't be fields.
template <typename Take>
bool eachFieldOf(std::string_view bytes, const Take& take)
{
    std::size_t at = 0;
    const auto varint = [&](std::uint64_t& value) {
        value = 0;
        for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
            const auto byte = static_cast<unsigned char>(bytes[at++]);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return true;
        }
        return false;
    };
    while (at < bytes.size()) {
        std::uint64_t key = 0, size = 0;
        if (!varint(key)) return true;
        switch (key & 7) {
        case 0:
            if (!varint(size)) return true;
            size = 0;
            break;
        case 1: size = 8; break;
        case 2:
            if (!varint(size)) return true;
            break;
        case 5: size = 4; break;
        default: return false;
        }
        const std::string_view content = bytes.substr(at, size);
        if (!take(static_cast<std::uint32_t>(key >> 3), static_cast<int>(key & 7), content)) return false;
        at += content.size();
        if (content.size() < size) return true;
    }
    return true;
}

bool hasSpan(std::string_view resourceSpans)
{
    int fixed = 0;
    const bool fits = eachFieldOf(resourceSpans, [&](std::uint32_t tag, int wire, std::string_view scope) {
        if (wire != 2 || (tag > 3 && tag != 1000)) return false;
        if (tag != 2 && tag != 1000) return true;
        return eachFieldOf(scope, [&](std::uint32_t inner, int kind, std::string_view span) {
            if (kind != 2 || inner > 3) return false;
            if (inner != 2) return true;
            return eachFieldOf(span, [&](std::uint32_t field, int form, std::string_view) {
                if (field == 7 || field == 8) fixed += form == 1 ? 1 : -1000;
                return field <= 16;
            });
        });
    });
    return fits && fixed > 1;
}

} // namespace

bool startsLikeOtlp(std::string_view head)
{
    if (head.size() > 4 && head[0] == 0 && head[4] == 0x0A) head.remove_prefix(4);
    bool found = false, other = false;
    if (!head.starts_with('\n')) return false;
    (void)eachFieldOf(head, [&](std::uint32_t tag, int wire, std::string_view content) {
        other = tag != 1 || wire != 2;
        found = !other && hasSpan(content);
        return !other && !found && !content.empty();
    });
    return found && !other;
}

bool readOtlpProtobuf(ByteSource& source, const Progress& progress, OtlpSpans& to)
{
    std::string start(1, '\0');
    start.resize(source.read(start.data(), 1));
    const bool framed = start == std::string(1, '\0');
    WithStart whole(std::move(start), source);
    Unframed unframed(whole);
    ByteSource& messages = framed ? static_cast<ByteSource&>(unframed) : whole;
    PerfettoPackets packets(messages); // a request has the form of a trace: field 1, again and again
    std::string_view packet;
    while (packets.next(packet)) {
        takeResourceSpans(packet, to);
        if (progress.cancelled()) return false;
        progress.tell("reading", source.consumed(), source.size());
    }
    if (packets.damaged() > 0) to.damage(packets.lastDamage());
    if (!messages.damage().empty())
        to.note(messages.damage());
    else if (packets.cutOff())
        to.damage(fmt::format("it is cut off, or not OTLP from there on, after {} spans", to.spans()));
    return true;
}

} // namespace stagewright
