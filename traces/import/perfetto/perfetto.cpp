#include "traces/import/perfetto/perfetto.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/time_limits.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/perfetto_fields.h"
#include "traces/export/trace_file.h"
#include "traces/import/kineto/trace_events.h"
#include "traces/import/perfetto/annotations.h"
#include "traces/import/perfetto/event_args.h"
#include "traces/import/perfetto/packets.h"
#include "traces/import/perfetto/sequence_state.h"
#include "traces/import/perfetto/trace_clocks.h"
#include "traces/import/perfetto/track_names.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;
using Views = std::vector<std::string_view>;

class PerfettoReader {
public:
    PerfettoReader(std::string path, const ImportOptions& options, const Progress& progress)
        : m_progress(progress), m_events(TraceEvents::make(std::move(path), options, progress)),
          m_event(m_events->event()), m_rank(m_events->rank()), m_texts(m_rank.names)
    {
        m_none = m_texts.idOf("");
        for (std::size_t i = 0; i < workCategories.size(); ++i) m_workCategories[i] = m_texts.idOf(workCategories[i]);
        m_sync = m_texts.idOf("cuda_sync");
    }

    Result<ForeignFile> read(ByteSource& source)
    {
        ForeignRank& rank = m_rank;
        PerfettoPackets packets(source);
        std::string_view packet;
        std::int64_t count = 0;
        while (packets.next(packet)) {
            try {
                takePacket(packet);
            } catch (const protozero::exception&) {
                ++rank.damaged;
            }
            if (++count % 4096 != 0) continue;
            if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            m_progress.tell("reading", source.consumed(), source.size());
            m_events->makeRoom(source);
        }
        m_progress.tell("reading", source.size(), source.size());
        rank.damaged += packets.damaged();
        if (rank.events == 0)
            return fail(ErrorCode::Unreadable,
                        !packets.lastDamage().empty() ? packets.lastDamage()
                        : rank.damaged > 0
                            ? fmt::format("the trace has no readable events: {} packets are damaged", rank.damaged)
                            : "the trace has no slices, render stages or counters",
                        "record it again, or bring what torch.profiler's export_chrome_trace writes");
        for (auto& [track, open] : m_open)
            if (!open.empty())
                rank.leftOut["start events without an end event"] += static_cast<std::int64_t>(open.size());
        if (!packets.lastDamage().empty()) rank.notes.push_back(packets.lastDamage());
        if (!source.damage().empty())
            rank.notes.push_back(source.damage());
        else if (packets.cutOff())
            rank.notes.push_back(fmt::format("the file is cut off after {} events", rank.events));
        if (!m_clocks.allKnown())
            rank.notes.push_back(fmt::format("times of {} events are of a clock that the trace does not tie to its own",
                                             m_clocks.eventsOfUnknown()));
        for (const PerfettoTracks::Named& named : m_tracks.names()) nameOf(named);
        auto file = m_events->finish(nullptr);
        if (file)
            for (ForeignRank& one : file->ranks) one.format = "perfetto";
        return file;
    }

private:
    static constexpr std::size_t mostSequences = 100'000; // a writer has one a thread

    static constexpr std::array<std::string_view, 4> workCategories{"kernel", "gpu_memcpy", "gpu_memset",
                                                                    "gpu_user_annotation"};

    struct OpenSlice {
        Nanos start = 0;
        std::uint32_t name = 0, category = 0; // of m_texts
        PerfettoArgs::Notes notes;
        bool needsState = false;
    };
    // Those of a track; of the first ones many may have ended.
    struct OpenSlices {
        std::vector<OpenSlice> all;
        std::size_t first = 0;

