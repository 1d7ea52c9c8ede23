#include "traces/import/perfetto/perfetto.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <protozero/pbf_message.hpp>

#include "schedules/base/time_limits.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/perfetto_fields.h"
#include "traces/export/trace_file.h"
#include "traces/foreign/json_events.h"
#include "traces/import/kineto/trace_events.h"
#include "traces/import/perfetto/annotations.h"
#include "traces/import/perfetto/packets.h"
#include "traces/import/perfetto/sequence_state.h"
#include "traces/import/perfetto/track_names.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;
using Views = std::vector<std::string_view>;

class PerfettoReader {
public:
    PerfettoReader(std::string path, const ImportOptions& options, const Progress& progress)
        : m_progress(progress), m_events(TraceEvents::make(std::move(path), options, progress))
    {
        m_none = m_texts.idOf("");
    }

    Result<ForeignFile> read(ByteSource& source)
    {
        ForeignRank& rank = m_events->rank();
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
        if (!m_unknownClocks.empty())
            rank.notes.push_back(fmt::format("times of {} events are of a clock that the trace does not tie to its own",
                                             m_ofUnknownClocks));
        for (const PerfettoTracks::Named& named : m_tracks.names()) nameOf(named);
        auto file = m_events->finish(nullptr);
        if (file)
            for (ForeignRank& one : file->ranks) one.format = "perfetto";
        return file;
    }

private:
    static constexpr std::size_t mostSequences = 100'000; // a writer has one a thread

    struct OpenSlice {
        Nanos start = 0;
        std::uint32_t name = 0, category = 0; // of m_texts
        bool needsState = false;
        std::string args; // members of a JSON object
    };

