// Queries of the SQL console of any bytes, over a sound file: answered or refused, the file stays as it is, and a
// second ends each of them.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include <unistd.h>

#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/store/run_file.h"

namespace {

using namespace stagewright;

std::string bytesOf(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A query that lasts longer is stopped.
class Clock {
public:
    Clock() : m_thread([this](const std::stop_token& end) { watch(end); }) {}
    std::stop_token start()
    {
        const std::lock_guard lock(m_mutex);
        m_stop = {};
        ++m_number;
        m_due = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        return m_stop.get_token();
    }

private:
    void watch(const std::stop_token& end)
    {
        while (!end.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            const std::lock_guard lock(m_mutex);
            if (m_number > 0 && std::chrono::steady_clock::now() > m_due) m_stop.request_stop();
        }
    }
    std::mutex m_mutex;
    std::stop_source m_stop;
    std::chrono::steady_clock::time_point m_due;
    long m_number = 0;
    std::jthread m_thread; // last: it uses the others
};

struct Sample {
    std::string path =
        (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : std::filesystem::temp_directory_path().string() + "/") +
        std::string("stagewright_fuzz_sql_") + std::to_string(::getpid()) + ".stagewright";
    std::unique_ptr<RunFile> file;
    std::string bytes;
    Clock clock;

    Sample()
    {
        {
            auto made = RunFile::open(path, OpenMode::Create).value();
            Shape shape;
            shape.ranks = 2;
            shape.microbatches = 2;
            const Schedule schedule = makeSchedule("1f1b", shape).value();
            Run run;
            run.costs = CostModel::uniform(schedule);
            run.timeline = simulatedTimeline(schedule, *run.costs).value();
            run.schedule = std::make_shared<const Schedule>(schedule);
            run.metrics = {{"loss", "nats", {1, 2}}};
            if (!made->add(run)) std::abort();
        }
        bytes = bytesOf(path);
        file = RunFile::open(path, OpenMode::Read).value();
    }
    ~Sample()
    {
        file.reset();
        std::filesystem::remove(path);
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static Sample sample;
    static long count = 0;
    constexpr std::size_t most = 4096;
    Progress progress;
    progress.stop = sample.clock.start();
    const auto begin = std::chrono::steady_clock::now();
    const auto table =
        sample.file->query(std::string(reinterpret_cast<const char*>(data), size < most ? size : most), 1000, progress);
    if (!table && table.error().message.empty()) std::abort();
    if (table)
        for (const auto& row : table->rows)
            if (row.size() != table->columns.size()) std::abort();
    // a stop is asked for after one
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(20)) std::abort();
    if (++count % 256 == 0 && bytesOf(sample.path) != sample.bytes) std::abort();
    return 0;
}
