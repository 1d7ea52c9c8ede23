#include "traces/import/import.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>

#include <fnmatch.h>

#include <fmt/format.h>

#include "schedules/base/folder.h"
#include "schedules/base/release_items.h"
#include "traces/foreign/archive.h"
#include "traces/foreign/byte_source.h"
#include "traces/foreign/export_groups.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/import/other_files.h"
#include "traces/import/outliers.h"
#include "traces/import/rank_work.h"
#include "traces/run/simulated_run.h"

namespace stagewright {

namespace fs = std::filesystem;

namespace {

bool isGlob(const std::string& word) { return word.find_first_of("*?[") != std::string::npos; }

std::vector<std::string> filesIn(const fs::path& folder)
{
    std::vector<std::string> files;
    std::error_code failed;
    for (const std::string& name : namesIn(folder))
        if (const fs::path file = folder / name; fs::is_regular_file(file, failed) && !name.starts_with('.'))
            files.push_back(file);
    if (!files.empty()) return files;
    for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed), end;
         at != end && files.size() < 100'000; at.increment(failed)) {
        if (failed) break;
        if (at->is_regular_file(failed) && !at->path().filename().string().starts_with('.'))
            files.push_back(at->path().string());
    }
    return files;
}

// Only the last part of a path may have wildcards.
std::vector<std::string> globbed(const std::string& word)
{
    const fs::path path(word);
    const fs::path folder = path.parent_path();
    std::vector<std::string> files;
    std::error_code failed;
    for (const std::string& name : namesIn(folder.empty() ? "." : folder.string()))
        if (const fs::path file = folder / name;
            fs::is_regular_file(file, failed) && fnmatch(path.filename().c_str(), name.c_str(), FNM_PERIOD) == 0)
            files.push_back(file);
    return files;
}

// The number that may be a rank: of the file's name, else of its folder's.
RankInName rankOfPath(const std::string& file)
{
    const fs::path path(file);
    const RankInName rank = rankInName(path.filename().string());
    return rank.rank >= 0 ? rank : rankInName(path.parent_path().filename().string());
}

// As PyTorch's handler names files: "HOST_PROCESS.TIME.pt.trace.json".
bool isProcessInName(const std::string& name, const RankInName& number)
{
    std::size_t end = number.end;
    if (number.begin < 2 || name[number.begin - 1] != '_' || end >= name.size() || name[end] != '.') return false;
    const std::size_t time = ++end;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    return end - time >= 12 && name.compare(end, 9, ".pt.trace") == 0;
}

// The common key of the files of one job: folder and name without the rank (−1: none), where that is their number, and
// without long numbers (times, with their decimals, and processes).
std::string jobOf(const std::string& file, int ofRank)
{
    const fs::path path(file);
    std::string name = path.filename().string();
    if (const RankInName rank = rankInName(name); rank.rank >= 0 && isProcessInName(name, rank))
        name.replace(rank.begin, rank.end - rank.begin, "{}");
    else if (ofRank >= 0 && rank.rank == ofRank)
        name.replace(rank.begin, rank.end - rank.begin, "{}");
    std::string folder = path.parent_path().string();
    if (const std::string last = path.parent_path().filename().string();
        ofRank >= 0 && rankInName(last).rank == ofRank && rankInName(path.filename().string()).rank < 0) {
        const RankInName rank = rankInName(last);
        folder.replace(folder.size() - last.size() + rank.begin, rank.end - rank.begin, "{}");
    }
    std::string out;
    for (std::size_t i = 0; i < name.size();) {
        std::size_t end = i;
        while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
        if (end - i >= 9) {
            std::size_t decimals = end < name.size() && name[end] == '.' ? end + 1 : end;
            while (decimals < name.size() && std::isdigit(static_cast<unsigned char>(name[decimals])) != 0) ++decimals;
            if (decimals > end + 1 && decimals <= end + 8) end = decimals;
            out += '#';
        } else
            out += name.substr(i, std::max<std::size_t>(1, end - i));
        i = std::max(end, i + 1);
    }
    return folder + '/' + out;
}

