#include "engine/training/flight_page.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <type_traits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/record/clock.h"
#include "schedules/base/folder.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mark = 0x3145474150544c46; // "FLTPAGE1"
constexpr std::size_t kept = 256;
constexpr int mostRanks = 1 << 16;
constexpr const char* ending = ".flight";

// The file, as one machine's processes of one version share it.
struct Page {
    std::uint64_t mark;
    std::int32_t training, rank, ranks, leads;
    std::array<char, 64> schedule; // ends with 0
    std::int64_t written;          // CLOCK_MONOTONIC of the newest entry
    std::uint64_t count;           // entries ever added
    std::array<FlightEntry, kept> entries;
};
static_assert(std::is_trivially_copyable_v<Page>);

Page& pageAt(void* memory) { return *static_cast<Page*>(memory); }

bool isSound(const Page& page)
{
    if (page.mark != mark || page.ranks < 1 || page.ranks > mostRanks || page.rank < 0 || page.rank >= page.ranks ||
        page.schedule.back() != 0)
        return false;
    const auto entries = std::min<std::uint64_t>(page.count, kept);
    return std::all_of(page.entries.begin(), page.entries.begin() + static_cast<std::ptrdiff_t>(entries),
                       [&](const FlightEntry& entry) {
                           return static_cast<std::size_t>(entry.op.kind) < allKinds().size() && entry.peer >= -1 &&
                                  entry.peer < page.ranks;
                       });
}

RankRecord recordOf(const Page& page)
{
    RankRecord record;
    record.rank = page.rank;
    const auto entries = std::min<std::uint64_t>(page.count, kept);
    record.forgotten = page.count - entries;
    for (std::uint64_t i = page.count - entries; i < page.count; ++i) record.entries.push_back(page.entries[i % kept]);
    return record;
}

} // namespace

std::unique_ptr<FlightPage> FlightPage::create(const std::string& folder, const FlightPlace& place)
{
    std::string path = fmt::format("{}/{}-{}{}", folder, place.training, place.rank, ending);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return nullptr;
    void* memory = MAP_FAILED;
    if (::ftruncate(file, sizeof(Page)) == 0)
        memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) {
        ::unlink(path.c_str());
        return nullptr;
    }
    Page& page = pageAt(memory);
    page.mark = mark;
    page.training = place.training;
    page.rank = place.rank;
    page.ranks = place.ranks;
    page.leads = place.leads ? 1 : 0;
    place.schedule.copy(page.schedule.data(), page.schedule.size() - 1);
    return std::unique_ptr<FlightPage>(new FlightPage(std::move(path), memory));
}

FlightPage::~FlightPage()
{
    ::munmap(m_memory, sizeof(Page));
    if (!m_stays) ::unlink(m_path.c_str());
}

void FlightPage::add(std::uint64_t index, const FlightEntry& entry)
{
    Page& page = pageAt(m_memory);
    page.entries[index % kept] = entry;
    page.count = index + 1;
    page.written = monotonicNow();
}

void FlightPage::finish(std::uint64_t index)
{
    Page& page = pageAt(m_memory);
    if (index < page.count && page.count - index <= kept) page.entries[index % kept].done = true;
}

std::optional<FlightsLeft> readFlights(const std::string& folder)
{
    std::vector<Page> pages;
    for (const std::string& name : namesIn(folder)) {
        const fs::path path = fs::path(folder) / name;
        if (path.extension() != ending || pages.size() >= mostRanks) continue;
        std::ifstream file(path, std::ios::binary);
        Page page{};
        if (file.read(reinterpret_cast<char*>(&page), sizeof page) && isSound(page)) pages.push_back(page);
    }
    if (pages.empty()) return std::nullopt;
    const Page newest = *std::max_element(pages.begin(), pages.end(),
                                          [](const Page& a, const Page& b) { return a.written < b.written; });
    FlightsLeft left;
    left.schedule = newest.schedule.data();
    left.ranks = newest.ranks;
    for (int rank = 0; rank < left.ranks; ++rank) {
        RankRecord none;
        none.rank = rank;
        none.present = false;
        left.records.push_back(none);
    }
    for (const Page& page : pages) {
        if (page.training != newest.training || page.ranks != newest.ranks) continue;
        left.records[static_cast<std::size_t>(page.rank)] = recordOf(page);
        left.leader = left.leader || page.leads != 0;
    }
    return left;
}

} // namespace stagewright
