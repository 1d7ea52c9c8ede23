#include "traces/export/perfetto.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_builder.hpp>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/export/perfetto_fields.h"
#include "traces/export/trace_file.h"

namespace stagewright {

namespace {

namespace pf = perfetto;
template <typename Field>
using Message = protozero::pbf_builder<Field>;

// Fields of messages whose sizes are known before they are written: the fields of every span are written several times
// as fast as by builders, which write the contents before the length. Room is the caller's matter.
class Fields {
public:
    explicit Fields(char* at) : m_at(at) {}
    char* at() const { return m_at; }

    template <typename Field>
    void number(Field field, std::uint64_t value)
    {
        varint(static_cast<std::uint64_t>(field) << 3);
        varint(value);
    }
    template <typename Field>
    void fixed(Field field, std::uint64_t value)
    {
        varint(static_cast<std::uint64_t>(field) << 3 | 1);
        for (int byte = 0; byte < 8; ++byte) *m_at++ = static_cast<char>(value >> (8 * byte));
    }
    template <typename Field>
    void length(Field field, std::size_t bytes) // the bytes follow
    {
        varint(static_cast<std::uint64_t>(field) << 3 | 2);
        varint(bytes);
    }
    void bytes(std::string_view bytes)
    {
        std::memcpy(m_at, bytes.data(), bytes.size());
        m_at += bytes.size();
    }
    template <typename Field>
    void note(std::uint64_t name, Field field, std::uint64_t value)
    {
        length(pf::Event::annotation, 2 + 1 + sizeOf(value));
        number(pf::Annotation::nameIid, name);
        number(field, value);
    }
    static std::size_t sizeOf(std::uint64_t value)
    {
        return value < 0x80 ? 1 : (static_cast<std::size_t>(std::bit_width(value)) + 6) / 7;
    }

private:
    void varint(std::uint64_t value)
    {
        for (; value >= 0x80; value >>= 7) *m_at++ = static_cast<char>(value | 0x80);
        *m_at++ = static_cast<char>(value);
    }

    char* m_at;
};

constexpr std::uint32_t sequenceId = 1;
constexpr std::size_t blockSize = 1 << 20;
constexpr std::size_t eventBytes = 1 << 16; // of work with a label
constexpr std::size_t flowBytes = 10;       // a flow's field and number
constexpr std::size_t otherBytes = 176;     // the rest of a slice's event, besides its identity
constexpr std::size_t headBytes = 48;       // of a packet: the part before its event

// Names of annotations; iid = position + 1.
enum class Note : std::uint8_t {
    Step,
    StepNumber,
    Stage,
    Microbatch,
    CpuTime,
    Discarded,
    Cause,
    Why,
    Text,
};
constexpr std::array<std::string_view, 9> noteNames{"step",      "step_number", "stage", "microbatch", "cpu_ns",
                                                    "discarded", "cause",       "why",   "value"};

// Categories; iid = position + 1: the kinds, the lanes (of work with a label), then "bubble".
constexpr std::uint64_t laneCategories = opKindRoom + 1;
constexpr std::uint64_t bubbleCategory = laneCategories + laneRoom;

class PerfettoWriter : public TraceSink {
public:
    PerfettoWriter(const Run& run, const Sink& out, std::size_t namesAtOnce)
        : m_run(run), m_timeline(*run.timeline), m_out(out), m_shift(traceShift(m_timeline)),
          m_namesAtOnce(std::max<std::size_t>(1, namesAtOnce))
    {
        int most = run.info.microbatches;
        if (run.schedule) most = std::max(most, run.schedule->microbatches);
        m_microbatches = static_cast<std::uint64_t>(std::max(1, most));
        m_buffer.reserve(2 * blockSize); // protozero can't say that there is no memory to begin a message
        m_foreign.reserve(eventBytes);
        begin();
    }

    void process(int rank) override
    {
        track(processTrack(rank), [&](Message<pf::Track>& to) {
            to.add_string(pf::Track::name, fmt::format("rank {}", rank));
            {
                Message<pf::Process> process(to, pf::Track::process);
                process.add_int32(pf::Process::pid, rank + 1); // 0 is taken for the idle process by viewers
                process.add_string(pf::Process::name, fmt::format("rank {}", rank));
            }
            to.add_enum(pf::Track::childOrdering, pf::orderedExplicitly);
            to.add_int32(pf::Track::orderRank, rank);
        });
    }

