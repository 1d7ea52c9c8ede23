// OtlpSpans: the spans of requests of OTLP, collected until ranks are made of them. One object holds those of a file, or
// of all requests that a server received. Times are nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/format/format_registry.h"

namespace stagewright {

using OtlpAttributes = std::vector<std::pair<std::string, std::string>>; // of scalar values, as text

struct OtlpSpan {                // as it is read
    std::string traceId, spanId; // as small hexadecimal digits
    std::string name;
    std::uint64_t start = 0, end = 0;
    OtlpAttributes attributes;
    std::int64_t events = 0; // points in time within it
};

// What is kept of one; numbers that it does not say are −1.
struct KeptSpan {
    Nanos start = 0, end = 0;
    std::uint32_t name = 0, thread = 0; // of OtlpSpans' names
    int resource = 0;
    int stage = -1, chunk = -1, microbatch = -1;
    int peer = -1;                  // the rank that a message goes to or comes from
    std::int64_t step = -1;         // of the span of a step
    std::int64_t microbatches = -1; // of the step's passes
    std::int64_t bytes = -1;        // of a message
};

class OtlpSpans {
public:
    OtlpSpans() = default;
    OtlpSpans(OtlpSpans&&) = default; // resources are referenced by pointer
    OtlpSpans& operator=(OtlpSpans&&) = default;
    OtlpSpans(const OtlpSpans&) = delete;
    OtlpSpans& operator=(const OtlpSpans&) = delete;

    int addResource();                                         // of one process; its attributes may come later
    void setResource(int resource, OtlpAttributes attributes); // of addResource()
    // False: it is counted, but not kept.
    bool add(int resource, const OtlpSpan& span);
    void damage(std::string what) // once for each place that can't be read; the first is kept in words
    {
        if (m_damaged++ == 0) m_damage = std::move(what);
    }
    void note(std::string text) { m_notes.push_back(std::move(text)); }

    std::int64_t spans() const { return m_seen; } // read, kept or not
    std::int64_t kept() const { return static_cast<std::int64_t>(m_spans.size()); }
    std::int64_t damaged() const { return m_damaged; }
    const std::string& firstDamage() const { return m_damage; } // "": none

    // The ranks, by number where the processes say one. An Error if there is no span. Takes the spans.
    Result<ForeignFile> finish();

private:
    std::set<OtlpAttributes> m_attributes;
    std::vector<const OtlpAttributes*> m_resources; // of m_attributes, by resource
    std::vector<KeptSpan> m_spans;
    NameTable m_names;
    std::unordered_set<std::uint64_t> m_ids; // of spans, for those that were sent twice
    std::map<std::string, std::int64_t, std::less<>> m_leftOut;
    std::int64_t m_seen = 0, m_damaged = 0;
    std::string m_damage;
    std::vector<std::string> m_notes;
};

} // namespace stagewright