std::string withoutSuffixes(std::string name)
{
    std::vector<std::string_view> suffixes = readSuffixes();
    suffixes.insert(suffixes.end(), {".trace", ".pt"}); // PyTorch's rank0.1234.pt.trace.json
    const auto last = [&] {
        return std::find_if(suffixes.begin(), suffixes.end(),
                            [&](std::string_view one) { return name.ends_with(one); });
    };
    for (auto suffix = last(); suffix != suffixes.end(); suffix = last()) name.erase(name.size() - suffix->size());
    return name;
}

std::string runNameOf(const std::string& file, int rank)
{
    std::string name = withoutSuffixes(fs::path(jobOf(file, rank)).filename().string());
    for (const std::string_view part : {"_rank_{}", "_rank{}", "-rank{}", "rank{}_", "rank_{}", "rank{}", "worker{}_",
                                        "_worker{}", "worker{}", "_{}", "-{}", "{}", ".#", "#"})
        if (const std::size_t at = name.find(part); at != std::string::npos) name.erase(at, part.size());
    while (!name.empty() && (name.back() == '_' || name.back() == '-' || name.back() == '.')) name.pop_back();
    const auto shown = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & '\x80') != 0; };
    name.erase(name.begin(), std::find_if(name.begin(), name.end(),
                                          [](char c) { return c != ' ' && c != '.' && c != '-' && c != '_'; }));
    if (std::none_of(name.begin(), name.end(), shown)) name.clear();
    if (name.empty()) { // rank0.pt.trace.json: as the folder or archive
        name = fs::path(file).parent_path().filename().string();
        for (const std::string_view suffix : packedSuffixes)
            if (name.size() > suffix.size() && name.ends_with(suffix)) name.erase(name.size() - suffix.size());
    }
    return name.empty() ? "imported" : name;
}

struct ReadFile {
    std::string path; // of a member of an archive "job.zip/rank0.json"
    ForeignFile content;
    std::optional<Error> error;
    std::string format;
};

Result<ForeignFile> readOne(const std::string& path, const ImportOptions& options, const Progress& progress,
                            std::string& format)
{
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    const std::string head = headOf(*source);
    source.reset();
    const FormatInfo* info = formatOfHead(head);
    const auto named = [&path](Error error) {
        return tl::unexpected(error.message.starts_with("file ") ? std::move(error)
                                                                 : std::move(error).with("file " + path));
    };
    for (const FormatInfo* one : allFormats())
        if (info == nullptr && !head.empty() && one->bySuffix &&
            std::any_of(one->suffixes.begin(), one->suffixes.end(),
                        [&](std::string_view suffix) { return path.ends_with(suffix); }))
            info = one;
    if (info == nullptr) return tl::unexpected(unknownFile(path, head));
    format = info->name;
    auto read = info->read(path, options, progress);
    if (!read) return named(std::move(read.error()));
    return read;
}

class Readers {
public:
    Readers(const std::vector<std::string>& files, const ImportOptions& options, const Progress& progress)
        : m_files(files), m_options(options), m_progress(progress)
    {
        for (const std::string& file : files) {
            std::error_code failed;
            const auto size = fs::file_size(file, failed);
            m_sizes.push_back(failed ? 0 : static_cast<std::int64_t>(size));
            m_total += m_sizes.back();
        }
        m_done.assign(files.size(), 0);
        m_results.resize(files.size());
    }

    // In the order of the files, an archive's members in its place.
    std::vector<ReadFile> read()
    {
        const auto most = static_cast<std::size_t>(
            m_options.threads > 0 ? m_options.threads : std::max(1u, std::thread::hardware_concurrency()));
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < std::min(most, m_files.size()); ++i) {
            try {
                threads.emplace_back([this] { work(); });
            } catch (const std::system_error&) { // as many as the system allows
                if (threads.empty()) work();
                break;
            }
        }
        threads.clear();
        if (m_noMemory) throw std::bad_alloc(); // here, where a caller can catch it
        std::vector<ReadFile> all;
        for (auto& of : m_results)
            for (ReadFile& one : of) all.push_back(std::move(one));
        return all;
    }