    void row(const TraceRow& row) override
    {
        const std::uint64_t uuid = m_nextTrack++;
        m_trackOfRow.resize(static_cast<std::size_t>(row.number) + 1);
        m_trackOfRow[static_cast<std::size_t>(row.number)] = uuid;
        track(uuid, [&](Message<pf::Track>& to) {
            to.add_uint64(pf::Track::parent, processTrack(row.rank));
            to.add_string(pf::Track::name, row.name);
            to.add_int32(pf::Track::orderRank, row.order);
            to.add_enum(pf::Track::siblingMerge, pf::neverMerged);
        });
    }

    void counter(const TraceCounter& counter) override
    {
        const std::uint64_t uuid = m_nextTrack++;
        m_trackOfCounter.resize(static_cast<std::size_t>(counter.number) + 1);
        m_trackOfCounter[static_cast<std::size_t>(counter.number)] = uuid;
        track(uuid, [&](Message<pf::Track>& to) {
            if (counter.rank >= 0) to.add_uint64(pf::Track::parent, processTrack(counter.rank));
            to.add_string(pf::Track::name, counter.name);
            {
                Message<pf::Counter> unit(to, pf::Track::counter);
                if (counter.unit == "bytes")
                    unit.add_enum(pf::Counter::unit, pf::inBytes);
                else if (!counter.unit.empty())
                    unit.add_string(pf::Counter::unitName, counter.unit);
                else
                    unit.add_enum(pf::Counter::unit, pf::aCount);
                // one scale for all ranks and categories
                if (counter.isMemory) unit.add_string(pf::Counter::shareKey, "memory");
            }
            to.add_int32(pf::Track::orderRank, counter.order);
            to.add_enum(pf::Track::siblingMerge, pf::neverMerged);
        });
    }

    void span(const TraceSpan& item) override
    {
        const Span& span = *item.span;
        const std::string& what = whatOf(span, item.track->lane);
        const std::uint64_t uuid = m_trackOfRow[static_cast<std::size_t>(item.row)];
        const std::size_t most = otherBytes + what.size() + flowBytes * (item.leaves.size() + item.arrives.size());
        if (m_event.size() < most) m_event.resize(most);
        Fields event(m_event.data());
        event.number(pf::Event::type, pf::sliceBegin);
        event.number(pf::Event::track, uuid);
        event.bytes(what);
        if (span.step != outsideSteps) {
            event.note(iidOf(Note::Step), pf::Annotation::signedInt,
                       static_cast<std::uint64_t>(std::int64_t{span.step}));
            event.note(iidOf(Note::StepNumber), pf::Annotation::signedInt,
                       static_cast<std::uint64_t>(std::int64_t{stepNumber(span.step)}));
        }
        if (span.label == 0 && span.op.microbatch >= 0 && span.step != outsideSteps)
            event.number(pf::Event::correlation, static_cast<std::uint64_t>(span.step) * m_microbatches +
                                                     static_cast<std::uint64_t>(span.op.microbatch));
        if (m_timeline.hasCpuTime() && m_timeline.cpuTime(item.id) >= 0)
            event.note(iidOf(Note::CpuTime), pf::Annotation::signedInt,
                       static_cast<std::uint64_t>(m_timeline.cpuTime(item.id)));
        if ((span.flags & SpanDiscarded) != 0) event.note(iidOf(Note::Discarded), pf::Annotation::boolean, 1);
        for (const std::uint32_t flow : item.leaves) event.fixed(pf::Event::flow, std::uint64_t{flow} + 1);
        for (const std::uint32_t flow : item.arrives) event.fixed(pf::Event::terminatingFlow, std::uint64_t{flow} + 1);
        addEvent(span.start, pf::needsState,
                 std::string_view(m_event.data(), static_cast<std::size_t>(event.at() - m_event.data())));
        endSlice(span.end, uuid);
    }

