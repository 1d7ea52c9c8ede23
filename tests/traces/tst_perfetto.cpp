// Perfetto traces, decoded again: counts are those of the timeline, slices balance, every track is declared before its
// use, every name is interned when it is used, arrows pair up, ranks and rows are in order; atomic on a full disk.
#include <QtTest/QtTest>

#include <map>
#include <set>

#include <protozero/pbf_message.hpp>

#include "sample_runs.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/perfetto_fields.h"

using namespace stagewright;
namespace pf = stagewright::perfetto;
template <typename Field>
using Reader = protozero::pbf_message<Field>;

namespace {

struct TrackFacts {
    std::string name;
    std::uint64_t parent = 0;
    int order = 0;
    int merge = 0;
    int children = 0;
    bool isProcess = false;
    std::string processName;
    int pid = 0;
    bool isCounter = false;
    std::string shareKey;
    std::string unitName;
    int unit = 0;
};

struct SliceFacts {
    std::string name;
    std::string category;
    std::uint64_t track = 0;
    Nanos start = 0;
    Nanos end = 0;
    std::map<std::string, std::string> notes;
    std::vector<std::uint64_t> flows;
    std::vector<std::uint64_t> terminating;
    std::optional<std::uint64_t> correlation;
};

struct SampleFacts {
    std::uint64_t track = 0;
    Nanos time = 0;
    double value = 0;
};

// A reader that trusts nothing: `problem` says what is wrong first.
struct Decoded {
    std::map<std::uint64_t, TrackFacts> tracks;
    std::vector<SliceFacts> slices;
    std::vector<SampleFacts> samples;
    std::map<std::string, std::string> metadata;
    std::map<std::uint32_t, std::uint64_t> clocks;
    int cleared = 0;
    std::string problem;

    explicit Decoded(const std::string& bytes)
    {
        try {
            Reader<pf::Trace> trace(bytes);
            while (problem.empty() && trace.next(pf::Trace::packet)) packet(trace.get_view());
        } catch (const protozero::exception& error) {
            wrong(error.what());
        }
        for (const auto& [track, stack] : m_open)
            if (!stack.empty()) wrong("a slice that never ends");
    }

private:
    void wrong(const std::string& what)
    {
        if (problem.empty()) problem = what;
    }

    void packet(protozero::data_view bytes)
    {
        Reader<pf::Packet> packet(bytes);
        std::uint64_t time = 0;
        std::uint32_t sequence = 0;
        std::uint32_t flags = 0;
        std::optional<protozero::data_view> event;
        std::optional<protozero::data_view> interned;
        bool defaults = false;
        while (packet.next()) {
            switch (packet.tag()) {
            case pf::Packet::timestamp: time = packet.get_uint64(); break;
            case pf::Packet::sequence: sequence = packet.get_uint32(); break;
            case pf::Packet::sequenceFlags: flags = packet.get_uint32(); break;
            case pf::Packet::trackEvent: event = packet.get_view(); break;
            case pf::Packet::internedData: interned = packet.get_view(); break;
            case pf::Packet::trackDescriptor: descriptor(packet.get_view()); break;
            case pf::Packet::clockSnapshot: snapshot(packet.get_view()); break;
            case pf::Packet::chromeEvents: chrome(packet.get_view()); break;
            case pf::Packet::defaults:
                defaults = true;
                packet.skip();
                break;
            default: packet.skip();
            }
        }
        if (sequence == 0) wrong("a packet of no sequence");
        if ((flags & pf::stateCleared) != 0) {
            ++cleared;
            m_names.clear();
            m_categories.clear();
            m_noteNames.clear();
            if (!defaults) wrong("a cleared state without defaults");
        }
        if (cleared == 0) wrong("a packet before the state was cleared");
        if (interned) intern(*interned);
        if (event) this->event(*event, static_cast<Nanos>(time), flags);
    }

    void intern(protozero::data_view bytes)
    {
        Reader<pf::Interned> table(bytes);
        while (table.next()) {
            auto& names = table.tag() == pf::Interned::names        ? m_names
                          : table.tag() == pf::Interned::categories ? m_categories
                                                                    : m_noteNames;
            Reader<pf::InternedName> entry = table.get_message();
            std::uint64_t iid = 0;
            std::string name;
            while (entry.next()) {
                if (entry.tag() == pf::InternedName::iid)
                    iid = entry.get_uint64();
                else
                    name = entry.get_string();
            }
            if (iid == 0) wrong("an interned name of number 0");
            if (!names.emplace(iid, name).second) wrong("a number interned twice");
        }
    }

