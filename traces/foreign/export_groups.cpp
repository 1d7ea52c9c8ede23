#include "traces/foreign/export_groups.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "schedules/base/text.h"
#include "traces/foreign/foreign_trace.h"

namespace stagewright {

namespace {

// The path with '#' for each number in its last two parts.
std::string patternOf(const std::string& path)
{
    const std::filesystem::path parts(path);
    std::string out = parts.parent_path().parent_path().string() + '/';
    for (const std::string& part : {parts.parent_path().filename().string(), parts.filename().string()}) {
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (!isDigit(part[i]))
                out += part[i];
            else if (i == 0 || !isDigit(part[i - 1]))
                out += '#';
        }
        out += '/';
    }
    return out;
}

int rankOf(const ExportFile& file)
{
    const std::filesystem::path path(file.path);
    const int rank = rankInName(path.filename().string()).rank;
    return rank >= 0 ? rank : rankInName(path.parent_path().filename().string()).rank;
}

// Places are held once: of two windows of one process they are the same.
bool shareCommunicator(const ExportFile& a, const ExportFile& b)
{
    bool shared = false;
    for (const auto& [communicator, places] : a.places) {
        const auto found = b.places.find(communicator);
        if (found == b.places.end()) continue;
        for (const int place : places)
            if (found->second.contains(place)) return false;
        shared = true;
    }
    return shared;
}

} // namespace

bool ranTogether(const ExportFile& a, const ExportFile& b)
{
    if (a.end < a.begin || b.end < b.begin) return rankOf(a) >= 0 && rankOf(b) >= 0 && rankOf(a) != rankOf(b);
    const Nanos common = std::min(a.end, b.end) - std::max(a.begin, b.begin);
    return common >= 0 && common * 2 >= std::min(a.end - a.begin, b.end - b.begin);
}

bool naturalLess(std::string_view a, std::string_view b)
{
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (isDigit(a[i]) && isDigit(b[j])) {
            while (i + 1 < a.size() && a[i] == '0' && isDigit(a[i + 1])) ++i;
            while (j + 1 < b.size() && b[j] == '0' && isDigit(b[j + 1])) ++j;
            std::size_t m = i;
            std::size_t n = j;
            while (m < a.size() && isDigit(a[m])) ++m;
            while (n < b.size() && isDigit(b[n])) ++n;
            if (m - i != n - j) return m - i < n - j;
            if (const int order = a.substr(i, m - i).compare(b.substr(j, n - j)); order != 0) return order < 0;
            i = m;
            j = n;
            continue;
        }
        if (a[i] != b[j]) return a[i] < b[j];
        ++i;
        ++j;
    }
    if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
    return a < b;
}

std::vector<std::vector<std::size_t>> groupsOfExports(const std::vector<ExportFile>& files)
{
    std::vector<std::size_t> order(files.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return naturalLess(files[a].path, files[b].path); });
    std::map<std::string, std::vector<std::vector<std::size_t>>> byPattern;
    for (const std::size_t i : order) {
        auto& groups = byPattern[patternOf(files[i].path)];
        const auto of = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
            return std::all_of(group.begin(), group.end(),
                               [&](std::size_t other) { return ranTogether(files[i], files[other]); });
        });
        if (of != groups.end())
            of->push_back(i);
        else
            groups.push_back({i});
    }
    std::vector<std::vector<std::size_t>> out;
    for (auto& [pattern, groups] : byPattern) {
        for (auto& group : groups) {
            const auto shares = [&](const auto& other) {
                return std::any_of(other.begin(), other.end(), [&](std::size_t a) {
                    return std::any_of(group.begin(), group.end(),
                                       [&](std::size_t b) { return shareCommunicator(files[a], files[b]); });
                });
            };
            for (auto at = out.begin(); at != out.end();) { // those that are one with it
                if (!shares(*at)) {
                    ++at;
                    continue;
                }
                group.insert(group.end(), at->begin(), at->end());
                at = out.erase(at);
            }
            std::sort(group.begin(), group.end(),
                      [&](std::size_t a, std::size_t b) { return naturalLess(files[a].path, files[b].path); });
            out.push_back(std::move(group));
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace stagewright