    void bubble(const TraceBubble& item) override
    {
        const Gap& gap = *item.gap;
        const std::uint64_t uuid = m_trackOfRow[static_cast<std::size_t>(item.row)];
        const std::uint64_t name = intern(
            bubbleKey(item.cause == "unknown" ? idleCauseCount : static_cast<std::size_t>(gap.cause)), item.title);
        {
            Message<pf::Trace> trace(m_buffer);
            Message<pf::Packet> packet(trace, pf::Trace::packet);
            packet.add_uint64(pf::Packet::timestamp, timeOf(gap.start));
            packet.add_uint32(pf::Packet::sequence, sequenceId);
            packet.add_uint32(pf::Packet::sequenceFlags, pf::needsState);
            Message<pf::Event> event(packet, pf::Packet::trackEvent);
            event.add_enum(pf::Event::type, pf::sliceBegin);
            event.add_uint64(pf::Event::track, uuid);
            event.add_uint64(pf::Event::nameIid, name);
            event.add_uint64(pf::Event::categoryIid, bubbleCategory);
            annotate(event, Note::Step, item.step);
            annotate(event, Note::StepNumber, stepNumber(item.step));
            annotate(event, Note::Cause, item.cause);
            annotate(event, Note::Why, item.why);
        }
        endSlice(gap.end, uuid);
    }

    void sample(const TraceCounter& counter, const TraceSample& sample) override
    {
        std::array<char, headBytes> bytes{};
        Fields event(bytes.data());
        event.number(pf::Event::type, pf::counterValue);
        event.number(pf::Event::track, m_trackOfCounter[static_cast<std::size_t>(counter.number)]);
        if (sample.isWhole)
            event.number(pf::Event::counterValue, static_cast<std::uint64_t>(sample.whole));
        else
            event.fixed(pf::Event::doubleCounterValue, std::bit_cast<std::uint64_t>(sample.value));
        addEvent(sample.time, 0, std::string_view(bytes.data(), static_cast<std::size_t>(event.at() - bytes.data())));
    }

    Result<void> flush() override { return m_buffer.size() < blockSize ? Result<void>() : finish(); }

    Result<void> finish()
    {
        if (!m_buffer.empty() && !m_out(m_buffer))
            return fail(ErrorCode::Failed, "the trace could not be written",
                        "free some space or choose another location");
        m_buffer.clear();
        return {};
    }

private:
    static std::uint64_t iidOf(Note note) { return static_cast<std::uint64_t>(note) + 1; }
    std::uint64_t processTrack(int rank) const { return static_cast<std::uint64_t>(rank) + 1; }

    std::uint64_t timeOf(Nanos time) const { return static_cast<std::uint64_t>(time + m_shift); }

    // A packet with the event whose fields these are.
    void addEvent(Nanos time, std::uint32_t flags, std::string_view event)
    {
        std::array<char, headBytes> bytes{};
        const std::size_t rest = 1 + Fields::sizeOf(timeOf(time)) + 2 + (flags != 0 ? 2 : 0) + 1 +
                                 Fields::sizeOf(event.size()) + event.size();
        Fields head(bytes.data());
        head.length(pf::Trace::packet, rest);
        head.number(pf::Packet::timestamp, timeOf(time));
        head.number(pf::Packet::sequence, sequenceId);
        if (flags != 0) head.number(pf::Packet::sequenceFlags, flags);
        head.length(pf::Packet::trackEvent, event.size());
        m_buffer.append(bytes.data(), static_cast<std::size_t>(head.at() - bytes.data()));
        m_buffer.append(event);
    }

    void endSlice(Nanos time, std::uint64_t uuid)
    {
        std::array<char, headBytes> bytes{};
        Fields event(bytes.data());
        event.number(pf::Event::type, pf::sliceEnd);
        event.number(pf::Event::track, uuid);
        addEvent(time, 0, std::string_view(bytes.data(), static_cast<std::size_t>(event.at() - bytes.data())));
    }

    static void annotate(Message<pf::Event>& event, Note name, std::int64_t value)
    {
        Message<pf::Annotation> note(event, pf::Event::annotation);
        note.add_uint64(pf::Annotation::nameIid, iidOf(name));
        note.add_int64(pf::Annotation::signedInt, value);
    }
    static void annotate(Message<pf::Event>& event, Note name, std::string_view text)
    {
        Message<pf::Annotation> note(event, pf::Event::annotation);
        note.add_uint64(pf::Annotation::nameIid, iidOf(name));
        note.add_string(pf::Annotation::text, text.data(), text.size());
    }

