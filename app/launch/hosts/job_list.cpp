#include "app/launch/hosts/job_list.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/hosts/host_list.h"
#include "app/launch/hosts/private_file.h"
#include "app/launch/shell_words.h"
#include "schedules/base/folder.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace fs = std::filesystem;

namespace {

using Value = nlohmann::ordered_json;

constexpr std::size_t longestId = 80;
constexpr std::size_t listedJobs = 5;
constexpr std::array<std::string_view, 5> stateNames{"starting", "queued", "running", "ended", "lost"};

Value valueOf(const HostJob& job)
{
    Value runs = Value::array();
    for (const ReplayedRun& run : job.runs)
        runs.push_back({{"there", run.there},
                        {"here", run.here},
                        {"created_unix_ms", run.createdUnixMs},
                        {"steps", run.steps},
                        {"ended", run.ended}});
    return {{"id", job.id},
            {"host", job.host},
            {"scratch", job.scratch},
            {"verb", job.verb},
            {"arguments", job.arguments},
            {"file", job.file},
            {"created_unix_ms", job.createdUnixMs},
            {"slurm", job.slurm},
            {"slurm_job", job.slurmJob},
            {"state", toText(job.state)},
            {"detail", job.detail},
            {"exit_code", job.exitCode ? Value(*job.exitCode) : Value(nullptr)},
            {"steps", job.steps},
            {"steps_asked", job.stepsAsked},
            {"steps_ordered", job.stepsOrdered},
            {"bytes_there", job.bytesThere},
            {"runs", std::move(runs)}};
}

std::optional<HostJob> jobOf(const Value& value)
{
    HostJob job;
    try {
        job.id = value.at("id").get<std::string>();
        job.host = value.at("host").get<std::string>();
        job.verb = value.at("verb").get<std::string>();
        job.arguments = value.at("arguments").get<std::vector<std::string>>();
        job.file = value.at("file").get<std::string>();
        job.createdUnixMs = value.at("created_unix_ms").get<std::int64_t>();
        job.slurm = value.at("slurm").get<bool>();
        job.slurmJob = value.at("slurm_job").get<std::string>();
        const auto state = std::find(stateNames.begin(), stateNames.end(), value.at("state").get<std::string>());
        if (state == stateNames.end()) return std::nullopt;
        job.state = static_cast<JobState>(state - stateNames.begin());
        job.detail = value.at("detail").get<std::string>();
        if (!value.at("exit_code").is_null()) job.exitCode = value.at("exit_code").get<int>();
        job.steps = value.at("steps").get<int>();
        job.stepsAsked = value.at("steps_asked").get<int>();
        job.stepsOrdered = value.value("steps_ordered", 0);
        job.scratch = value.value("scratch", std::string());
        job.bytesThere = value.value("bytes_there", std::int64_t{-1});
        for (const Value& run : value.at("runs"))
            job.runs.push_back({run.at("there").get<std::int64_t>(), run.at("here").get<std::int64_t>(),
                                run.at("created_unix_ms").get<std::int64_t>(), run.at("steps").get<int>(),
                                run.at("ended").get<bool>()});
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
    return job;
}

std::string jobFile(std::string_view id) { return folderOfJob(id) + "/job.json"; }

} // namespace

std::string_view toText(JobState state) { return stateNames[static_cast<std::size_t>(state)]; }

std::string jobsFolder() { return stateFolder() + "/jobs"; }

std::string folderOfJob(std::string_view id) { return jobsFolder() + "/" + std::string(id); }

bool isJobId(std::string_view id)
{
    return !id.empty() && id.size() <= longestId && id.front() != '-' && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

std::string newJobId(std::string_view host)
{
    std::string name;
    for (const char c : lowered(host.substr(0, 32))) name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    if (name.empty() || name.front() == '-') name = "here" + name;
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    ::localtime_r(&now, &local);
    std::random_device random;
    return fmt::format("{}-{:04}{:02}{:02}-{:02}{:02}-{:04x}", name, local.tm_year + 1900, local.tm_mon + 1,
                       local.tm_mday, local.tm_hour, local.tm_min, random() & 0xffff);
}

std::vector<HostJob> readJobs(std::vector<std::string>* damaged)
{
    std::vector<HostJob> jobs;
    for (const std::string& id : namesIn(jobsFolder())) {
        if (!isJobId(id)) continue;
        const auto text = readSmallFile(jobFile(id));
        const Value value = text ? readForeignJson<Value>(*text) : Value(Value::value_t::discarded);
        auto job = value.is_object() ? jobOf(value) : std::nullopt;
        if (job && job->id == id)
            jobs.push_back(std::move(*job));
        else if (damaged)
            damaged->push_back(fs::path(jobsFolder()) / id);
    }
    std::sort(jobs.begin(), jobs.end(), [](const HostJob& a, const HostJob& b) {
        return a.createdUnixMs != b.createdUnixMs ? a.createdUnixMs > b.createdUnixMs : a.id < b.id;
    });
    return jobs;
}

Result<HostJob> findJob(std::string_view id)
{
    std::vector<HostJob> jobs = readJobs();
    if (jobs.empty())
        return fail(ErrorCode::Usage, "there are no jobs", "start one with: stagewright record --host NAME");
    if (id.empty() || id == "latest") return std::move(jobs.front());
    std::vector<std::string> newest;
    const HostJob* found = nullptr;
    int matches = 0;
    for (const HostJob& job : jobs) {
        if (job.id == id) return job;
        if (job.id.starts_with(id)) {
            found = &job;
            ++matches;
        }
        if (newest.size() < listedJobs) newest.push_back(job.id);
    }
    if (matches == 1) return *found;
    return fail(
        ErrorCode::Usage,
        fmt::format("{} job '{}'", matches == 0 ? "there is no" : "there is more than one", plainText(id, longestId)),
        fmt::format("the newest are {}", listed(newest)));
}

bool namesFolder(std::string_view place)
{
    std::error_code ignored;
    return place.find('/') != std::string_view::npos ||
           (!place.empty() && fs::exists(fs::path(place) / "job.sh", ignored));
}

Result<HostJob> jobOfFolder(std::string_view place, const std::string& file)
{
    HostJob job;
    const std::size_t colon = place.find(':');
    if (colon != std::string_view::npos && colon < place.find('/')) {
        job.host = place.substr(0, colon);
        place.remove_prefix(colon + 1);
    }
    while (place.size() > 1 && place.ends_with('/')) place.remove_suffix(1);
    fs::path folder(place);
    std::error_code problem;
    if (job.host.empty()) {
        folder = fs::absolute(folder, problem).lexically_normal();
        if (!fs::is_directory(folder, problem))
            return fail(ErrorCode::Unreadable, fmt::format("{}: there is no such folder", plainText(place, 300)),
                        "name the folder that 'stagewright script' wrote; on a host HOST:/FOLDER");
    }
    job.id = folder.filename().string();
    job.scratch = folder.parent_path().string();
    if (!isJobId(job.id) || !folder.is_absolute())
        return fail(ErrorCode::Usage, fmt::format("'{}' can't be a job's folder", plainText(place, 300)),
                    "give its whole path; its name may have a to z, digits and dashes");
    for (const HostJob& one : readJobs()) {
        if (one.id != job.id) continue;
        if (one.host == job.host && one.scratch == job.scratch) return one;
        return fail(ErrorCode::Usage, fmt::format("another job is called {}", job.id),
                    fmt::format("rename the folder, or forget that job: stagewright hosts forget --here {}", job.id));
    }
    job.verb = "record";
    job.file = fs::absolute(file.empty() ? job.id + ".stagewright" : file, problem).lexically_normal().string();
    job.createdUnixMs =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    return job;
}

std::int64_t bytesHere(const HostJob& job) { return folderBytes(folderOfJob(job.id)); }

Result<void> keepJob(const HostJob& job)
{
    return writePrivateFile(jobFile(job.id), valueOf(job).dump(2, ' ', false, Value::error_handler_t::replace) + "\n");
}

Result<void> forgetJob(std::string_view id)
{
    if (!isJobId(id)) return fail(ErrorCode::Usage, "not the id of a job");
    std::error_code problem;
    fs::remove_all(folderOfJob(id), problem);
    if (problem)
        return fail(ErrorCode::Unreadable, fmt::format("folder {}: {}", folderOfJob(id), problem.message()),
                    "check its permissions");
    return {};
}

} // namespace stagewright