    void descriptor(protozero::data_view bytes)
    {
        Reader<pf::Track> from(bytes);
        TrackFacts track;
        std::uint64_t uuid = 0;
        while (from.next()) {
            switch (from.tag()) {
            case pf::Track::uuid: uuid = from.get_uint64(); break;
            case pf::Track::name: track.name = from.get_string(); break;
            case pf::Track::parent: track.parent = from.get_uint64(); break;
            case pf::Track::orderRank: track.order = from.get_int32(); break;
            case pf::Track::siblingMerge: track.merge = from.get_enum(); break;
            case pf::Track::childOrdering: track.children = from.get_enum(); break;
            case pf::Track::process: {
                track.isProcess = true;
                Reader<pf::Process> process = from.get_message();
                while (process.next()) {
                    if (process.tag() == pf::Process::pid)
                        track.pid = process.get_int32();
                    else
                        track.processName = process.get_string();
                }
                break;
            }
            case pf::Track::counter: {
                track.isCounter = true;
                Reader<pf::Counter> counter = from.get_message();
                while (counter.next()) {
                    switch (counter.tag()) {
                    case pf::Counter::unit: track.unit = counter.get_enum(); break;
                    case pf::Counter::unitName: track.unitName = counter.get_string(); break;
                    case pf::Counter::shareKey: track.shareKey = counter.get_string(); break;
                    default: counter.skip();
                    }
                }
                break;
            }
            default: from.skip();
            }
        }
        if (track.parent != 0 && !tracks.contains(track.parent)) wrong("a track under one that is not declared");
        if (!tracks.emplace(uuid, track).second) wrong("a track declared twice");
    }

    void snapshot(protozero::data_view bytes)
    {
        Reader<pf::ClockSnapshot> from(bytes);
        while (from.next()) {
            if (from.tag() != pf::ClockSnapshot::clock) {
                from.skip();
                continue;
            }
            Reader<pf::Clock> clock = from.get_message();
            std::uint32_t id = 0;
            std::uint64_t time = 0;
            while (clock.next()) {
                if (clock.tag() == pf::Clock::id)
                    id = clock.get_uint32();
                else
                    time = clock.get_uint64();
            }
            clocks[id] = time;
        }
    }

    void chrome(protozero::data_view bytes)
    {
        Reader<pf::ChromeEvents> from(bytes);
        while (from.next()) {
            Reader<pf::ChromeMetadata> one = from.get_message();
            std::string name;
            std::string value;
            while (one.next()) {
                if (one.tag() == pf::ChromeMetadata::name)
                    name = one.get_string();
                else
                    value = one.get_string();
            }
            metadata[name] = value;
        }
    }

    std::string named(const std::map<std::uint64_t, std::string>& names, std::uint64_t iid, std::uint32_t flags)
    {
        const auto found = names.find(iid);
        if (found == names.end()) wrong("a name that is not interned");
        if ((flags & pf::needsState) == 0) wrong("an interned name in a packet that needs no state");
        return found == names.end() ? std::string() : found->second;
    }