    template <typename Fill>
    void track(std::uint64_t uuid, const Fill& fill)
    {
        Message<pf::Trace> trace(m_buffer);
        Message<pf::Packet> packet(trace, pf::Trace::packet);
        packet.add_uint32(pf::Packet::sequence, sequenceId);
        Message<pf::Track> descriptor(packet, pf::Packet::trackDescriptor);
        descriptor.add_uint64(pf::Track::uuid, uuid);
        fill(descriptor);
    }

    // The sequence's state, the clocks, the metadata, the order of processes.
    void begin()
    {
        clearState(true);
        if (m_run.info.createdUnixMs > 0) {
            Message<pf::Trace> trace(m_buffer);
            Message<pf::Packet> packet(trace, pf::Trace::packet);
            packet.add_uint32(pf::Packet::sequence, sequenceId);
            Message<pf::ClockSnapshot> clocks(packet, pf::Packet::clockSnapshot);
            const auto clock = [&clocks](std::uint32_t id, std::uint64_t time) {
                Message<pf::Clock> one(clocks, pf::ClockSnapshot::clock);
                one.add_uint32(pf::Clock::id, id);
                one.add_uint64(pf::Clock::timestamp, time);
            };
            clock(pf::boottime, static_cast<std::uint64_t>(m_shift));
            clock(pf::realtime, static_cast<std::uint64_t>(m_run.info.createdUnixMs) * 1'000'000);
            clocks.add_enum(pf::ClockSnapshot::primary, pf::boottime);
        }
        {
            Message<pf::Trace> trace(m_buffer);
            Message<pf::Packet> packet(trace, pf::Trace::packet);
            packet.add_uint32(pf::Packet::sequence, sequenceId);
            Message<pf::ChromeEvents> events(packet, pf::Packet::chromeEvents);
            for (const auto& [name, value] : metadata()) {
                Message<pf::ChromeMetadata> one(events, pf::ChromeEvents::metadata);
                one.add_string(pf::ChromeMetadata::name, name);
                one.add_string(pf::ChromeMetadata::text, value);
            }
        }
        track(0, [](Message<pf::Track>& root) {
            root.add_enum(pf::Track::processOrdering, pf::explicitRanks);
            root.add_enum(pf::Track::threadOrdering, pf::explicitRanks);
        });
        m_nextTrack = static_cast<std::uint64_t>(std::max(0, m_timeline.ranks())) + 1;
    }

    TextPairs metadata() const
    {
        const RunInfo& info = m_run.info;
        TextPairs pairs{{"generator", "stagewright"},
                        {"run", info.name},
                        {"schedule", info.scheduleName},
                        {"provenance", std::string(toText(m_timeline.provenance()))},
                        {"clock", m_timeline.clock()},
                        {"origin_ns", std::to_string(-m_shift)},
                        {"time_unit_ns", std::to_string(m_timeline.timeUnit())},
                        {"memory_unit", std::to_string(m_timeline.memoryUnit())},
                        {"ranks", std::to_string(m_timeline.ranks())},
                        {"steps", std::to_string(m_timeline.steps())}};
        for (const auto& [name, value] : m_run.configuration) pairs.emplace_back("configuration." + name, value);
        for (const auto& [name, value] : m_run.environment) pairs.emplace_back("environment." + name, value);
        return pairs;
    }

    // Restarts the numbering of names. The names that never change come with it.
    void clearState(bool first)
    {
        m_names.clear();
        m_labels.clear();
        m_nextName = 1;
        Message<pf::Trace> trace(m_buffer);
        Message<pf::Packet> packet(trace, pf::Trace::packet);
        packet.add_uint32(pf::Packet::sequence, sequenceId);
        packet.add_uint32(pf::Packet::sequenceFlags, pf::stateCleared);
        if (first) packet.add_bool(pf::Packet::firstOnSequence, true);
        {
            Message<pf::Defaults> defaults(packet, pf::Packet::defaults);
            defaults.add_uint32(pf::Defaults::timestampClock, pf::boottime);
        }
        Message<pf::Interned> interned(packet, pf::Packet::internedData);
        const auto add = [&interned](pf::Interned table, std::uint64_t iid, std::string_view name) {
            Message<pf::InternedName> entry(interned, table);
            entry.add_uint64(pf::InternedName::iid, iid);
            entry.add_string(pf::InternedName::name, name.data(), name.size());
        };
        for (const KindTraits& kind : allKinds())
            add(pf::Interned::categories, static_cast<std::uint64_t>(kind.kind) + 1, kind.text);
        for (const LaneTraits& lane : allLanes())
            add(pf::Interned::categories, laneCategories + static_cast<std::uint64_t>(lane.lane), lane.text);
        add(pf::Interned::categories, bubbleCategory, "bubble");
        for (std::size_t i = 0; i < noteNames.size(); ++i) add(pf::Interned::annotationNames, i + 1, noteNames[i]);
    }