private:
    void work() noexcept
    {
        try {
            readAll();
        } catch (const std::bad_alloc&) {
            m_noMemory = true;
        }
    }

    void readAll()
    {
        FreedMemory freed; // of the events, their texts and launches: about as much as is kept
        for (std::size_t i = m_next++; i < m_files.size(); i = m_next++) {
            if (m_progress.cancelled() || m_noMemory) return;
            Progress one;
            one.stop = m_progress.stop;
            one.report = [this, i](std::string_view, std::int64_t done, std::int64_t) { tell(i, done); };
            if (isArchive(m_files[i]))
                readMembers(i, one.stop);
            else
                readInto(m_results[i], m_files[i], m_files[i], one);
            tell(i, m_sizes[i]);
            freed.add(static_cast<std::size_t>(m_sizes[i]) / 4);
        }
    }

    void readInto(std::vector<ReadFile>& to, const std::string& path, const std::string& name, const Progress& progress)
    {
        ReadFile one;
        one.path = name;
        auto content = readOne(path, m_options, progress, one.format);
        if (content) {
            one.content = std::move(*content);
            for (ForeignRank& rank : one.content.ranks) {
                rank.source = name;
                tieLaunches(rank, m_progress.stop);
                takeOutliers(rank);
            }
        } else {
            one.error = renamed(std::move(content.error()), path, name);
        }
        to.push_back(std::move(one));
    }

    // One after the other, each from its temporary file.
    void readMembers(std::size_t i, const std::stop_token& stop)
    {
        Progress whole;
        whole.stop = stop;
        auto archive = Archive::open(m_files[i]);
        if (!archive) {
            m_results[i].push_back({m_files[i], {}, std::move(archive.error()), {}});
            return;
        }
        int failures = 0;
        while (!m_progress.cancelled()) {
            auto member = (*archive)->next(whole);
            if (!member) {
                m_results[i].push_back({m_files[i], {}, std::move(member.error()), {}});
                if (++failures >= 100) return; // damaged throughout
                continue;
            }
            if (!*member) break;
            readInto(m_results[i], (*member)->path, m_files[i] + "/" + (*member)->name, whole);
            tell(i, std::min(m_sizes[i], (*archive)->consumed()));
        }
        if (m_results[i].empty() && !m_progress.cancelled())
            m_results[i].push_back(
                {m_files[i],
                 {},
                 Error{ErrorCode::Unreadable, fmt::format("archive {}: it has no files", m_files[i]), {}},
                 {}});
    }

    void tell(std::size_t file, std::int64_t done)
    {
        const std::lock_guard lock(m_mutex);
        m_read += std::max<std::int64_t>(0, done - m_done[file]);
        m_done[file] = std::max(m_done[file], done);
        m_progress.tell("bytes", m_read, m_total);
    }

    const std::vector<std::string>& m_files;
    const ImportOptions& m_options;
    const Progress& m_progress;
    std::vector<std::int64_t> m_sizes, m_done;
    std::int64_t m_total = 0;
    std::int64_t m_read = 0;
    std::mutex m_mutex;
    std::atomic<std::size_t> m_next = 0;
    std::atomic<bool> m_noMemory = false;
    std::vector<std::vector<ReadFile>> m_results; // by file
};

// The wall-clock range of an export.
ExportFile extentOf(const std::string& path, const std::vector<ForeignRank>& ranks)
{
    ExportFile out{path, 0, -1, {}};
    for (const ForeignRank& rank : ranks)
        for (const auto& [communicator, place] : rank.placeInGroup) out.places[communicator].insert(place);
    for (const ForeignRank& rank : ranks) {
        const auto add = [&](const ForeignSpan& span) {
            const bool first = out.end < out.begin;
            out.begin = first ? rank.epoch + span.start : std::min(out.begin, rank.epoch + span.start);
            out.end = std::max(out.end, rank.epoch + span.end);
        };
        for (const DeviceSpan& span : rank.device) add(span);
        for (const ForeignSpan& span : rank.annotations) add(span);
        // of a clock since 1970, which older traces have instead of an epoch
        constexpr Nanos leastReading = 100'000'000'000'000'000;
        if (rank.epoch == 0 && out.begin < leastReading) return {path, 0, -1, std::move(out.places)};
    }
    return out;
}