    void takePacket(std::string_view bytes)
    {
        protozero::pbf_message<pf::Packet> packet(bytes.data(), bytes.size());
        std::uint64_t time = 0;
        std::uint32_t sequenceId = 0, flags = 0;
        std::optional<std::uint32_t> clock;
        bool first = false;
        std::string_view event, interned, defaults, descriptor, snapshot, stage, counters, chrome;
        while (packet.next()) {
            const bool number = isNumber(packet), text = isBytes(packet);
            switch (packet.tag()) {
            case pf::Packet::timestamp: number ? void(time = packet.get_uint64()) : packet.skip(); break;
            case pf::Packet::sequence: number ? void(sequenceId = packet.get_uint32()) : packet.skip(); break;
            case pf::Packet::sequenceFlags: number ? void(flags = packet.get_uint32()) : packet.skip(); break;
            case pf::Packet::timestampClock: number ? void(clock = packet.get_uint32()) : packet.skip(); break;
            case pf::Packet::firstOnSequence: number ? void(first = packet.get_bool()) : packet.skip(); break;
            case pf::Packet::trackEvent: text ? void(event = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::internedData: text ? void(interned = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::defaults: text ? void(defaults = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::trackDescriptor: text ? void(descriptor = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::clockSnapshot: text ? void(snapshot = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::renderStage: text ? void(stage = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::gpuCounters: text ? void(counters = viewOf(packet)) : packet.skip(); break;
            case pf::Packet::chromeEvents: text ? void(chrome = viewOf(packet)) : packet.skip(); break;
            default: packet.skip();
            }
        }
        if (m_sequences.size() >= mostSequences && !m_sequences.contains(sequenceId)) {
            ++m_events->rank().leftOut["packets of further sequences"];
            return;
        }
        PerfettoSequence& sequence = m_sequences[sequenceId];
        if ((flags & pf::stateCleared) != 0 || first) sequence.clear();
        if (!defaults.empty()) takeDefaults(defaults, sequence);
        if (!interned.empty()) sequence.intern(interned, m_texts);
        if (!snapshot.empty()) takeClocks(snapshot, sequence);
        if (!descriptor.empty()) m_tracks.add(descriptor);
        if (!chrome.empty()) takeChromeMetadata(chrome);
        if (event.empty() && stage.empty() && counters.empty()) return;
        const auto at = timeOf(time, clock.value_or(sequence.defaultClock), sequence);
        if (!at) {
            ++m_events->rank().damaged;
            return;
        }
        if (!event.empty()) takeTrackEvent(event, *at, (flags & pf::needsState) != 0, sequence);
        if (!stage.empty()) takeRenderStage(stage, *at, sequence);
        if (!counters.empty()) takeGpuCounters(counters, *at, sequence);
    }

    static void takeDefaults(std::string_view bytes, PerfettoSequence& sequence)
    {
        protozero::pbf_message<pf::Defaults> defaults(bytes.data(), bytes.size());
        while (defaults.next())
            if (defaults.tag() == pf::Defaults::timestampClock && isNumber(defaults)) {
                sequence.defaultClock = defaults.get_uint32();
            } else if (defaults.tag() == pf::Defaults::trackEvent && isBytes(defaults)) {
                protozero::pbf_message<pf::Event> event(defaults.get_message());
                while (event.next())
                    if (event.tag() == pf::Event::track && isNumber(event))
                        sequence.defaultTrack = event.get_uint64();
                    else
                        event.skip();
            } else {
                defaults.skip();
            }
    }

    // The trace's clock is the boot time's, or what the snapshot says of the first one.
    void takeClocks(std::string_view bytes, PerfettoSequence& sequence)
    {
        struct Reading {
            std::uint32_t id = 0;
            std::int64_t time = 0, multiplier = 1;
            bool incremental = false;
        };
        std::vector<Reading> readings;
        protozero::pbf_message<pf::ClockSnapshot> snapshot(bytes.data(), bytes.size());
        while (snapshot.next()) {
            if (snapshot.tag() != pf::ClockSnapshot::clock || !isBytes(snapshot)) {
                snapshot.skip();
                continue;
            }
            protozero::pbf_message<pf::Clock> clock(snapshot.get_message());
            Reading& reading = readings.emplace_back();
            while (clock.next())
                if (!isNumber(clock))
                    clock.skip();
                else if (clock.tag() == pf::Clock::id)
                    reading.id = clock.get_uint32();
                else if (clock.tag() == pf::Clock::timestamp)
                    reading.time = static_cast<std::int64_t>(clock.get_uint64());
                else if (clock.tag() == pf::Clock::isIncremental)
                    reading.incremental = clock.get_bool();
                else if (clock.tag() == pf::Clock::multiplier)
                    reading.multiplier = std::clamp<std::int64_t>(clock.get_int64(), 1, 1'000'000'000);
                else
                    clock.skip();
        }
        const auto nanos = [](const Reading& reading) { return reading.time * reading.multiplier; };
        std::erase_if(readings, [](const Reading& reading) {
            return reading.time < 0 || reading.time > farthestReading / reading.multiplier;
        });
        const auto boot = std::find_if(readings.begin(), readings.end(),
                                       [](const Reading& reading) { return reading.id == pf::boottime; });
        if (boot == readings.end()) return;
        for (const Reading& reading : readings) {
            const PerfettoSequence::Clock clock{nanos(*boot) - nanos(reading), reading.multiplier, reading.incremental,
                                                reading.time};
            if (reading.id >= 64 && reading.id < 128)
                sequence.clocks[reading.id] = clock;
            else if (reading.id != pf::boottime)
                m_clocks[reading.id] = clock;
            if (reading.id == pf::realtime && !m_epochKnown) {
                m_events->rank().epoch = -clock.offset;
                m_epochKnown = true;
            }
        }
    }

    // Empty: no possible time.
    std::optional<Nanos> timeOf(std::uint64_t time, std::uint32_t id, PerfettoSequence& sequence)
    {
        if (time > static_cast<std::uint64_t>(farthestReading)) return std::nullopt;
        const auto value = static_cast<std::int64_t>(time);
        if (id == 0 || id == pf::boottime) return value;
        auto& clocks = id >= 64 && id < 128 ? sequence.clocks : m_clocks;
        const auto found = clocks.find(id);
        if (found == clocks.end()) {
            m_unknownClocks.insert(id);
            ++m_ofUnknownClocks;
            return value;
        }
        PerfettoSequence::Clock& clock = found->second;
        std::int64_t reading = value;
        if (clock.incremental) {
            if (value > farthestReading - clock.last) return std::nullopt;
            reading = clock.last += value;
        }
        if (reading > farthestReading / clock.multiplier) return std::nullopt;
        return reading * clock.multiplier + clock.offset;
    }

    void takeChromeMetadata(std::string_view bytes)
    {
        std::string members;
        protozero::pbf_message<pf::ChromeEvents> events(bytes.data(), bytes.size());
        while (events.next()) {
            if (events.tag() != pf::ChromeEvents::metadata || !isBytes(events)) {
                events.skip();
                continue;
            }
            protozero::pbf_message<pf::ChromeMetadata> metadata(events.get_message());
            std::string name, value;
            while (metadata.next())
                if (metadata.tag() == pf::ChromeMetadata::name && isBytes(metadata))
                    name = metadata.get_string();
                else if (metadata.tag() == pf::ChromeMetadata::text && isBytes(metadata))
                    value = jsonText(metadata.get_string());
                else
                    metadata.skip();
            if (!value.empty()) addMember(name, value, members);
        }
        m_events->member("otherData", "{" + members + "}");
    }

    void takeTrackEvent(std::string_view bytes, Nanos time, bool needsState, const PerfettoSequence& sequence)
    {
        protozero::pbf_message<pf::Event> event(bytes.data(), bytes.size());
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
            const bool number = isNumber(event), text = isBytes(event);
            switch (event.tag()) {
            case pf::Event::type: number ? void(type = event.get_enum()) : event.skip(); break;
            case pf::Event::track: number ? void(track = event.get_uint64()) : event.skip(); break;
            case pf::Event::nameIid:
                number ? void(name = sequence.name(event.get_uint64()).value_or(m_none)) : event.skip();
                break;
            case pf::Event::name: text ? void(name = m_texts.idOf(viewOf(event))) : event.skip(); break;
            case pf::Event::category: text ? void(category = m_texts.idOf(viewOf(event))) : event.skip(); break;
            case pf::Event::categoryIid:
                if (number) {
                    category = sequence.category(event.get_uint64()).value_or(m_none);
                } else if (text) { // packed
                    for (const auto iid : event.get_packed_uint64()) category = sequence.category(iid).value_or(m_none);
                } else {
                    event.skip();
                }
                break;
            case pf::Event::annotation: text ? void(notes.push_back(viewOf(event))) : event.skip(); break;
            case pf::Event::counterValue: number ? void(whole = event.get_int64()) : event.skip(); break;
            case pf::Event::doubleCounterValue:
                isDouble(event) ? void(value = event.get_double()) : event.skip();
                break;
            case pf::Event::flow:
            case pf::Event::terminatingFlow:
                ++flows;
                event.skip();
                break;
            case pf::Event::legacy:
                legacy = true;
                event.skip();
                break;
            default: event.skip();
            }
        }
        PerfettoTracks::Place& place = m_tracks.placeOf(track);
        for (; flows > 0; --flows) give('s', place, time, m_none, m_none, {});
        switch (type) {
        case pf::sliceBegin: {
            OpenSlice& slice = m_open[track].emplace_back(OpenSlice{time, name, category, needsState, {}});
            addNotes(slice, sequence);
            break;
        }
        case pf::sliceEnd: endSlice(track, place, time, needsState, sequence); break;
        case pf::instant: give('i', place, time, name, category, argsOf(name, category, sequence)); break;
        case pf::counterValue: takeCounter(place, time, value, whole); break;
        default:
            ++m_events->rank().events;
            ++m_events->rank().leftOut[legacy ? "events in Chrome's older form" : "events of other types"];
        }
    }

    std::string argsOf(std::uint32_t name, std::uint32_t category, const PerfettoSequence& sequence)
    {
        std::string args;
        if (!m_notes.empty() && m_events->wanted()(m_texts[category], m_texts[name]))
            for (const std::string_view note : m_notes) addAnnotation(note, sequence, m_texts, args);
        return args;
    }
    void addNotes(OpenSlice& slice, const PerfettoSequence& sequence)
    {
        const std::string more = argsOf(slice.name, slice.category, sequence);
        if (!more.empty()) slice.args += (slice.args.empty() ? "" : ",") + more;
    }

    // Slices of a track lie in each other, so that an end is the newest one's. PyTorch writes all starts of a thread
    // and then all ends in the same order, each without the flag that its start has; so may a writer whose ends go back
    // in time.
    void endSlice(std::uint64_t track, const PerfettoTracks::Place& place, Nanos time, bool needsState,
                  const PerfettoSequence& sequence)
    {
        const auto found = m_open.find(track);
        if (found == m_open.end() || found->second.empty()) {
            ++m_events->rank().events;
            ++m_events->rank().leftOut["end events without a start event"];
            return;
        }
        auto& open = found->second;
        const bool inOrder = (open.front().needsState && !needsState) || time < open.back().start;
        OpenSlice slice = inOrder ? std::move(open.front()) : std::move(open.back());
        inOrder ? open.pop_front() : open.pop_back();
        addNotes(slice, sequence);
        std::uint32_t category = slice.category;
        if (category == m_none && slice.args.find("\"cuda_sync_kind\":") != std::string::npos)
            category = m_texts.idOf("cuda_sync");
        give('X', place, slice.start, slice.name, category, slice.args, std::max<Nanos>(time - slice.start, 0));
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
            ++m_events->rank().damaged;
            return;
        }
        const std::string unit = m_own ? (place.unit.empty() ? "value" : place.unit) : place.unit;
        give('C', place, time, m_texts.idOf(place.name), m_none, fmt::format("{}:{}", jsonText(unit), *value));
    }

    static std::int64_t extentOf(protozero::pbf_message<pf::Extent> extent, std::string& text)
    {
        std::int64_t sizes[3] = {1, 1, 1};
        while (extent.next()) {
            const auto axis = static_cast<unsigned>(extent.tag()) - 1;
            if (axis < 3 && isNumber(extent))
                sizes[axis] = extent.get_uint32();
            else
                extent.skip();
        }
        text = fmt::format("[{},{},{}]", sizes[0], sizes[1], sizes[2]);
        return sizes[0];
    }

    // Work of a device: Kineto's category by its stage, the lane's number as its stream.
    void takeRenderStage(std::string_view bytes, Nanos time, const PerfettoSequence& sequence)
    {
        protozero::pbf_message<pf::RenderStage> stage(bytes.data(), bytes.size());
        std::uint64_t duration = 0;
        std::int64_t gpu = 0;
        std::uint32_t name = m_none, kind = m_none, queue = m_none;
        std::string args;
        std::string_view stream, device;
        while (stage.next()) {
            const bool number = isNumber(stage), text = isBytes(stage);
            switch (stage.tag()) {
            case pf::RenderStage::duration: number ? void(duration = stage.get_uint64()) : stage.skip(); break;
            case pf::RenderStage::gpu: number ? void(gpu = stage.get_int32()) : stage.skip(); break;
            case pf::RenderStage::stageIid:
                number ? void(kind = sequence.gpuSpecification(stage.get_uint64()).value_or(m_none)) : stage.skip();
                break;
            case pf::RenderStage::queueIid:
                number ? void(queue = sequence.gpuSpecification(stage.get_uint64()).value_or(m_none)) : stage.skip();
                break;
            case pf::RenderStage::nameIid:
                number ? void(name = sequence.name(stage.get_uint64()).value_or(m_none)) : stage.skip();
                break;
            case pf::RenderStage::name: text ? void(name = m_texts.idOf(viewOf(stage))) : stage.skip(); break;
            case pf::RenderStage::extraData: {
                if (!text) {
                    stage.skip();
                    break;
                }
                protozero::pbf_message<pf::ExtraData> extra(stage.get_message());
                std::string_view key, value;
                while (extra.next())
                    if (extra.tag() == pf::ExtraData::name && isBytes(extra))
                        key = viewOf(extra);
                    else if (extra.tag() == pf::ExtraData::value && isBytes(extra))
                        value = viewOf(extra);
                    else
                        extra.skip();
                if (key == "stream id") stream = value;
                if (key == "device id") device = value;
                if (!key.empty()) addMember(key == "stream id" ? "stream" : key, jsonText(value), args);
                break;
            }
            case pf::RenderStage::launch: {
                if (!text) {
                    stage.skip();
                    break;
                }
                protozero::pbf_message<pf::KernelLaunch> launch(stage.get_message());
                while (launch.next()) {
                    std::string sizes;
                    const pf::KernelLaunch which = launch.tag();
                    if ((which != pf::KernelLaunch::grid && which != pf::KernelLaunch::workgroup) || !isBytes(launch)) {
                        launch.skip();
                        continue;
                    }
                    extentOf(protozero::pbf_message<pf::Extent>(launch.get_message()), sizes);
                    addMember(which == pf::KernelLaunch::grid ? "grid" : "block", sizes, args);
                }
                break;
            }
            default: stage.skip();
            }
        }
        if (duration > static_cast<std::uint64_t>(farthestReading)) {
            ++m_events->rank().damaged;
            return;
        }
        const std::string& stageName = m_texts[kind];
        std::string_view category = "kernel";
        if (stageName == "Memcpy") category = "gpu_memcpy";
        if (stageName == "Memset") category = "gpu_memset";
        if (stageName == "Annotation") category = "gpu_user_annotation";
        if (stageName == "EventRecord" || stageName == "HostNode") category = "cuda_event";
        // "[07] stream 7", or a name that was given
        std::string lane = m_texts[queue];
        if (const std::size_t at = lane.find("] "); lane.starts_with('[') && at != std::string::npos)
            lane.erase(0, at + 2);
        if (lane.starts_with("stream ")) lane.erase(0, 7);
        PerfettoTracks::Place place;
        place.process = device.empty() ? std::to_string(gpu) : std::string(device);
        place.thread = stream.empty() ? (lane.empty() ? "0" : lane) : std::string(stream);
        give('X', place, time, name == m_none ? kind : name, m_texts.idOf(category), args,
             static_cast<Nanos>(duration));
    }

    void takeGpuCounters(std::string_view bytes, Nanos time, const PerfettoSequence& sequence)
    {
        protozero::pbf_message<pf::GpuCounters> message(bytes.data(), bytes.size());
        struct Value {
            std::uint64_t id = 0;
            double value = 0;
        };
        std::vector<Value> values;
        PerfettoSequence::GpuCounters own;
        const PerfettoSequence::GpuCounters* described = &own;
        int gpu = -1;
        while (message.next()) {
            if (message.tag() == pf::GpuCounters::descriptorIid && isNumber(message)) {
                if (const auto* found = sequence.gpuCounters(message.get_uint64())) described = found;
            } else if (message.tag() == pf::GpuCounters::gpu && isNumber(message)) {
                gpu = message.get_int32();
            } else if (message.tag() == pf::GpuCounters::descriptor && isBytes(message)) {
                PerfettoSequence::readCounterNames(viewOf(message), own);
            } else if (message.tag() == pf::GpuCounters::counters && isBytes(message)) {
                protozero::pbf_message<pf::GpuCounter> counter(message.get_message());
                Value& value = values.emplace_back();
                while (counter.next())
                    if (counter.tag() == pf::GpuCounter::id && isNumber(counter))
                        value.id = counter.get_uint32();
                    else if (counter.tag() == pf::GpuCounter::whole && isNumber(counter))
                        value.value = static_cast<double>(counter.get_int64());
                    else if (counter.tag() == pf::GpuCounter::number && isDouble(counter))
                        value.value = counter.get_double();
                    else
                        counter.skip();
            } else {
                message.skip();
            }
        }
        PerfettoTracks::Place place;
        place.process = std::to_string(gpu >= 0 ? gpu : described->gpu);
        for (const Value& value : values) {
            const auto name = described->names.find(value.id);
            if (name == described->names.end() || !std::isfinite(value.value)) {
                ++m_events->rank().damaged;
                continue;
            }
            give('C', place, time, m_texts.idOf(fmt::format("GPU {} {}", place.process, name->second)), m_none,
                 fmt::format("\"\":{}", value.value));
        }
    }

    void give(char phase, const PerfettoTracks::Place& place, Nanos time, std::uint32_t name, std::uint32_t category,
              const std::string& args, Nanos duration = 0)
    {
        KinetoEvent& event = m_events->event();
        event = {};
        event.phase = phase;
        event.name = m_texts[name];
        event.category = m_texts[category];
        event.pid = place.process;
        event.tid = place.thread;
        event.time = time;
        event.duration = duration;
        if (!args.empty()) {
            m_json.assign("{").append(args).append("}");
            const std::size_t size = m_json.size();
            m_json.append(JsonEvents::padding, '\0');
            const std::string_view object(m_json.data(), size);
            if (phase == 'C')
                event.args.object = object;
            else if (!m_parser.parseArgs(object, event.args))
                event.args = {};
        }
        // Names first: what a device is by its process's name is asked of each event.
        if (place.process != m_lastProcess && m_named.insert(place.process).second) {
            if (const std::string_view called = m_tracks.processName(place.process); !called.empty()) {
                const KinetoEvent kept = event;
                nameOf({place.process, {}, std::string(called)});
                m_events->event() = kept;
            }
        }
        if (place.process != m_lastProcess) m_lastProcess = place.process;
        if (m_events->take())
            ++m_events->rank().events;
        else
            ++m_events->rank().damaged;
        m_own = m_own || m_events->rank().ownEvents;
    }

    void nameOf(const PerfettoTracks::Named& named)
    {
        KinetoEvent& event = m_events->event();
        event = {};
        event.phase = 'M';
        event.name = named.thread.empty() ? "process_name" : "thread_name";
        event.pid = named.process;
        event.tid = named.thread;
        event.args.name = named.name;
        (void)m_events->take();
    }

    const Progress& m_progress;
    std::unique_ptr<TraceEvents> m_events;
    NameTable m_texts;
    std::uint32_t m_none = 0;
    std::unordered_map<std::uint32_t, PerfettoSequence> m_sequences;
    PerfettoTracks m_tracks;
    std::unordered_map<std::uint64_t, std::deque<OpenSlice>> m_open; // by track
    std::map<std::uint32_t, PerfettoSequence::Clock> m_clocks;
    std::set<std::uint32_t> m_unknownClocks;
    std::int64_t m_ofUnknownClocks = 0;
    std::set<std::string, std::less<>> m_named; // processes
    std::string m_lastProcess;
    bool m_epochKnown = false, m_own = false;
    KinetoEventParser m_parser;
    std::string m_json;
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