    void event(protozero::data_view bytes, Nanos time, std::uint32_t flags)
    {
        Reader<pf::Event> from(bytes);
        SliceFacts slice;
        SampleFacts sample;
        slice.start = sample.time = time;
        int type = 0;
        while (from.next()) {
            switch (from.tag()) {
            case pf::Event::type: type = from.get_enum(); break;
            case pf::Event::track: slice.track = sample.track = from.get_uint64(); break;
            case pf::Event::nameIid: slice.name = named(m_names, from.get_uint64(), flags); break;
            case pf::Event::categoryIid: slice.category = named(m_categories, from.get_uint64(), flags); break;
            case pf::Event::counterValue: sample.value = static_cast<double>(from.get_int64()); break;
            case pf::Event::doubleCounterValue: sample.value = from.get_double(); break;
            case pf::Event::flow: slice.flows.push_back(from.get_fixed64()); break;
            case pf::Event::terminatingFlow: slice.terminating.push_back(from.get_fixed64()); break;
            case pf::Event::correlation: slice.correlation = from.get_uint64(); break;
            case pf::Event::annotation: {
                Reader<pf::Annotation> note = from.get_message();
                std::string name;
                std::string value;
                while (note.next()) {
                    switch (note.tag()) {
                    case pf::Annotation::nameIid: name = named(m_noteNames, note.get_uint64(), flags); break;
                    case pf::Annotation::signedInt: value = std::to_string(note.get_int64()); break;
                    case pf::Annotation::boolean: value = note.get_bool() ? "true" : "false"; break;
                    case pf::Annotation::text: value = note.get_string(); break;
                    default: note.skip();
                    }
                }
                slice.notes[name] = value;
                break;
            }
            default: from.skip();
            }
        }
        if (!tracks.contains(slice.track) || slice.track == 0) return wrong("an event on a track that is not declared");
        const bool counts = type == pf::counterValue;
        if (tracks[slice.track].isCounter != counts) return wrong("slices and samples on one track");
        if (counts) {
            if (auto& last = m_last[slice.track]; time < last)
                wrong("a counter that goes back in time");
            else
                last = time;
            samples.push_back(sample);
            return;
        }
        auto& open = m_open[slice.track];
        if (auto& last = m_last[slice.track]; time < last)
            return wrong("a track that goes back in time");
        else
            last = time;
        if (type == pf::sliceBegin) {
            if (!open.empty()) wrong("slices that overlap on " + tracks[slice.track].name);
            open.push_back(slices.size());
            slices.push_back(slice);
        } else if (type == pf::sliceEnd) {
            if (open.empty()) return wrong("an end without a start");
            slices[open.back()].end = time;
            open.pop_back();
        } else {
            wrong("an event of type " + std::to_string(type));
        }
    }

    std::map<std::uint64_t, std::string> m_names;
    std::map<std::uint64_t, std::string> m_categories;
    std::map<std::uint64_t, std::string> m_noteNames;
    std::map<std::uint64_t, std::vector<std::size_t>> m_open;
    std::map<std::uint64_t, Nanos> m_last;
};

std::string written(const Run& run, TraceCounts* counts = nullptr, std::size_t namesAtOnce = perfettoNamesAtOnce)
{
    std::string bytes;
    const auto done = writePerfetto(
        run,
        [&bytes](std::string_view part) {
            bytes += part;
            return true;
        },
        {}, namesAtOnce);
    if (!done) return {};
    if (counts) *counts = *done;
    return bytes;
}

} // namespace

