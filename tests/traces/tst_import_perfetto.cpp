// Perfetto's traces read: PyTorch's in its wrappings, what is exported here as by JSON, ends in order and in each
// other, clocks, damage.
#include <algorithm>
#include <map>
#include <random>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>

#include "sample_runs.h"
#include "tests/traces/import_rig.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/packets.h"
#include "traces/import/perfetto/perfetto.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace pf = stagewright::perfetto;
template <typename Field>
using Message = protozero::pbf_builder<Field>;

namespace {

using Json = nlohmann::json;

Json storedCases()
{
    std::string text = textOf(dataFile("pftrace.json"));
    return Json::parse(text).at("cases");
}
std::string bytesOf(const Json& one)
{
    return QByteArray::fromBase64(QByteArray::fromStdString(one["input"]["base64"].get<std::string>())).toStdString();
}

Result<ForeignFile> readFile(const std::string& bytes)
{
    QTemporaryDir folder;
    const std::string path = folder.filePath("rank0.pftrace").toStdString();
    std::ofstream(path, std::ios::binary) << bytes;
    const FormatInfo* format = formatOfHead(headOf(path));
    if (format == nullptr || format->name != "perfetto") return fail(ErrorCode::Unreadable, "it is not recognised");
    ImportOptions options;
    options.hostOps = true;
    return format->read(path, options, {});
}

Result<ForeignFile> readBytes(const std::string& bytes)
{
    ImportOptions options;
    options.hostOps = true;
    const auto source = byteSourceOf(bytes);
    return readPerfettoTrace(*source, "rank0.pftrace", options, {});
}

// A trace of one thread; each call is a packet.
class Writer {
public:
    explicit Writer(std::uint32_t clock = 0) : m_clock(clock)
    {
        packet([](Message<pf::Packet>& to) {
            Message<pf::Track> track(to, pf::Packet::trackDescriptor);
            track.add_uint64(pf::Track::uuid, 7);
            Message<pf::Thread> thread(track, pf::Track::thread);
            thread.add_int32(pf::Thread::pid, 1);
            thread.add_int64(pf::Thread::tid, 2);
            thread.add_string(pf::Thread::name, "main");
        });
    }
    void begin(std::uint64_t time, const std::string& name, std::uint32_t flags = 0)
    {
        packet([&](Message<pf::Packet>& to) {
            stamp(to, time, flags);
            Message<pf::Event> event(to, pf::Packet::trackEvent);
            event.add_enum(pf::Event::type, pf::sliceBegin);
            event.add_uint64(pf::Event::track, 7);
            event.add_string(pf::Event::name, name);
        });
    }
    void end(std::uint64_t time, std::uint32_t flags = 0)
    {
        packet([&](Message<pf::Packet>& to) {
            stamp(to, time, flags);
            Message<pf::Event> event(to, pf::Packet::trackEvent);
            event.add_enum(pf::Event::type, pf::sliceEnd);
            event.add_uint64(pf::Event::track, 7);
        });
    }
    template <typename Fill>
    void packet(const Fill& fill)
    {
        Message<pf::Trace> trace(m_bytes);
        Message<pf::Packet> packet(trace, pf::Trace::packet);
        packet.add_uint32(pf::Packet::sequence, 3);
        fill(packet);
    }
    const std::string& bytes() const { return m_bytes; }

private:
    void stamp(Message<pf::Packet>& to, std::uint64_t time, std::uint32_t flags) const
    {
        to.add_uint64(pf::Packet::timestamp, time);
        if (m_clock != 0) to.add_uint32(pf::Packet::timestampClock, m_clock);
        if (flags != 0) to.add_uint32(pf::Packet::sequenceFlags, flags);
    }
    std::string m_bytes;
    std::uint32_t m_clock;
};

using Spans = std::vector<std::tuple<std::string, Nanos, Nanos>>;
Spans spansOf(const ForeignRank& rank)
{
    Spans out;
    for (const ForeignSpan& span : rank.annotations) out.emplace_back(rank.names[span.name], span.start, span.end);
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace

class TestImportPerfetto : public QObject {
    Q_OBJECT

private slots:
    void wrappings()
    {
        for (const Json& one : storedCases()) {
            const auto file = readFile(bytesOf(one));
            QVERIFY2(file, file ? "" : file.error().message.c_str());
            QCOMPARE(file->ranks.size(), std::size_t{1});
            const ForeignRank& rank = file->ranks.front();
            QCOMPARE(rank.damaged, std::int64_t{0});
            const Json& expected = one["expected"];
            std::map<std::string, std::pair<Nanos, Nanos>> slices;
            for (const Json& slice : expected["slices"]) {
                const Nanos start = slice["ts"].get<Nanos>();
                slices[slice["name"].get<std::string>()] = {start, start + slice["dur"].get<Nanos>()};
            }
            std::size_t found = 0;
            for (const auto* spans : {&rank.annotations, &rank.hostOps})
                for (const ForeignSpan& span : *spans) {
                    QCOMPARE(std::pair(span.start, span.end), slices.at(rank.names[span.name]));
                    QCOMPARE(rank.threads[span.thread].name, expected["threads"][0]["name"].get<std::string>());
                    ++found;
                }
            QCOMPARE(found + rank.launches.size(), slices.size());
            QCOMPARE(rank.launches.size(), std::size_t{1});
            QCOMPARE(rank.launches[0].correlation, std::int64_t{31});
            QCOMPARE(rank.launches[0].time, slices.at("cudaLaunchKernel").first);
            QCOMPARE(rank.device.size(), expected["gpu"].size());
            for (std::size_t i = 0; i < rank.device.size(); ++i) {
                const Json& work = expected["gpu"][i];
                const DeviceSpan& span = rank.device[i];
                QCOMPARE(rank.names[span.name], work["name"].get<std::string>());
                QCOMPARE(span.start, work["ts"].get<Nanos>());
                QCOMPARE(span.end - span.start, work["dur"].get<Nanos>());
                QCOMPARE(span.copy, work["stage"] != "Kernel");
                QCOMPARE(rank.threads[span.thread].name, std::string("stream 7"));
                QCOMPARE(rank.threads[span.thread].gpu, 0);
                if (work.contains("grid")) {
                    QCOMPARE(span.correlation, std::int64_t{31});
                    QVERIFY(rank.names.shapeOf(span.name).starts_with("grid 64×1×1, block 128×1×1"));
                } else {
                    QCOMPARE(rank.copyBytes.at(0).second, Bytes{4096});
                }
            }
            QCOMPARE(rank.counters.size(), std::size_t{1});
            QCOMPARE(rank.counters[0].name, std::string("GPU 0 Power (W)"));
            QCOMPARE(rank.counters[0].samples.size(), std::size_t{1});
            QCOMPARE(rank.counters[0].samples[0].value, 412.5);
            QCOMPARE(rank.counters[0].samples[0].time, expected["counters"][0]["ts"].get<Nanos>());
        }
    }

    // Without a name of its own the run has that of its job: of the file, else of its folder, without suffixes.
    void theRunIsNamedByItsFile()
    {
        for (const auto& [file, name] : {std::pair{"rank0.pftrace", "job"}, {"train_rank0.perfetto-trace", "train"}}) {
            QTemporaryDir folder;
            QVERIFY(QDir(folder.path()).mkdir("job"));
            const std::string path = folder.filePath(QStringLiteral("job/") + file).toStdString();
            std::ofstream(path, std::ios::binary) << bytesOf(storedCases().front());
            const auto imported = importTraces({path}, {});
            QVERIFY2(imported.has_value(), imported ? "" : imported.error().message.c_str());
            QCOMPARE(imported->runs[0].run.info.name, std::string(name));
        }
    }

    // What is exported here comes back the same as by JSON.
    void ownExportsAsByJson()
    {
        for (const Run& run : {samples::simulatedRun("1f1b", 4, 8), samples::simulatedRun("zb-h1", 2, 4, 0.25),
                               samples::simulatedRun("dualpipev", 2, 6)}) {
            QTemporaryDir folder;
            const std::string json = folder.filePath("own.json").toStdString(),
                              pftrace = folder.filePath("own.pftrace").toStdString();
            QVERIFY(writeChromeJsonFile(run, json));
            QVERIFY(writePerfettoFile(run, pftrace));
            const auto first = importTraces({json}, {}), second = importTraces({pftrace}, {});
            QCOMPARE(second.has_value(), first.has_value());
            if (!first) continue;
            QCOMPARE(second->runs.size(), first->runs.size());
            for (std::size_t r = 0; r < first->runs.size(); ++r) {
                const Timeline &a = *first->runs[r].run.timeline, &b = *second->runs[r].run.timeline;
                QCOMPARE(b.ranks(), a.ranks());
                QCOMPARE(b.tracks().size(), a.tracks().size());
                QCOMPARE(b.spans().size(), a.spans().size());
                for (std::size_t i = 0; i < a.spans().size(); ++i) {
                    QCOMPARE(b.nameOf(b.spans()[i]), a.nameOf(a.spans()[i]));
                    QCOMPARE(b.spans()[i].start - b.begin(), a.spans()[i].start - a.begin());
                    QCOMPARE(b.spans()[i].end, b.spans()[i].start + a.spans()[i].duration());
                    QCOMPARE(b.spans()[i].step, a.spans()[i].step);
                }
                QCOMPARE(b.counters().size(), a.counters().size());
            }
        }
    }

    void endsInOrderAndInEachOther()
    {
        std::mt19937 random(5);
        const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
        for (int round = 0; round < 50; ++round) {
            // Ranges in each other: a tree of them, in the order of their starts.
            struct Range {
                std::string name;
                std::uint64_t begin, end;
            };
            std::vector<Range> ranges;
            const std::function<std::uint64_t(std::uint64_t, int)> grow = [&](std::uint64_t at, int depth) {
                const std::size_t self = ranges.size();
                ranges.push_back({"r" + std::to_string(self), at, at});
                std::uint64_t now = at + static_cast<std::uint64_t>(pick(0, 2));
                for (int child = pick(0, 3); child > 0 && depth < 4; --child) now = grow(now, depth + 1);
                return ranges[self].end = now + static_cast<std::uint64_t>(pick(0, 2));
            };
            std::uint64_t now = 10;
            for (int i = 0; i < 4; ++i) now = grow(now, 0);
            Spans expected;
            for (const Range& range : ranges)
                expected.emplace_back(range.name, static_cast<Nanos>(range.begin), static_cast<Nanos>(range.end));
            std::sort(expected.begin(), expected.end());
            Writer inOrder;
            for (const Range& range : ranges) inOrder.begin(range.begin, range.name, pf::needsState);
            for (const Range& range : ranges) inOrder.end(range.end);
            const auto first = readBytes(inOrder.bytes());
            QVERIFY(first);
            QCOMPARE(spansOf(first->ranks.front()), expected);
            Writer nested;
            std::vector<std::size_t> stack;
            const auto close = [&](std::uint64_t until) {
                for (; !stack.empty() && ranges[stack.back()].end <= until; stack.pop_back())
                    nested.end(ranges[stack.back()].end, pf::needsState);
            };
            std::vector<std::size_t> parent(ranges.size());
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                // a child lies within its parent: what is open and can't hold it is closed
                while (!stack.empty() && ranges[stack.back()].end < ranges[i].end) {
                    nested.end(ranges[stack.back()].end, pf::needsState);
                    stack.pop_back();
                }
                while (!stack.empty() && ranges[stack.back()].end <= ranges[i].begin &&
                       ranges[i].end > ranges[i].begin) {
                    nested.end(ranges[stack.back()].end, pf::needsState);
                    stack.pop_back();
                }
                nested.begin(ranges[i].begin, ranges[i].name, pf::needsState);
                stack.push_back(i);
            }
            close(~std::uint64_t{0});
            const auto second = readBytes(nested.bytes());
            QVERIFY(second);
            QCOMPARE(spansOf(second->ranks.front()), expected);
        }
    }

    // A sequence's own clock in microseconds that counts from packet to packet, tied to the trace's by a snapshot.
    void incrementalClocks()
    {
        Writer writer(64);
        writer.packet([](Message<pf::Packet>& to) {
            Message<pf::ClockSnapshot> clocks(to, pf::Packet::clockSnapshot);
            {
                Message<pf::Clock> boot(clocks, pf::ClockSnapshot::clock);
                boot.add_uint32(pf::Clock::id, pf::boottime);
                boot.add_uint64(pf::Clock::timestamp, 5'000'000);
            }
            Message<pf::Clock> own(clocks, pf::ClockSnapshot::clock);
            own.add_uint32(pf::Clock::id, 64);
            own.add_uint64(pf::Clock::timestamp, 100);
            own.add_bool(pf::Clock::isIncremental, true);
            own.add_uint64(pf::Clock::multiplier, 1000);
        });
        writer.begin(10, "a");
        writer.end(30);
        const auto file = readBytes(writer.bytes());
        QVERIFY(file);
        QCOMPARE(spansOf(file->ranks.front()), (Spans{{"a", 5'010'000, 5'040'000}}));
    }

    void countsWhatItLeavesOut()
    {
        Writer writer;
        writer.end(5);
        writer.begin(10, "open");
        writer.begin(11, "whole");
        writer.end(12);
        auto file = readBytes(writer.bytes());
        QVERIFY(file);
        QCOMPARE(file->ranks[0].leftOut["end events without a start event"], std::int64_t{1});
        QCOMPARE(file->ranks[0].leftOut["start events without an end event"], std::int64_t{1});
        const auto cut = readBytes(writer.bytes().substr(0, writer.bytes().size() - 3) + std::string("\x0a\x7f", 2));
        QVERIFY(cut);
        QVERIFY(std::any_of(cut->ranks[0].notes.begin(), cut->ranks[0].notes.end(),
                            [](const std::string& note) { return note.find("cut off") != std::string::npos; }));
        QVERIFY(!readBytes(""));
        QVERIFY(!readBytes(Writer().bytes()));
    }

    // Sequences and processes that no writer has: bounded, and as fast as others.
    void tooManyOfAnything()
    {
        std::string bytes;
        for (std::uint32_t i = 0; i < 130'000; ++i) {
            Message<pf::Trace> trace(bytes);
            Message<pf::Packet> packet(trace, pf::Trace::packet);
            packet.add_uint32(pf::Packet::sequence, i + 1);
            packet.add_uint64(pf::Packet::timestamp, i);
            if (i % 2 == 0) {
                Message<pf::Track> track(packet, pf::Packet::trackDescriptor);
                track.add_uint64(pf::Track::uuid, i);
                Message<pf::Process> process(track, pf::Track::process);
                process.add_int32(pf::Process::pid, static_cast<std::int32_t>(i));
                process.add_string(pf::Process::name, "worker");
            } else {
                Message<pf::Event> event(packet, pf::Packet::trackEvent);
                event.add_enum(pf::Event::type, pf::instant);
                event.add_uint64(pf::Event::track, i - 1);
                event.add_string(pf::Event::name, "x");
            }
        }
        const auto file = readBytes(bytes);
        QVERIFY(file);
        std::int64_t left = 0;
        for (const ForeignRank& rank : file->ranks)
            if (const auto found = rank.leftOut.find("packets of further sequences"); found != rank.leftOut.end())
                left += found->second;
        QCOMPARE(left, std::int64_t{30'000});
    }

    void otherFilesAreNotTaken()
    {
        for (const std::string text : {"\n{\"traceEvents\":[]}", "\n\n0F0,0F1\n1F0,1F1\n", "\x0a", "", "\x0a\x05hello",
                                       "\n\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"})
            QVERIFY2(!startsLikePerfetto(text), text.c_str());
    }

    void mutationsEndInWords()
    {
        std::mt19937 random(11);
        const Json cases = storedCases();
        std::vector<std::string> seeds;
        for (const Json& one : cases) seeds.push_back(bytesOf(one));
        for (int round = 0; round < 4000; ++round) {
            std::string bytes = seeds[static_cast<std::size_t>(round) % seeds.size()];
            for (unsigned change = random() % 6 + 1; change > 0; --change) {
                const std::size_t at = random() % bytes.size();
                switch (random() % 4) {
                case 0: bytes[at] = static_cast<char>(random()); break;
                case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
                case 2: bytes.erase(at, random() % 4 + 1); break;
                default: bytes.insert(at, bytes.substr(random() % bytes.size(), 8));
                }
                if (bytes.empty()) break;
            }
            const auto file = readBytes(bytes);
            if (!file) QVERIFY(!file.error().message.empty());
        }
    }
};

QTEST_APPLESS_MAIN(TestImportPerfetto)
#include "tst_import_perfetto.moc"
