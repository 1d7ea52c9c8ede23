#include "schedules/registry.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stagewright {

namespace library {
#define STAGEWRIGHT_SCHEDULE(name) extern const ScheduleInfo name;
#include "schedules/library/schedules.def"
#undef STAGEWRIGHT_SCHEDULE
} // namespace library

namespace {

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

std::string lowered(std::string_view text)
{
    std::string out(trimmed(text));
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (c == '_' || c == ' ') c = '-';
    }
    return out;
}

// Calls visit for the name and every alias until it returns true.
template <typename Visit>
bool eachName(const ScheduleInfo& info, Visit&& visit)
{
    if (visit(info.name)) return true;
    std::string_view rest = info.aliases;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        if (visit(trimmed(rest.substr(0, comma)))) return true;
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return false;
}

std::size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string nameList()
{
    std::string out;
    for (const ScheduleInfo& info : allSchedules())
        out += fmt::format("{}{}", out.empty() ? "" : ", ", info.name);
    return out;
}

// GPipe's paper runs the backwards in falling order, PyTorch in rising order; both are GPipe.
bool isFallingGpipe(const Schedule& schedule)
{
    if (schedule.stages != schedule.ranks) return false;
    const auto rising = library::gpipe.make({schedule.ranks, schedule.microbatches, 1});
    if (!rising) return false;
    Schedule falling = *rising;
    for (auto& ops : falling.order)
        std::reverse(ops.begin() + schedule.microbatches, ops.end());
    return falling == schedule;
}

} // namespace

std::span<const ScheduleInfo> allSchedules()
{
    static const std::array all{
#define STAGEWRIGHT_SCHEDULE(name) library::name,
#include "schedules/library/schedules.def"
#undef STAGEWRIGHT_SCHEDULE
    };
    return all;
}

Result<const ScheduleInfo*> findSchedule(std::string_view name)
{
    const std::string wanted = lowered(name);
    for (const ScheduleInfo& info : allSchedules())
        if (eachName(info, [&](std::string_view known) { return lowered(known) == wanted; })) return &info;
    std::string_view nearest;
    std::size_t best = 4; // farther away is no help
    for (const ScheduleInfo& info : allSchedules())
        eachName(info, [&](std::string_view known) {
            const std::size_t distance = editDistance(lowered(known), wanted);
            if (distance < best && distance < wanted.size()) {
                best = distance;
                nearest = info.name;
            }
            return false;
        });
    return fail(ErrorCode::Usage, fmt::format("unknown schedule '{}'; there are {}", trimmed(name), nameList()),
                nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest));
}

Result<Schedule> makeSchedule(std::string_view name, const Shape& shape)
{
    const std::size_t colon = name.find(':');
    auto info = findSchedule(name.substr(0, colon));
    if (!info) return tl::unexpected(info.error());
    const std::string_view known = (*info)->name;
    if (colon != std::string_view::npos) {
        const std::string_view parameter = trimmed(name.substr(colon + 1));
        if (parameter.find('=') == std::string_view::npos)
            return fail(ErrorCode::Usage,
                        fmt::format("schedule {}: '{}' is not of the form key=value", known, parameter));
        return fail(ErrorCode::Usage,
                    fmt::format("schedule {}: has no parameters, but '{}' is given", known, parameter),
                    fmt::format("leave out ':{}'", name.substr(colon + 1)));
    }
    if (shape.ranks < 1 || shape.microbatches < 1 || shape.chunks < 0)
        return fail(
            ErrorCode::Usage,
            fmt::format("schedule {}: {} ranks, {} microbatches, {} chunks; one rank and one microbatch are the least",
                        known, shape.ranks, shape.microbatches, shape.chunks),
            "the smallest shape is 1 rank, 1 microbatch");
    Shape full = shape;
    if ((*info)->fixedChunks > 0)
        full.chunks = (*info)->fixedChunks;
    else if (full.chunks == 0)
        full.chunks = (*info)->defaultChunks;
    constexpr std::int64_t mostStages = 65536;
    if (static_cast<std::int64_t>(full.ranks) * full.chunks > mostStages)
        return fail(ErrorCode::Usage, fmt::format("schedule {}: {} ranks × {} chunks are more than {} stages", known,
                                                  full.ranks, full.chunks, mostStages));
    constexpr std::int64_t mostOps = 1'000'000'000;
    if (static_cast<std::int64_t>(full.ranks) * full.chunks > mostOps / full.microbatches)
        return fail(ErrorCode::Usage,
                    fmt::format("schedule {}: {} ranks × {} chunks × {} microbatches are more than {} forwards", known,
                                full.ranks, full.chunks, full.microbatches, mostOps));
    return (*info)->make(full);
}

std::string recognise(const Schedule& schedule)
{
    if (schedule.ranks < 1 || schedule.microbatches < 1 || schedule.stages % schedule.ranks != 0) return {};
    // A stray number in a file can name a shape far larger than its ops; such a shape is not built.
    const std::size_t cells =
        static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(schedule.microbatches);
    if (schedule.opCount() < cells / 2) return {};
    Shape shape{schedule.ranks, schedule.microbatches, schedule.stages / schedule.ranks};
    for (const ScheduleInfo& info : allSchedules()) {
        if (info.fixedChunks > 0 && info.fixedChunks != shape.chunks) continue;
        const auto made = info.make(shape);
        if (made && *made == schedule) return std::string(info.name);
    }
    if (isFallingGpipe(schedule)) return "gpipe, backwards in falling order";
    return {};
}

} // namespace stagewright