        bool empty() const { return first == all.size(); }
        std::size_t size() const { return all.size() - first; }
        OpenSlice takeFirst()
        {
            constexpr std::size_t most = 4096; // ended ones that are kept, unless they are fewer than the others
            const OpenSlice slice = all[first++];
            if (empty()) all.clear(), first = 0;
            if (first > most && first > all.size() / 2)
                all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first)), first = 0;
            return slice;
        }
        OpenSlice takeLast()
        {
            const OpenSlice slice = all.back();
            all.pop_back();
            if (empty()) all.clear(), first = 0;
            return slice;
        }
    };
    // A track that had an event, while no descriptor changes what tracks are.
    struct SeenTrack {
        std::uint64_t track = 0, said = 0; // said 0: none
        PerfettoTracks::Place* place = nullptr;
        OpenSlices* open = nullptr;
    };
    SeenTrack& seen(std::uint64_t track)
    {
        SeenTrack& entry = m_seen[static_cast<std::size_t>((track * 0x9E3779B97F4A7C15u) >> 58)];
        if (entry.track != track || entry.said != m_tracks.said())
            entry = {track, m_tracks.said(), &m_tracks.placeOf(track), &m_open[track]};
        return entry;
    }

    void takePacket(std::string_view bytes)
    {
        Fields<pf::Packet> packet(bytes);
        std::uint64_t time = 0;
        std::uint32_t sequenceId = 0, flags = 0;
        std::optional<std::uint32_t> clock;
        bool first = false, saysState = false;
        std::string_view event, stage, counters;
        while (packet.next()) {
            const bool number = packet.isNumber(), text = packet.isBytes();
            switch (packet.tag()) {
            case pf::Packet::timestamp:
                if (number) time = packet.number();
                break;
            case pf::Packet::sequence:
                if (number) sequenceId = static_cast<std::uint32_t>(packet.number());
                break;
            case pf::Packet::sequenceFlags:
                if (number) flags = static_cast<std::uint32_t>(packet.number());
                break;
            case pf::Packet::timestampClock:
                if (number) clock = static_cast<std::uint32_t>(packet.number());
                break;
            case pf::Packet::firstOnSequence:
                if (number) first = (packet.number() != 0);
                break;
            case pf::Packet::trackEvent:
                if (text) event = packet.bytes();
                break;
            case pf::Packet::renderStage:
                if (text) stage = packet.bytes();
                break;
            case pf::Packet::gpuCounters:
                if (text) counters = packet.bytes();
                break;
            case pf::Packet::internedData:
            case pf::Packet::defaults:
            case pf::Packet::trackDescriptor:
            case pf::Packet::clockSnapshot:
            case pf::Packet::chromeEvents: saysState = true; break;
            default: break;
            }
        }
        if (m_sequence == nullptr || sequenceId != m_sequenceId) {
            if (m_sequences.size() >= mostSequences && !m_sequences.contains(sequenceId)) {
                ++m_rank.leftOut["packets of further sequences"];
                return;
            }
            m_sequence = &m_sequences[sequenceId];
            m_sequenceId = sequenceId;
        }
        PerfettoSequence& sequence = *m_sequence;
        if ((flags & pf::stateCleared) != 0 || first) sequence.clear();
        if (saysState) takeState(bytes, sequence);
        if (event.empty() && stage.empty() && counters.empty()) return;
        const auto at = m_clocks.timeOf(time, clock.value_or(sequence.defaultClock), sequence);
        if (!at) {
            ++m_rank.damaged;
            return;
        }
        if (!event.empty()) takeTrackEvent(event, *at, (flags & pf::needsState) != 0, sequence);
        if (!stage.empty()) takeRenderStage(stage, *at, sequence);
        if (!counters.empty()) takeGpuCounters(counters, *at, sequence);
    }

    // What a packet says for those that follow and for its own event, in whatever order its fields are.
    void takeState(std::string_view bytes, PerfettoSequence& sequence)
    {
        Fields<pf::Packet> packet(bytes);
        while (packet.next()) {
            if (!packet.isBytes()) continue;
            switch (packet.tag()) {
            case pf::Packet::defaults: takeDefaults(packet.bytes(), sequence); break;
            case pf::Packet::internedData: sequence.intern(packet.bytes(), m_texts); break;
            case pf::Packet::clockSnapshot:
                if (m_clocks.take(packet.bytes(), sequence)) m_rank.epoch = *m_clocks.epoch();
                break;
            case pf::Packet::trackDescriptor: m_tracks.add(packet.bytes()); break;
            case pf::Packet::chromeEvents: takeChromeMetadata(packet.bytes()); break;
            default: break;
            }
        }
    }

    static void takeDefaults(std::string_view bytes, PerfettoSequence& sequence)
    {
        Fields<pf::Defaults> defaults(bytes.data(), bytes.size());
        while (defaults.next())
            if (defaults.tag() == pf::Defaults::timestampClock && defaults.isNumber()) {
                sequence.defaultClock = static_cast<std::uint32_t>(defaults.number());
            } else if (defaults.tag() == pf::Defaults::trackEvent && defaults.isBytes()) {
                Fields<pf::Event> event(defaults.bytes());
                while (event.next())
                    if (event.tag() == pf::Event::track && event.isNumber()) sequence.defaultTrack = event.number();
            }
    }

    void takeChromeMetadata(std::string_view bytes)
    {
        std::string members;
        Fields<pf::ChromeEvents> events(bytes.data(), bytes.size());
        while (events.next()) {
            if (events.tag() != pf::ChromeEvents::metadata || !events.isBytes()) continue;
            Fields<pf::ChromeMetadata> metadata(events.bytes());
            std::string name, value;
            while (metadata.next())
                if (metadata.tag() == pf::ChromeMetadata::name && metadata.isBytes())
                    name = std::string(metadata.bytes());
                else if (metadata.tag() == pf::ChromeMetadata::text && metadata.isBytes())
                    value = jsonText(metadata.bytes());
            if (!value.empty()) addMember(name, value, members);
        }
        m_events->member("otherData", "{" + members + "}");
    }

    void takeTrackEvent(std::string_view bytes, Nanos time, bool needsState, const PerfettoSequence& sequence)
    {
        Fields<pf::Event> event(bytes.data(), bytes.size());
        std::uint64_t track = sequence.defaultTrack;
        std::int32_t type = 0;
        std::uint32_t name = m_none, category = m_none;
        std::optional<double> value;
        std::optional<std::int64_t> whole;
        int flows = 0;
        bool legacy = false;
        Views& notes = m_notes;
        notes.clear();
        while (event.next()) {
            const bool number = event.isNumber(), text = event.isBytes();
            switch (event.tag()) {
            case pf::Event::type:
                if (number) type = event.small();
                break;
            case pf::Event::track:
                if (number) track = event.number();
                break;
            case pf::Event::nameIid:
                if (number) name = sequence.name(event.number()).value_or(m_none);
                break;
            case pf::Event::name:
                if (text) name = m_texts.idOf(event.bytes());
                break;
            case pf::Event::category:
                if (text) category = m_texts.idOf(event.bytes());
                break;
            case pf::Event::categoryIid:
                if (number) {
                    category = sequence.category(event.number()).value_or(m_none);
                } else if (text) { // packed
                    const std::string_view packed = event.bytes();
                    for (const char* at = packed.data(); at != packed.data() + packed.size();) {
                        const auto [iid, end] = varintAt(at, packed.data() + packed.size());
                        category = sequence.category(iid).value_or(m_none);
                        at = end;
                    }
                }
                break;
            case pf::Event::annotation:
                if (text) notes.push_back(event.bytes());
                break;
            case pf::Event::counterValue:
                if (number) whole = event.whole();
                break;
            case pf::Event::doubleCounterValue:
                if (event.isDouble()) value = event.real();
                break;
            case pf::Event::flow:
            case pf::Event::terminatingFlow: ++flows; break;
            case pf::Event::legacy: legacy = true; break;
            default: break;
            }
        }
        SeenTrack& of = seen(track);
        PerfettoTracks::Place& place = *of.place;
        for (; flows > 0; --flows) give('s', place, time, m_none, m_none);
        switch (type) {
        case pf::sliceBegin: {
            OpenSlice& slice = of.open->all.emplace_back(OpenSlice{time, name, category, {}, needsState});
            if (!notes.empty()) addNotes(slice, sequence);
            break;
        }
        case pf::sliceEnd: endSlice(*of.open, place, time, needsState, sequence); break;
        case pf::instant: {
            OpenSlice slice{time, name, category, {}, needsState};
            addNotes(slice, sequence);
            m_args.give(slice.notes);
            give('i', place, time, name, category);
            break;
        }
        case pf::counterValue: takeCounter(place, time, value, whole); break;
        default: ++m_rank.events; ++m_rank.leftOut[legacy ? "events in Chrome's older form" : "events of other types"];
        }
    }

    // Arguments that the event's category uses.
    void addNotes(OpenSlice& slice, const PerfettoSequence& sequence)
    {
        if (m_notes.empty() || !m_events->wanted()(m_texts[slice.category], m_texts[slice.name])) return;
        for (const std::string_view note : m_notes) m_args.note(note, sequence, m_texts, slice.notes);
    }
    // Slices of a track lie in each other, so that an end is the newest one's. PyTorch writes all starts of a thread
    // and then all ends in the same order, each without the flag that its start has; so may a writer whose ends go back
    // in time.
    void endSlice(OpenSlices& open, PerfettoTracks::Place& place, Nanos time, bool needsState,
                  const PerfettoSequence& sequence)
    {
        if (open.empty()) {
            ++m_rank.events;
            ++m_rank.leftOut["end events without a start event"];
            return;
        }
        const bool inOrder = (open.all[open.first].needsState && !needsState) || time < open.all.back().start;
        OpenSlice slice = inOrder ? open.takeFirst() : open.takeLast();
        if (!m_notes.empty()) addNotes(slice, sequence);
        m_args.give(slice.notes);
        give('X', place, slice.start, slice.name,
             slice.category == m_none && slice.notes.sync ? m_sync : slice.category,
             std::max<Nanos>(time - slice.start, 0));
    }

    void takeCounter(PerfettoTracks::Place& place, Nanos time, std::optional<double> value,
                     std::optional<std::int64_t> whole)
    {
        if (whole) {
            std::int64_t sum = *whole;
            if (place.incremental)
                sum = place.sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(place.sum) +
                                                            static_cast<std::uint64_t>(*whole));
            value = static_cast<double>(sum) * static_cast<double>(std::max<std::int64_t>(place.multiplier, 1));
        }
        if (!value || !std::isfinite(*value)) {
            ++m_rank.damaged;
            return;
        }
        const std::string_view unit = m_own && place.unit.empty() ? std::string_view("value") : place.unit;
        giveSample(place, time, m_texts.idOf(place.name), unit, *value);
    }
    void giveSample(PerfettoTracks::Place& place, Nanos time, std::uint32_t name, std::string_view unit, double value)
    {
        m_args.clear();
        m_event.value = value;
        give('C', place, time, name, m_none, 0, unit);
        m_event.value.reset();
    }

    static std::array<std::int64_t, 3> extentOf(Fields<pf::Extent> extent)
    {
        std::array<std::int64_t, 3> sizes{1, 1, 1};
        while (extent.next()) {
            const auto axis = static_cast<unsigned>(extent.tag()) - 1;
            if (axis < sizes.size() && extent.isNumber()) sizes[axis] = static_cast<std::uint32_t>(extent.number());
        }
        return sizes;
    }

    // Work of a device: Kineto's category by its stage, the lane's number as its stream.
    void takeRenderStage(std::string_view bytes, Nanos time, const PerfettoSequence& sequence)
    {
        Fields<pf::RenderStage> stage(bytes.data(), bytes.size());
        std::uint64_t duration = 0;
        std::int64_t gpu = 0;
        std::uint32_t name = m_none, kind = m_none, queue = m_none;
        PerfettoArgs::Place place;
        KinetoArgs& args = m_event.args;
        m_args.clear();
        m_args.set();
        while (stage.next()) {
            const bool number = stage.isNumber(), text = stage.isBytes();
            switch (stage.tag()) {
            case pf::RenderStage::duration:
                if (number) duration = stage.number();
                break;
            case pf::RenderStage::gpu:
                if (number) gpu = stage.small();
                break;
            case pf::RenderStage::stageIid:
                if (number) kind = sequence.gpuSpecification(stage.number()).value_or(m_none);
                break;
            case pf::RenderStage::queueIid:
                if (number) queue = sequence.gpuSpecification(stage.number()).value_or(m_none);
                break;
            case pf::RenderStage::nameIid:
                if (number) name = sequence.name(stage.number()).value_or(m_none);
                break;
            case pf::RenderStage::name:
                if (text) name = m_texts.idOf(stage.bytes());
                break;
            case pf::RenderStage::extraData: {
                if (!text) break;
                Fields<pf::ExtraData> extra(stage.bytes());
                std::string_view key, value;
                while (extra.next())
                    if (extra.tag() == pf::ExtraData::name && extra.isBytes())
                        key = extra.bytes();
                    else if (extra.tag() == pf::ExtraData::value && extra.isBytes())
                        value = extra.bytes();
                m_args.extra(key, value, place);
                break;
            }
            case pf::RenderStage::launch: {
                if (!text) break;
                Fields<pf::KernelLaunch> launch(stage.bytes());
                while (launch.next()) {
                    const pf::KernelLaunch which = launch.tag();
                    if ((which != pf::KernelLaunch::grid && which != pf::KernelLaunch::workgroup) || !launch.isBytes())
                        continue;
                    (which == pf::KernelLaunch::grid ? args.grid : args.block) =
                        extentOf(Fields<pf::Extent>(launch.bytes()));
                }
                break;
            }
            default: break;
            }
        }
        if (duration > static_cast<std::uint64_t>(farthestReading)) {
            ++m_rank.damaged;
            return;
        }
        const std::string& stageName = m_texts[kind];
        std::uint32_t category = m_workCategories[0];
        if (stageName == "Memcpy") category = m_workCategories[1];
        if (stageName == "Memset") category = m_workCategories[2];
        if (stageName == "Annotation") category = m_workCategories[3];
        if (stageName == "EventRecord" || stageName == "HostNode") category = m_texts.idOf("cuda_event");
        m_args.finishExtra();
        give('X', laneOf(place.device, place.stream, queue, gpu), time, name == m_none ? kind : name, category,
             static_cast<Nanos>(duration));
    }

    // The row of a device's work, by what the work says of device and stream, else by its queue: "[07] stream 7" or a
    // name that was given.
    PerfettoTracks::Place& laneOf(std::string_view device, std::string_view stream, std::uint32_t queue,
                                  std::int64_t gpu)
    {
        if (m_lane != nullptr && m_lane->device == device && m_lane->stream == stream && m_lane->queue == queue &&
            m_lane->gpu == gpu)
            return m_lane->place;
        auto& lane = m_lanes[{std::string(device), std::string(stream), queue, gpu}];
        if (lane.place.process.empty()) {
            lane = {std::string(device), std::string(stream), queue, gpu, {}};
            std::string called = m_texts[queue];
            if (const std::size_t at = called.find("] "); called.starts_with('[') && at != std::string::npos)
                called.erase(0, at + 2);
            if (called.starts_with("stream ")) called.erase(0, 7);
            lane.place.process = device.empty() ? std::to_string(gpu) : std::string(device);
            lane.place.thread = !stream.empty() ? std::string(stream) : called.empty() ? "0" : called;
        }
        m_lane = &lane;
        return lane.place;
    }

    void takeGpuCounters(std::string_view bytes, Nanos time, const PerfettoSequence& sequence)
    {
        Fields<pf::GpuCounters> message(bytes.data(), bytes.size());
        struct Value {
            std::uint64_t id = 0;
            double value = 0;
        };
        std::vector<Value> values;
        PerfettoSequence::GpuCounters own;
        const PerfettoSequence::GpuCounters* described = &own;
        int gpu = -1;
        while (message.next()) {
            if (message.tag() == pf::GpuCounters::descriptorIid && message.isNumber()) {
                if (const auto* found = sequence.gpuCounters(message.number())) described = found;
            } else if (message.tag() == pf::GpuCounters::gpu && message.isNumber()) {
                gpu = message.small();
            } else if (message.tag() == pf::GpuCounters::descriptor && message.isBytes()) {
                PerfettoSequence::readCounterNames(message.bytes(), own);
            } else if (message.tag() == pf::GpuCounters::counters && message.isBytes()) {
                Fields<pf::GpuCounter> counter(message.bytes());
                Value& value = values.emplace_back();
                while (counter.next())
                    if (counter.tag() == pf::GpuCounter::id && counter.isNumber())
                        value.id = static_cast<std::uint32_t>(counter.number());
                    else if (counter.tag() == pf::GpuCounter::whole && counter.isNumber())
                        value.value = static_cast<double>(counter.whole());
                    else if (counter.tag() == pf::GpuCounter::number && counter.isDouble())
                        value.value = counter.real();
            }
        }
        PerfettoTracks::Place place;
        place.process = std::to_string(gpu >= 0 ? gpu : described->gpu);
        m_lastPlace = nullptr; // where this one lies, another lay before
        for (const Value& value : values) {
            const auto name = described->names.find(value.id);
            if (name == described->names.end() || !std::isfinite(value.value)) {
                ++m_rank.damaged;
                continue;
            }
            giveSample(place, time, m_texts.idOf(fmt::format("GPU {} {}", place.process, name->second)), {},
                       value.value);
        }
    }

    // The event's arguments are there. series: of a sample.
    void give(char phase, PerfettoTracks::Place& place, Nanos time, std::uint32_t name, std::uint32_t category,
              Nanos duration = 0, std::string_view series = {})
    {
        // Names first: what a device is by its process's name is asked of each event.
        if (&place != m_lastPlace || m_tracks.said() != m_lastSaid) {
            m_lastPlace = &place;
            m_lastSaid = m_tracks.said();
            if (const std::string_view called = m_tracks.processName(place.process);
                m_named.insert(place.process).second && !called.empty()) {
                const KinetoEvent kept = m_event;
                nameOf({place.process, {}, std::string(called)});
                m_event = kept;
                m_args.set();
            }
        }
        KinetoEvent& event = m_event;
        event.phase = phase;
        event.name = m_texts[name];
        event.nameId = name;
        event.category = phase == 'C' ? series : std::string_view(m_texts[category]);
        event.categoryId = category;
        event.pid = place.process;
        event.tid = place.thread;
        event.place = &place.numbers;
        event.time = time;
        event.duration = duration;
        if (m_events->take())
            ++m_rank.events;
        else
            ++m_rank.damaged;
        m_own = m_own || m_rank.ownEvents;
    }

    void nameOf(const PerfettoTracks::Named& named)
    {
        KinetoEvent& event = m_event;
        event = {};
        m_args.set();
        event.phase = 'M';
        event.name = named.thread.empty() ? "process_name" : "thread_name";
        event.pid = named.process;
        event.tid = named.thread;
        event.args.name = named.name;
        (void)m_events->take();
    }

    const Progress& m_progress;
    std::unique_ptr<TraceEvents> m_events;
    KinetoEvent& m_event; // of m_events, as the next
    PerfettoArgs m_args{m_event.args};
    ForeignRank& m_rank;
    NameTable& m_texts; // the rank's
    std::array<std::uint32_t, workCategories.size()> m_workCategories{};
    std::uint32_t m_sync = 0;
    std::uint32_t m_none = 0;
    std::unordered_map<std::uint32_t, PerfettoSequence> m_sequences;
    PerfettoTracks m_tracks;
    std::unordered_map<std::uint64_t, OpenSlices> m_open; // by track
    std::array<SeenTrack, 64> m_seen;
    struct Lane {
        std::string device, stream;
        std::uint32_t queue = 0;
        std::int64_t gpu = 0;
        PerfettoTracks::Place place;
    };
    std::map<std::tuple<std::string, std::string, std::uint32_t, std::int64_t>, Lane> m_lanes;
    Lane* m_lane = nullptr;                 // the last one
    PerfettoSequence* m_sequence = nullptr; // likewise
    std::uint32_t m_sequenceId = 0;
    PerfettoClocks m_clocks;
    std::set<std::string, std::less<>> m_named;         // processes
    const PerfettoTracks::Place* m_lastPlace = nullptr; // whose process is in m_named, as of m_lastSaid
    std::uint64_t m_lastSaid = 0;
    bool m_own = false;
    Views m_notes;
};

} // namespace

Result<ForeignFile> readPerfettoTrace(ByteSource& source, const std::string& name, const ImportOptions& options,
                                      const Progress& progress)
{
    return PerfettoReader(name, options, progress).read(source);
}

namespace formats {

namespace {

Result<WrittenFile> writePerfettoRequest(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto counts, writePerfettoFile(*request.run, request.path, request.progress));
    return writtenOf(counts);
}

Result<ForeignFile> readPerfetto(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    return readPerfettoTrace(*source, path, options, progress);
}

} // namespace

extern const FormatInfo perfetto;
const FormatInfo perfetto{.name = "perfetto",
                          .title = "Perfetto trace",
                          .reads = "Perfetto traces, such as PyTorch's .pftrace",
                          .writes = "a trace for ui.perfetto.dev",
                          .suffixes = {".pftrace", ".perfetto-trace"},
                          .recordMemory = "record with profile_memory=True and export JSON",
                          .recordKernels = "record with ProfilerActivity.CUDA",
                          .write = writePerfettoRequest,
                          .sniff = startsLikePerfetto,
                          .read = readPerfetto};

} // namespace formats

} // namespace stagewright
