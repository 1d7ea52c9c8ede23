// Reading Perfetto traces: megabytes and events per second of CPU time, of a file that is in the page cache, and the
// memory beside what is kept; beside it the bound, a walk over the fields of the same bytes in memory that makes nothing of
// them.
//   bench_perfetto [--megabytes N] [--only torch|kernels|nested] [--rounds N]; files go to $TMPDIR or /tmp and are
//   removed. torch: operators and calls as PyTorch's profiler writes them, all starts and then all ends; kernels: work
//   of devices beside them; nested: ranges in each other as Perfetto's SDK writes them, an argument each.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <protozero/pbf_builder.hpp>
#include <unistd.h>

#include "tests/bench/process_use.h"
#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/perfetto.h"
#include "traces/import/perfetto/wire.h"

namespace {

using namespace stagewright;
namespace pf = stagewright::perfetto;
template <typename Field>
using Message = protozero::pbf_builder<Field>;

class Writer {
public:
    explicit Writer(const std::string& path) : m_file(std::fopen(path.c_str(), "wb"))
    {
        if (m_file == nullptr) std::abort();
    }
    ~Writer()
    {
        flush();
        if (std::fclose(m_file) != 0) std::abort();
    }
    template <typename Fill>
    void packet(const Fill& fill)
    {
        {
            Message<pf::Trace> trace(m_bytes);
            Message<pf::Packet> packet(trace, pf::Trace::packet);
            fill(packet);
        }
        if (m_bytes.size() > 1 << 20) flush();
    }
    std::int64_t written() const { return m_written + static_cast<std::int64_t>(m_bytes.size()); }

private:
    void flush()
    {
        if (std::fwrite(m_bytes.data(), 1, m_bytes.size(), m_file) != m_bytes.size()) std::abort();
        m_written += static_cast<std::int64_t>(m_bytes.size());
        m_bytes.clear();
    }
    std::FILE* m_file;
    std::string m_bytes;
    std::int64_t m_written = 0;
};

void intern(Message<pf::Interned>& to, pf::Interned table, std::uint64_t iid, const std::string& name)
{
    Message<pf::InternedName> entry(to, table);
    entry.add_uint64(pf::InternedName::iid, iid);
    entry.add_string(pf::InternedName::name, name);
}

void writeHead(Writer& writer)
{
    writer.packet([](auto& packet) {
        Message<pf::Track> track(packet, pf::Packet::trackDescriptor);
        track.add_uint64(pf::Track::uuid, 2);
        Message<pf::Thread> thread(track, pf::Track::thread);
        thread.add_int32(pf::Thread::pid, 42);
        thread.add_int64(pf::Thread::tid, 77);
        thread.add_string(pf::Thread::name, "main");
    });
    writer.packet([](auto& packet) {
        packet.add_uint32(pf::Packet::sequence, 1);
        packet.add_uint32(pf::Packet::sequenceFlags, pf::stateCleared);
        Message<pf::Interned> data(packet, pf::Packet::internedData);
        intern(data, pf::Interned::categories, 1, "cpu_op");
        intern(data, pf::Interned::categories, 2, "cuda_runtime");
        intern(data, pf::Interned::names, 1, "cudaLaunchKernel");
        for (std::uint64_t i = 0; i < 200; ++i)
            intern(data, pf::Interned::names, 2 + i, "aten::operator_" + std::to_string(i));
        for (std::uint64_t i = 0; i < 100; ++i)
            intern(data, pf::Interned::names, 300 + i,
                   "void at::native::vectorized_elementwise_kernel<4, Functor" + std::to_string(i) + ">(int)");
        intern(data, pf::Interned::annotationNames, 1, "microbatch");
        intern(data, pf::Interned::gpuSpecifications, 1, "Kernel");
        intern(data, pf::Interned::gpuSpecifications, 100, "[7] stream 7");
    });
}

void writeStart(Writer& writer, std::int64_t time, std::uint64_t name, std::uint64_t category, std::int64_t correlation)
{
    writer.packet([&](auto& packet) {
        packet.add_uint64(pf::Packet::timestamp, static_cast<std::uint64_t>(time));
        packet.add_uint32(pf::Packet::sequence, 1);
        packet.add_uint32(pf::Packet::sequenceFlags, pf::needsState);
        Message<pf::Event> event(packet, pf::Packet::trackEvent);
        event.add_enum(pf::Event::type, pf::sliceBegin);
        event.add_uint64(pf::Event::track, 2);
        event.add_uint64(pf::Event::nameIid, name);
        event.add_uint64(pf::Event::categoryIid, category);
        if (correlation < 0) return;
        for (const auto& [key, value] : {std::pair("cbid", std::int64_t{211}), {"correlation", correlation}}) {
            Message<pf::Annotation> note(event, pf::Event::annotation);
            note.add_string(pf::Annotation::name, key);
            note.add_int64(pf::Annotation::signedInt, value);
        }
    });
}
void writeEnd(Writer& writer, std::int64_t time)
{
    writer.packet([&](auto& packet) {
        packet.add_uint64(pf::Packet::timestamp, static_cast<std::uint64_t>(time));
        packet.add_uint32(pf::Packet::sequence, 1);
        Message<pf::Event> event(packet, pf::Packet::trackEvent);
        event.add_enum(pf::Event::type, pf::sliceEnd);
        event.add_uint64(pf::Event::track, 2);
    });
}
void writeKernel(Writer& writer, std::int64_t time, std::int64_t number)
{
    writer.packet([&](auto& packet) {
        packet.add_uint64(pf::Packet::timestamp, static_cast<std::uint64_t>(time));
        packet.add_uint32(pf::Packet::sequence, 1);
        Message<pf::RenderStage> stage(packet, pf::Packet::renderStage);
        stage.add_uint64(pf::RenderStage::eventId, static_cast<std::uint64_t>(number));
        stage.add_uint64(pf::RenderStage::duration, 1500);
        stage.add_uint64(pf::RenderStage::queueIid, 100);
        stage.add_uint64(pf::RenderStage::stageIid, 1);
        stage.add_uint64(pf::RenderStage::nameIid, 300 + static_cast<std::uint64_t>(number % 100));
        for (const auto& [key, value] : {std::pair<const char*, std::string>("device id", "0"),
                                         {"context id", "1"},
                                         {"stream id", "7"},
                                         {"correlation", std::to_string(number)},
                                         {"priority", "0"},
                                         {"arch", "9.0"}}) {
            Message<pf::ExtraData> extra(stage, pf::RenderStage::extraData);
            extra.add_string(pf::ExtraData::name, key);
            extra.add_string(pf::ExtraData::value, value);
        }
        Message<pf::KernelLaunch> launch(stage, pf::RenderStage::launch);
        for (const pf::KernelLaunch part : {pf::KernelLaunch::grid, pf::KernelLaunch::workgroup}) {
            Message<pf::Extent> extent(launch, part);
            extent.add_uint32(pf::Extent::x, 128);
            extent.add_uint32(pf::Extent::y, 1);
            extent.add_uint32(pf::Extent::z, 1);
        }
    });
}

// A start, or the time of an end.
struct Slice {
    std::int64_t start, end;
    std::uint64_t name;
};

void writeTorch(Writer& writer, std::int64_t bytes, bool kernels)
{
    constexpr std::size_t group = 200'000; // of slices whose ends follow
    std::int64_t now = 1'000'000, number = 1;
    while (writer.written() < bytes) {
        std::vector<std::int64_t> ends;
        for (std::size_t i = 0; i < group / 2 && writer.written() < bytes; ++i, ++number) {
            writeStart(writer, now, 2 + static_cast<std::uint64_t>(number % 200), 1, -1);
            ends.push_back(now + 900);
            writeStart(writer, now + 100, 1, 2, number);
            ends.push_back(now + 600);
            if (kernels) writeKernel(writer, now + 700, number);
            now += 1000;
        }
        for (const std::int64_t end : ends) writeEnd(writer, end);
    }
}

void writeNested(Writer& writer, std::int64_t bytes)
{
    std::int64_t now = 1'000'000;
    for (std::int64_t i = 0; writer.written() < bytes; ++i) {
        for (std::uint64_t depth = 0; depth < 3; ++depth)
            writer.packet([&](auto& packet) {
                packet.add_uint64(pf::Packet::timestamp, static_cast<std::uint64_t>(now));
                packet.add_uint32(pf::Packet::sequence, 1);
                packet.add_uint32(pf::Packet::sequenceFlags, pf::needsState);
                Message<pf::Event> event(packet, pf::Packet::trackEvent);
                event.add_enum(pf::Event::type, pf::sliceBegin);
                event.add_uint64(pf::Event::track, 2);
                event.add_uint64(pf::Event::nameIid, 2 + depth);
                Message<pf::Annotation> note(event, pf::Event::annotation);
                note.add_uint64(pf::Annotation::nameIid, 1);
                note.add_int64(pf::Annotation::signedInt, i);
                now += 100;
            });
        for (int depth = 0; depth < 3; ++depth) writeEnd(writer, now += 100);
    }
}

// The fields of a message and, `deeper` times, those of the messages in it.
std::uint64_t walk(std::string_view message, int deeper)
{
    std::uint64_t sum = 0;
    Fields<std::uint32_t> fields(message);
    while (fields.next()) sum += fields.isBytes() && deeper > 0 ? walk(fields.bytes(), deeper - 1) : fields.number();
    return sum;
}
std::uint64_t walkTrace(std::string_view trace)
{
    std::uint64_t sum = 0;
    Fields<pf::Trace> packets(trace);
    while (packets.next()) {
        Fields<pf::Packet> packet(packets.bytes());
        while (packet.next()) {
            sum += packet.number();
            if (packet.tag() == pf::Packet::renderStage) sum += walk(packet.bytes(), 1);
            if (packet.tag() != pf::Packet::trackEvent) continue;
            Fields<pf::Event> event(packet.bytes());
            while (event.next()) sum += event.tag() == pf::Event::annotation ? walk(event.bytes(), 0) : event.number();
        }
    }
    return sum;
}
std::string bytesOf(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void measure(const char* what, const std::string& path, int rounds)
{
    const double size = static_cast<double>(std::filesystem::file_size(path)) / 1e6, before = bench::peakMebibytes();
    std::vector<double> speeds, walks;
    std::int64_t events = 0;
    std::uint64_t sum = 0;
    double kept = 0;
    for (int round = 0; round < rounds; ++round) {
        auto source = ByteSource::open(path);
        if (!source) std::abort();
        const double begin = bench::cpuSeconds();
        const auto file = readPerfettoTrace(**source, path, {}, {});
        if (!file) std::abort();
        speeds.push_back(size / (bench::cpuSeconds() - begin));
        const std::string bytes = bytesOf(path);
        const double walked = bench::cpuSeconds();
        sum += walkTrace(bytes);
        walks.push_back(size / (bench::cpuSeconds() - walked));
        const ForeignRank& rank = file->ranks[0];
        events = rank.events;
        kept = static_cast<double>(rank.device.size() * sizeof(DeviceSpan) + rank.launches.size() * sizeof(Launch) +
                                   rank.annotations.size() * sizeof(ForeignSpan)) /
               1048576;
    }
    std::sort(speeds.begin(), speeds.end());
    std::sort(walks.begin(), walks.end());
    if (sum == 0) std::abort();
    const double median = speeds[speeds.size() / 2], bound = walks[walks.size() / 2];
    std::printf("%-8s %5.0f MB, %.1f M events: %5.0f MB/s of CPU time (%.0f … %.0f), %5.1f M events/s; kept %.0f MiB, "
                "peak %.0f MiB; the fields alone %.0f MB/s: %.2f of it\n",
                what, size, static_cast<double>(events) / 1e6, median, speeds.front(), speeds.back(),
                static_cast<double>(events) / size * median / 1e6, kept, bench::peakMebibytes() - before, bound,
                median / bound);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    std::int64_t megabytes = 300;
    std::string only;
    int rounds = 5;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--megabytes") == 0) megabytes = std::atoll(argv[i + 1]);
        if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
        if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::max(1, std::atoi(argv[i + 1]));
    }
    const std::string path =
        (std::filesystem::temp_directory_path() / ("stagewright-bench-" + std::to_string(::getpid()) + ".pftrace"))
            .string();
    for (const char* const what : {"torch", "kernels", "nested"}) {
        if (!only.empty() && only != what) continue;
        {
            Writer writer(path);
            writeHead(writer);
            if (std::strcmp(what, "nested") == 0)
                writeNested(writer, megabytes * 1'000'000);
            else
                writeTorch(writer, megabytes * 1'000'000, std::strcmp(what, "kernels") == 0);
        }
        measure(what, path, rounds);
        std::filesystem::remove(path);
    }
    return 0;
}