// Ranks of files whose content names none. "rank" or "worker" before a number says that it is one. Other numbers may
// count steps, windows or GPUs: they are ranks where several files differ in them and ran at the same time.
std::vector<int> ranksOf(const std::vector<std::string>& files, const std::vector<ExportFile>& times,
                         std::vector<int> ranks)
{
    std::map<std::string, std::vector<std::size_t>> unsure;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (ranks[i] >= 0) continue;
        const RankInName found = rankOfPath(files[i]);
        if (found.said)
            ranks[i] = found.rank;
        else if (found.rank >= 0)
            unsure[jobOf(files[i], found.rank)].push_back(i);
    }
    for (const auto& [job, of] : unsure) {
        std::set<int> numbers;
        for (const std::size_t i : of) numbers.insert(rankOfPath(files[i]).rank);
        bool together = numbers.size() > 1;
        for (std::size_t k = 1; k < of.size(); ++k) together = together && ranTogether(times[of[k - 1]], times[of[k]]);
        if (!together) continue;
        for (const std::size_t i : of) {
            const std::string name = fs::path(files[i]).filename().string();
            ranks[i] = rankOfPath(files[i]).rank;
            if (isProcessInName(name, rankInName(name))) // processes are ranks, their numbers are not
                ranks[i] = static_cast<int>(std::distance(numbers.begin(), numbers.find(ranks[i])));
        }
    }
    return ranks;
}

// Files of one name that name no ranks are windows of one process, unless they ran at the same time.
void splitWindows(std::vector<std::vector<std::size_t>>& groups, const std::vector<ExportFile>& times,
                  const std::vector<int>& ranks)
{
    std::vector<std::vector<std::size_t>> out;
    for (auto& group : groups) {
        bool together = true;
        for (std::size_t k = 1; k < group.size(); ++k)
            together = together && (ranks[group[k]] >= 0 || ranTogether(times[group[k - 1]], times[group[k]]));
        if (together)
            out.push_back(std::move(group));
        else
            for (const std::size_t i : group) out.push_back({i});
    }
    groups = std::move(out);
}

// All files with times are one job, in the natural order of their names.
void joinJobs(const std::vector<std::string>& files, const std::vector<ReadFile>& read,
              std::vector<std::pair<std::size_t, std::vector<std::size_t>>>& jobs)
{
    std::vector<std::size_t> all;
    for (const auto& [first, of] : jobs)
        for (const std::size_t i : of)
            if (!read[i].content.schedule) all.push_back(i);
    std::erase_if(jobs, [&](const auto& job) { return !read[job.first].content.schedule; });
    if (all.empty()) return;
    std::sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) { return naturalLess(files[a], files[b]); });
    jobs.emplace_back(*std::min_element(all.begin(), all.end()), std::move(all));
}

// For a job of several files the numbers in which they differ are not part of its name.
std::string jobNameOf(const std::vector<std::string>& files, const std::vector<std::size_t>& of,
                      const std::vector<int>& ranked)
{
    std::string name = runNameOf(files[of.front()], ranked[of.front()]);
    if (of.size() == 1) return name;
    const std::string last = runNameOf(files[of.back()], ranked[of.back()]);
    if (name == last) return name;
    name.resize(static_cast<std::size_t>(std::mismatch(name.begin(), name.end(), last.begin(), last.end()).first -
                                         name.begin()));
    while (!name.empty() && std::isalpha(static_cast<unsigned char>(name.back())) == 0) name.pop_back();
    return name.empty() ? "imported" : name;
}

} // namespace

Result<std::vector<std::string>> filesOf(const std::vector<std::string>& words)
{
    std::set<std::string> files;
    for (const std::string& word : words) {
        std::error_code failed;
        std::vector<std::string> found;
        if (fs::is_directory(word, failed))
            found = filesIn(word);
        else if (!fs::exists(word, failed) && isGlob(word))
            found = globbed(word);
        else
            found = {word};
        if (found.empty()) return fail(ErrorCode::Unreadable, fmt::format("{}: no files found", word));
        for (std::string& file : found) files.insert(std::move(file));
    }
    return std::vector<std::string>(files.begin(), files.end());
}

