#include "app/launch/pythons.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/launch/child_process.h"
#include "app/launch/program_path.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds longest{60};

constexpr std::string_view question = R"(import glob, importlib.util, json, platform
found = {"python": platform.python_version()}
try:
    import torch
    found["torch"] = torch.__version__
    found["distributed"] = torch.distributed.is_available()
    found["gloo"] = found["distributed"] and torch.distributed.is_gloo_available()
    found["nccl"] = found["distributed"] and torch.distributed.is_nccl_available()
    found["gpus"] = torch.cuda.device_count()
except ImportError as problem:
    found["problem"] = str(problem)
titan = importlib.util.find_spec("torchtitan")  # what it takes, by its sources: importing it takes long
if titan:
    found["titan"] = []
    for place in titan.submodule_search_locations or []:
        sources = glob.glob(place + "/config*.py") + glob.glob(place + "/config/*.py")
        text = "".join(open(source, errors="replace").read() for source in sources)
        marks = (("functions", '"--module"'), ("toml", "config_file"))
        found["titan"] += [form for form, mark in marks if mark in text]
print("\n" + json.dumps(found))
)";

bool canRun(const fs::path& path)
{
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// A folder of its own that is removed again; "" where none can be made.
struct OwnFolder {
    std::string path;
    explicit OwnFolder(bool here)
    {
        std::error_code error;
        const fs::path in = here ? fs::current_path(error) : fs::temp_directory_path(error);
        std::string name = (in / "stagewright-python-XXXXXX").string();
        if (!error && ::mkdtemp(name.data()) != nullptr) path = name;
    }
    ~OwnFolder()
    {
        std::error_code ignored;
        if (!path.empty()) fs::remove_all(path, ignored);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
};

void judge(PythonFound& found)
{
    if (found.torch.empty()) {
        found.reason = "PyTorch is not installed";
        found.remedy = "install torch in it, or name another with --python FILE";
    } else if (!found.version || *found.version < oldestTorch) {
        found.reason = fmt::format("PyTorch is {}; {} or newer is needed", found.torch, toText(oldestTorch));
        found.remedy = "install a newer torch in it, or name another with --python FILE";
    } else if (!found.gloo && !found.nccl) {
        found.reason = "its PyTorch is built without torch.distributed";
        found.remedy = "install another build of torch, or name another with --python FILE";
    }
}

std::string lastLineOf(const std::string& text)
{
    const std::string_view lines = trimmed(text);
    return std::string(lines.substr(lines.find_last_of('\n') + 1));
}

} // namespace

Result<std::vector<PythonPlace>> pythonPlaces(const std::string& named)
{
    std::vector<PythonPlace> places;
    const std::vector<std::string> folders = programFolders();
    if (!named.empty()) {
        if (named.find('/') != std::string::npos) {
            const fs::path file = fs::absolute(named).lexically_normal();
            if (canRun(file)) return std::vector<PythonPlace>{{file.string(), "--python"}};
        } else {
            for (const std::string& folder : folders)
                if (canRun(fs::path(folder) / named))
                    return std::vector<PythonPlace>{{(fs::path(folder) / named).string(), "--python"}};
        }
        return fail(ErrorCode::Usage, fmt::format("--python {}: it is not a program", named),
                    "give the path of an interpreter, for example ~/venv/bin/python3");
    }
    std::set<std::string> seen;
    const auto add = [&](const fs::path& file, const char* origin) {
        std::error_code error;
        if (canRun(file) && seen.insert(fs::canonical(file, error).string()).second)
            places.push_back({file.string(), origin});
    };
    if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment == '/') {
        // Its python3 is a link to another's, but has modules of its own.
        if (const fs::path file = fs::path(environment) / "bin/python3"; canRun(file))
            places.push_back({file.string(), "VIRTUAL_ENV"});
    }
    for (const std::string& folder : folders) {
        const fs::path file = fs::path(folder) / "python3";
        if (places.empty() || places.front().path != file.string()) add(file, "PATH");
    }
    return places;
}

PythonFound askPython(const PythonPlace& place, const std::stop_token& stop, const std::vector<std::string>& under)
{
    PythonFound found;
    found.path = place.path;
    found.origin = place.origin;
    found.remedy = "name another with --python FILE";
    const OwnFolder folder(!under.empty());
    if (folder.path.empty()) {
        found.reason = "there is no folder for temporary files";
        return found;
    }
    std::ofstream(folder.path + "/ask.py") << question;
    std::vector<std::string> words = under;
    words.insert(words.end(), {place.path, under.empty() ? "ask.py" : fs::absolute(folder.path) / "ask.py"});
    auto child = ChildProcess::start({std::move(words), {{"PYTHONDONTWRITEBYTECODE", "1"}}, folder.path});
    if (!child) {
        found.reason = child.error().message;
        return found;
    }
    std::string text;
    const auto begin = std::chrono::steady_clock::now();
    std::optional<ChildEnd> end;
    while (!end) {
        if (stop.stop_requested() || std::chrono::steady_clock::now() - begin > longest) {
            child->signalGroup(SIGKILL);
            found.reason =
                stop.stop_requested() ? "interrupted" : fmt::format("no answer within {} s", longest.count());
            return found;
        }
        pollfd waiting{child->output(), POLLIN, 0};
        ::poll(&waiting, child->atEnd() ? 0U : 1U, 50);
        end = child->poll();
        text += child->read();
        // its last line counts
        if (constexpr std::size_t most = std::size_t{1} << 20; text.size() > most) text.erase(0, text.size() - most);
    }
    const auto answer = readForeignJson(lastLineOf(text));
    if (!end->good() || !answer.is_object()) {
        found.reason = fmt::format("it {}{}", end->good() ? "gave no answer" : toText(*end),
                                   text.empty() ? "" : ": " + lastLineOf(text));
        return found;
    }
    try {
        found.python = answer.value("python", "");
        found.torch = answer.value("torch", "");
        found.gloo = answer.value("gloo", false);
        found.nccl = answer.value("nccl", false);
        found.gpus = answer.value("gpus", 0);
        if (answer.contains("titan")) {
            found.titan.emplace();
            for (const auto& form : answer["titan"]) found.titan->insert(form.get<std::string>());
        }
    } catch (const nlohmann::json::exception&) {
        found.reason = "its answer can't be read: " + lastLineOf(text);
        return found;
    }
    found.version = parseTorchVersion(found.torch);
    found.reason.clear();
    found.remedy.clear();
    judge(found);
    return found;
}

Result<PythonFound> choosePython(const std::string& named, bool cuda, const std::stop_token& stop,
                                 const std::vector<std::string>& under)
{
    std::vector<PythonPlace> places{{named.empty() ? "python3" : named, "--python"}};
    if (under.empty()) {
        STAGEWRIGHT_TRY(places, pythonPlaces(named));
    }
    if (places.empty())
        return fail(ErrorCode::Unavailable, "there is no python3 on PATH",
                    "install Python with PyTorch, or name one with --python FILE");
    PythonFound found = askPython(places.front(), stop, under);
    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
    if (!found.usable())
        return fail(ErrorCode::Unavailable, fmt::format("{}: {}", found.path, found.reason),
                    found.remedy + "; 'stagewright devices' lists those found");
    if (cuda && (!found.nccl || found.gpus == 0))
        return fail(ErrorCode::Unavailable,
                    fmt::format("{}: its PyTorch {}", found.path, found.nccl ? "finds no GPU" : "has no NCCL"),
                    "use --backend cpu, or another --python FILE");
    return found;
}

} // namespace stagewright