class TestPerfetto : public QObject {
    Q_OBJECT

private slots:
    void whatIsWrittenIsWhatWasThere_data()
    {
        QTest::addColumn<Run>("run");
        for (const char* kind : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "dualpipe", "chimera"})
            QTest::addRow("%s", kind) << samples::simulatedRun(kind, 4, 8, 0.5);
        for (std::uint32_t seed = 0; seed < 6; ++seed) QTest::addRow("random %u", seed) << samples::randomRun(seed);
        Run empty;
        empty.timeline = TimelineBuilder(Provenance::Imported, "", 1).build().value();
        QTest::addRow("empty") << empty;
    }

    void whatIsWrittenIsWhatWasThere()
    {
        QFETCH(Run, run);
        const Timeline& timeline = *run.timeline;
        const Nanos shift = traceShift(timeline);
        for (const std::size_t namesAtOnce : {perfettoNamesAtOnce, std::size_t{3}, std::size_t{1}}) {
            TraceCounts counts;
            const std::string bytes = written(run, &counts, namesAtOnce);
            QVERIFY(!bytes.empty());
            QVERIFY(bytes == written(run, nullptr, namesAtOnce));
            const Decoded trace(bytes);
            QVERIFY2(trace.problem.empty(), trace.problem.c_str());
            if (namesAtOnce == perfettoNamesAtOnce) QCOMPARE(trace.cleared, 1);
            if (namesAtOnce == 1 && counts.spans > 10) QVERIFY(trace.cleared > 5);

            // every span, with its name, times and rank
            std::multiset<std::tuple<std::uint64_t, Nanos, Nanos, std::string, std::string>> found;
            std::multiset<std::tuple<std::uint64_t, Nanos, Nanos, std::string, std::string>> wanted;
            std::map<std::uint64_t, int> begins;
            std::map<std::uint64_t, int> ends;
            std::int64_t bubbles = 0;
            for (const SliceFacts& slice : trace.slices) {
                for (const std::uint64_t flow : slice.flows) ++begins[flow];
                for (const std::uint64_t flow : slice.terminating) ++ends[flow];
                const TrackFacts& track = trace.tracks.at(slice.track);
                QVERIFY(slice.notes.contains("step"));
                if (slice.category == "bubble") {
                    ++bubbles;
                    QVERIFY(!slice.notes.at("why").empty());
                    QVERIFY(!slice.notes.at("cause").empty());
                    QVERIFY2(track.name.starts_with("bubbles"), track.name.c_str());
                    continue;
                }
                found.insert({track.parent, slice.start, slice.end, slice.name, slice.notes.at("step")});
            }
            for (const Track& track : timeline.tracks())
                for (const Span& span : timeline.spansOf(track))
                    wanted.insert({static_cast<std::uint64_t>(track.rank) + 1, span.start + shift, span.end + shift,
                                   timeline.nameOf(span), std::to_string(span.step)});
            QVERIFY(found == wanted);
            QCOMPARE(counts.spans, static_cast<std::int64_t>(timeline.spans().size()));
            QCOMPARE(counts.bubbles, bubbles);
            // arrows
            const auto data =
                std::ranges::count_if(timeline.edges(), [](const Edge& edge) { return edge.kind == EdgeKind::Data; });
            QCOMPARE(counts.flows, static_cast<std::int64_t>(data));
            QCOMPARE(begins.size(), static_cast<std::size_t>(data));
            QVERIFY(begins == ends);
            for (const auto& [flow, times] : begins) QVERIFY(flow != 0 && times == 1);
            // counters
            QCOMPARE(counts.counterSamples, static_cast<std::int64_t>(trace.samples.size()));
            std::int64_t expected = 0;
            for (int rank = 0; rank < timeline.ranks() && timeline.hasMemory(); ++rank) {
                std::set<std::pair<int, Nanos>> distinct;
                for (const MemoryEvent& event : timeline.memoryOf(rank))
                    distinct.insert({static_cast<int>(event.category), event.time});
                expected += static_cast<std::int64_t>(distinct.size());
            }
            for (const Counter& counter : timeline.counters())
                expected += static_cast<std::int64_t>(counter.samples.size());
            QCOMPARE(counts.counterSamples, expected);
        }
    }

    // What Chrome JSON gets is the same.
    void bothFormatsHoldTheSame()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.5);
        TraceCounts counts;
        QVERIFY(!written(run, &counts).empty());
        const auto chrome = writeChromeJson(run, [](std::string_view) { return true; });
        QVERIFY(chrome.has_value());
        QCOMPARE(toText(*chrome), toText(counts));
        QVERIFY(counts.spans > 0 && counts.bubbles > 0 && counts.flows > 0 && counts.counterSamples > 0);
    }

    void ranksAndRowsAreInOrder()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.5);
        const Decoded trace(written(run));
        QVERIFY2(trace.problem.empty(), trace.problem.c_str());
        QVERIFY(trace.tracks.contains(0)); // the root, which orders the processes
        int ranks = 0;
        std::map<std::uint64_t, std::map<int, std::string>> rows;
        std::map<std::uint64_t, std::set<std::string>> names;
        for (const auto& [uuid, track] : trace.tracks) {
            if (uuid == 0) continue;
            if (track.isProcess) {
                QCOMPARE(track.processName, "rank " + std::to_string(ranks));
                QCOMPARE(track.order, ranks);
                QCOMPARE(track.pid, ranks + 1);
                QCOMPARE(track.children, pf::orderedExplicitly);
                ++ranks;
                continue;
            }
            QCOMPARE(track.merge, pf::neverMerged);
            QVERIFY2(names[track.parent].insert(track.name).second, "two rows of one name");
            QVERIFY2(rows[track.parent].emplace(track.order, track.name).second, "two rows in one place");
            if (track.isCounter) {
                QCOMPARE(track.shareKey, std::string("memory"));
                QCOMPARE(track.unitName, std::string("microbatches"));
            }
        }
        QCOMPARE(ranks, 4);
        std::vector<std::string> second;
        for (const auto& [order, name] : rows[2]) second.push_back(name);
        const std::vector<std::string> wanted{"compute", "weight gradients", "bubbles", "send", "activations"};
        QVERIFY2(second == wanted, qPrintable(QString::number(second.size())));
        for (const SliceFacts& slice : trace.slices) {
            const std::string& row = trace.tracks.at(slice.track).name;
            if (slice.category == "W") QVERIFY(row.starts_with("weight gradients"));
            if (slice.category == "F" || slice.category == "I") QCOMPARE(row, std::string("compute"));
        }
    }

    void aMicrobatchIsOneCorrelation()
    {
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        const Decoded trace(written(run));
        int seen = 0;
        for (const SliceFacts& slice : trace.slices) {
            QCOMPARE(slice.correlation.has_value(), slice.notes.contains("microbatch"));
            if (!slice.correlation) continue;
            QCOMPARE(std::to_string(*slice.correlation), slice.notes.at("microbatch")); // of step 0
            ++seen;
        }
        QCOMPARE(seen, 16);
    }

    void clocksAndProvenanceAreTold()
    {
        Run run = samples::randomRun(1);
        run.info.createdUnixMs = 1'700'000'000'123;
        run.configuration = {{"sends", "buffered"}};
        run.environment = {{"host", "there"}};
        const Nanos shift = traceShift(*run.timeline);
        const Decoded trace(written(run));
        QCOMPARE(trace.clocks.at(pf::realtime), std::uint64_t{1'700'000'000'123'000'000});
        QCOMPARE(trace.clocks.at(pf::boottime), static_cast<std::uint64_t>(shift));
        QCOMPARE(trace.metadata.at("provenance"), std::string(toText(run.timeline->provenance())));
        QCOMPARE(trace.metadata.at("clock"), run.timeline->clock());
        QCOMPARE(trace.metadata.at("origin_ns"), std::to_string(-shift));
        QCOMPARE(trace.metadata.at("configuration.sends"), std::string("buffered"));
        QCOMPARE(trace.metadata.at("environment.host"), std::string("there"));
    }

    void bytesAreBytesOnOneScale()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 2);
        for (int rank = 0; rank < 2; ++rank) {
            Span span;
            span.op = makeOp(OpKind::Forward, rank, 0);
            span.end = 10;
            builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
            MemoryEvent event;
            event.rank = static_cast<std::uint16_t>(rank);
            event.time = 5;
            event.delta = 4096;
            builder.addMemory(event);
        }
        Run run;
        run.timeline = builder.build().value();
        const Decoded trace(written(run));
        QVERIFY2(trace.problem.empty(), trace.problem.c_str());
        QCOMPARE(trace.samples.size(), std::size_t{2});
        for (const SampleFacts& sample : trace.samples) {
            QCOMPARE(sample.value, 4096.0);
            const TrackFacts& track = trace.tracks.at(sample.track);
            QCOMPARE(track.shareKey, std::string("memory"));
            QCOMPARE(track.unit, pf::inBytes);
        }
    }

    void aSinkThatFailsStops()
    {
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        const auto counts = writePerfetto(run, [](std::string_view) { return false; });
        QVERIFY(!counts.has_value());
        QCOMPARE(counts.error().code, ErrorCode::Failed);
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        QCOMPARE(writePerfetto(
                     run, [](std::string_view) { return true; }, progress)
                     .error()
                     .code,
                 ErrorCode::Cancelled);
        QCOMPARE(writePerfetto(Run{}, [](std::string_view) { return true; }).error().code, ErrorCode::Usage);
        const auto full = writePerfettoFile(run, "/dev/full");
        QVERIFY(!full.has_value());
        QVERIFY2(full.error().message.find("disk is full") != std::string::npos, full.error().message.c_str());
        QTemporaryDir folder;
        const std::string path = folder.filePath("trace.pftrace").toStdString();
        QVERIFY(writePerfettoFile(run, path).has_value());
        QCOMPARE(QFile(QString::fromStdString(path)).size(), static_cast<qint64>(written(run).size()));
        QVERIFY(!writePerfettoFile(run, folder.filePath("no/such.pftrace").toStdString()).has_value());
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
    }
};

QTEST_APPLESS_MAIN(TestPerfetto)
#include "tst_perfetto.moc"