std::vector<std::vector<std::size_t>> groupsOf(const std::vector<std::string>& files, const std::vector<int>& ranks,
                                               const std::vector<int>& worldSizes)
{
    std::map<std::string, std::vector<std::size_t>> byName;
    for (std::size_t i = 0; i < files.size(); ++i) byName[jobOf(files[i], ranks[i])].push_back(i);
    // Names of a host and a process don't identify the job.
    std::vector<std::vector<std::size_t>> groups;
    std::map<std::pair<std::string, int>, std::vector<std::size_t>> alone;
    for (const auto& [job, of] : byName) {
        const std::size_t i = of.front();
        if (of.size() == 1 && ranks[i] >= 0 && worldSizes[i] > 1)
            alone[{fs::path(files[i]).parent_path().string(), worldSizes[i]}].push_back(i);
        else
            groups.push_back(of);
    }
    for (const auto& [key, of] : alone) {
        std::set<int> numbers;
        for (const std::size_t i : of) numbers.insert(ranks[i]);
        if (numbers.size() == of.size() && of.size() > 1)
            groups.push_back(of);
        else
            for (const std::size_t i : of) groups.push_back({i});
    }
    std::vector<std::vector<std::size_t>> out;
    for (const auto& of : groups) {
        std::map<int, std::size_t> times;
        std::vector<std::vector<std::size_t>> parts;
        for (const std::size_t i : of) {
            const std::size_t part = ranks[i] < 0 ? 0 : times[ranks[i]]++;
            if (part >= parts.size()) parts.resize(part + 1);
            parts[part].push_back(i);
        }
        for (auto& part : parts) out.push_back(std::move(part));
    }
    std::sort(out.begin(), out.end());
    return out;
}

void tellApart(std::vector<ImportedRun>& runs)
{
    std::map<std::string, std::vector<ImportedRun*>> byName;
    for (ImportedRun& run : runs) byName[run.run.info.name].push_back(&run);
    for (auto& [name, of] : byName) {
        if (of.size() < 2) continue;
        std::set<std::string> folders;
        const auto folderOf = [](const ImportedRun& run) {
            return run.files.empty() ? std::string() : fs::path(run.files.front()).parent_path().filename().string();
        };
        for (const ImportedRun* run : of) folders.insert(folderOf(*run));
        if (folders.size() == of.size()) {
            for (ImportedRun* run : of)
                if (const std::string folder = folderOf(*run); !folder.empty())
                    run->run.info.name = fmt::format("{}/{}", folder, name);
            continue;
        }
        std::stable_sort(of.begin(), of.end(), [](const ImportedRun* a, const ImportedRun* b) {
            return std::pair(a->run.info.createdUnixMs, a->files) < std::pair(b->run.info.createdUnixMs, b->files);
        });
        for (std::size_t i = 0; i < of.size(); ++i) of[i]->run.info.name = fmt::format("{} ({})", name, i + 1);
    }
}