    // The fields of a span's event that follow from its identity: name, category, stage and microbatch.
    const std::string& whatOf(const Span& span, Lane lane)
    {
        if (span.label != 0) {
            m_foreign.clear();
            Message<pf::Event> event(m_foreign);
            event.add_uint64(pf::Event::nameIid, intern(span.label, m_timeline.labelOf(span)));
            event.add_uint64(pf::Event::categoryIid, laneCategories + static_cast<std::uint64_t>(lane));
            return m_foreign;
        }
        if (const auto found = m_names.find(span.op); found != m_names.end()) return found->second;
        const std::uint64_t iid = newName(toText(span.op));
        std::string& what = m_names[span.op];
        what.reserve(otherBytes);
        Message<pf::Event> event(what);
        event.add_uint64(pf::Event::nameIid, iid);
        event.add_uint64(pf::Event::categoryIid, 1 + static_cast<std::uint64_t>(span.op.kind));
        annotate(event, Note::Stage, span.op.stage);
        if (span.op.microbatch >= 0) annotate(event, Note::Microbatch, span.op.microbatch);
        return what;
    }

    // beyond all labels
    static std::uint64_t bubbleKey(std::size_t cause) { return (std::uint64_t{1} << 32) + cause; }

    std::uint64_t intern(std::uint64_t key, std::string_view name)
    {
        if (const auto found = m_labels.find(key); found != m_labels.end()) return found->second;
        const std::uint64_t iid = newName(name);
        m_labels.emplace(key, iid);
        return iid;
    }

    std::uint64_t newName(std::string_view name)
    {
        if (m_nextName > m_namesAtOnce) clearState(false);
        const std::uint64_t iid = m_nextName++;
        Message<pf::Trace> trace(m_buffer);
        Message<pf::Packet> packet(trace, pf::Trace::packet);
        packet.add_uint32(pf::Packet::sequence, sequenceId);
        packet.add_uint32(pf::Packet::sequenceFlags, pf::needsState);
        Message<pf::Interned> interned(packet, pf::Packet::internedData);
        Message<pf::InternedName> entry(interned, pf::Interned::names);
        entry.add_uint64(pf::InternedName::iid, iid);
        entry.add_string(pf::InternedName::name, name.data(), name.size());
        return iid;
    }

    const Run& m_run;
    const Timeline& m_timeline;
    const Sink& m_out;
    Nanos m_shift; // times are unsigned
    std::size_t m_namesAtOnce;
    std::uint64_t m_microbatches = 1;
    std::string m_buffer;
    std::string m_event; // room for a slice's event
    std::vector<std::uint64_t> m_trackOfRow;
    std::vector<std::uint64_t> m_trackOfCounter;
    std::uint64_t m_nextTrack = 1;
    std::unordered_map<Op, std::string> m_names; // results of whatOf()
    std::string m_foreign;
    std::unordered_map<std::uint64_t, std::uint64_t> m_labels; // labels, then causes of bubbles
    std::uint64_t m_nextName = 1;
};

} // namespace

Result<TraceCounts> writePerfetto(const Run& run, const Sink& out, const Progress& progress, std::size_t namesAtOnce)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    PerfettoWriter writer(run, out, namesAtOnce);
    auto counts = walkTrace(run, writer, progress);
    if (!counts) return counts;
    STAGEWRIGHT_CHECK(writer.finish());
    return counts;
}

Result<TraceCounts> writePerfettoFile(const Run& run, const std::string& path, const Progress& progress)
{
    return writeTraceFile(path, [&](const Sink& out) { return writePerfetto(run, out, progress); });
}

} // namespace stagewright