Result<ImportResult> importTraces(const std::vector<std::string>& words, const ImportOptions& options,
                                  const Progress& progress)
{
    const auto found = filesOf(words);
    if (!found) return tl::unexpected(found.error());
    std::vector<ReadFile> read = Readers(*found, options, progress).read();
    std::vector<std::string> files;
    files.reserve(read.size());
    for (const ReadFile& one : read) files.push_back(one.path);
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "importing was cancelled");
    ImportResult out;
    std::vector<std::size_t> single; // of files with one rank
    std::vector<std::string> names;
    std::vector<int> ranks, worldSizes;
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> jobs; // by first file
    std::vector<std::size_t> exports;
    std::vector<ExportFile> exported, times;  // times: of `single`
    std::vector<int> ranked(read.size(), -1); // by file: the number in its name that is a rank, or a process; −1: none
    for (std::size_t i = 0; i < read.size(); ++i) {
        const RankInName number = rankOfPath(files[i]);
        if (number.said || !hostInName(fs::path(files[i]).filename().string()).empty()) ranked[i] = number.rank;
        if (read[i].error) {
            out.refused.push_back({files[i], std::move(*read[i].error)});
        } else if (holdsHostExports(read[i].format) && !options.oneJob) {
            exports.push_back(i);
            exported.push_back(extentOf(files[i], read[i].content.ranks));
        } else if (read[i].content.ranks.size() == 1) {
            ForeignRank& rank = read[i].content.ranks.front();
            const fs::path path(files[i]);
            if (const std::string odd = noRankInName(path.filename().string()); rank.rank < 0 && !odd.empty())
                rank.notes.push_back(fmt::format("{} in its name is not a rank: ranks have at most six digits", odd));
            single.push_back(i);
            names.push_back(files[i]);
            ranks.push_back(rank.rank);
            worldSizes.push_back(rank.worldSize);
            times.push_back(extentOf(files[i], read[i].content.ranks));
        } else {
            jobs.push_back({i, {i}});
        }
    }
    for (const auto& group : groupsOfExports(exported)) {
        std::vector<std::size_t> of;
        of.reserve(group.size());
        for (const std::size_t i : group) of.push_back(exports[i]);
        for (const std::size_t i : of)
            if (const RankInName found = rankInName(fs::path(files[i]).filename().string());
                read[i].content.ranks.size() == 1 && (found.said || of.size() > 1)) {
                read[i].content.ranks[0].rank = found.rank;
                ranked[i] = found.rank;
            }
        jobs.emplace_back(*std::min_element(of.begin(), of.end()), of);
    }
    ranks = ranksOf(names, times, std::move(ranks));
    for (std::size_t k = 0; k < single.size(); ++k) {
        read[single[k]].content.ranks.front().rank = ranks[k];
        if (ranks[k] >= 0) ranked[single[k]] = ranks[k];
    }
    auto groups = groupsOf(names, ranks, worldSizes);
    splitWindows(groups, times, ranks);
    for (const auto& group : groups) {
        std::vector<std::size_t> of;
        of.reserve(group.size());
        for (const std::size_t i : group) of.push_back(single[i]);
        jobs.emplace_back(of.front(), of);
    }
    if (options.oneJob) joinJobs(files, read, jobs);
    std::sort(jobs.begin(), jobs.end());
    for (auto& [first, of] : jobs) {
        const std::string& file = files[first];
        if (read[first].content.schedule) {
            const Schedule& schedule = *read[first].content.schedule;
            auto run = simulatedRun(schedule, CostModel::uniform(schedule));
            if (!run) {
                out.refused.push_back({file, std::move(run.error()).with("file " + file)});
                continue;
            }
            ImportedRun one;
            one.run = std::move(*run);
            // all ranks are in it: no number in its name is one
            one.run.info.name = withoutSuffixes(fs::path(file).filename().string());
            one.format = read[first].format;
            one.files = {file};
            one.recognised = schedule.name == one.run.info.name ? "" : schedule.name;
            one.ops = static_cast<std::int64_t>(schedule.opCount());
            one.notes.emplace_back("an order without times: simulated with unit costs");
            out.runs.push_back(std::move(one));
            continue;
        }
        std::vector<ForeignRank> job;
        for (const std::size_t i : of)
            for (ForeignRank& rank : read[i].content.ranks) job.push_back(std::move(rank));
        const std::string own = job.empty() ? std::string() : job.front().run;
        const bool named = !own.empty() && std::all_of(job.begin(), job.end(),
                                                       [&own](const ForeignRank& rank) { return rank.run == own; });
        const std::string name = named ? own : jobNameOf(files, of, ranked);
        auto runs = assemble(std::move(job), name, options, progress);
        if (!runs) {
            if (runs.error().code == ErrorCode::Cancelled) return tl::unexpected(std::move(runs.error()));
            out.refused.push_back({file, std::move(runs.error()).with("file " + file)});
            continue;
        }
        for (ImportedRun& run : *runs) out.runs.push_back(std::move(run));
    }
    tellApart(out.runs);
    if (out.runs.empty())
        return tl::unexpected(out.refused.empty() ? Error{ErrorCode::Unreadable, "nothing to import", {}}
                                                  : out.refused.front().error);
    return out;
}

} // namespace stagewright
