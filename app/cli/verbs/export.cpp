#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/version/version.h"
#include "schedules/base/text.h"
#include "traces/format/format_registry.h"

namespace stagewright {

namespace {

struct ExportChoice {
    std::string file;
    std::string run;
    std::string format;
    std::string output;
    std::string against; // another run: the report compares
    int step = 0;        // from 1; 0: the one with the median time
    TextPairs ofFormats; // by FormatOption::name, as given; of a flag the value is empty
    bool verbose = false;
};

bool canExport(const FormatInfo& format) { return format.write != nullptr || format.drawn; }

std::vector<std::string> formatNames(bool (*which)(const FormatInfo&) = canExport)
{
    std::vector<std::string> names;
    for (const FormatInfo* format : allFormats())
        if (canExport(*format) && which(*format)) names.emplace_back(format->name);
    return names;
}

bool hasOption(const FormatInfo& format, std::string_view name)
{
    return std::any_of(format.options.begin(), format.options.end(),
                       [&](const FormatOption& option) { return option.name == name; });
}

// The formats that an option is of: "csv", "pictures".
std::string owners(std::string_view option)
{
    std::vector<std::string> names;
    bool drawn = false;
    for (const FormatInfo* format : allFormats())
        if (hasOption(*format, option)) {
            if (!format->drawn || !drawn) names.emplace_back(format->drawn ? "pictures" : format->name);
            drawn = drawn || format->drawn;
        }
    return listed(names);
}

// The requested format and that of the file's suffix must agree. A suffix that belongs to no format says nothing.
Result<const FormatInfo*> formatOf(const std::string& asked, const std::string& output)
{
    const FormatInfo* said = formatOfSuffix(output);
    if (asked.empty()) {
        if (said == nullptr) {
            std::string known;
            for (const FormatInfo* format : allFormats())
                if (canExport(*format) && !format->folder && formatOfSuffix(format->suffixes.front()) == format)
                    known += fmt::format("{}{}", known.empty() ? "" : ", ", format->suffixes.front());
            return fail(ErrorCode::Usage, fmt::format("file {}: the name has no known suffix", output),
                        "give --format, or one of the suffixes " + known);
        }
        return said;
    }
    const FormatInfo* wanted = findFormat(asked);
    std::string suffix = std::filesystem::path(output).extension().string();
    std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (said != nullptr && !wanted->folder &&
        std::find(wanted->suffixes.begin(), wanted->suffixes.end(), suffix) == wanted->suffixes.end())
        return fail(ErrorCode::Usage,
                    fmt::format("file {}: the format is {}, but the suffix is {}", output, asked, suffix.substr(1)),
                    fmt::format("name it {}, or omit --format", wanted->suffixes.front()));
    return wanted;
}

// The window's program draws pictures; it needs no display.
Result<Json> draw(const FormatInfo& format, const StoredRun& stored, const ExportChoice& options)
{
    std::string program = siblingProgram("stagewright-ui");
    if (program.empty())
        return fail(ErrorCode::Unavailable,
                    fmt::format("stagewright-ui draws {} files, and it is not next to this program", format.name),
                    "build it with Qt 6 installed (./bootstrap.sh build), or export chrome or csv");
    const std::filesystem::path folder = std::filesystem::path(options.output).parent_path();
    if (!folder.empty() && !isFolder(folder.string()))
        return fail(ErrorCode::Unreadable,
                    fmt::format("file {}: can't be created (there is no folder {})", options.output, folder.string()),
                    "create the folder, or choose another place");
    std::vector<std::string> words{program, stored.file, "--export", std::string(format.name), "-o", options.output};
    if (options.against.empty())
        words.insert(words.end(), {"--run", std::to_string(stored.run.info.id)});
    else
        words.insert(words.end(), {"--compare", options.against, std::to_string(stored.run.info.id)});
    if (options.step > 0) words.insert(words.end(), {"--step", std::to_string(options.step)});
    for (const auto& [name, value] : options.ofFormats) {
        words.push_back("--" + name);
        if (!value.empty()) words.push_back(value);
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t own = ::getpid();
    const pid_t child = fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM); // it ends with this program
        if (::getppid() != own) ::_exit(ExitInterrupted);
        setenv("QT_QPA_PLATFORM", "offscreen", 1);
        setenv("QT_LOGGING_RULES", "*.warning=false", 0); // Qt's warnings about the missing display
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return fail(ErrorCode::Failed, fmt::format("{} can't be started: {}", program, std::strerror(errno)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == ExitUsage)
        return fail(ErrorCode::Usage, fmt::format("{} was not drawn", options.output), "see the line above");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(ErrorCode::Failed,
                    fmt::format("{} ended with {} {}", program, WIFEXITED(status) ? "exit code" : "signal",
                                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    return Json::object();
}

// Another run by number or name of the same file, or FILE#RUN.
Result<StoredRun> otherRun(const StoredRun& stored, const std::string& against, const Progress& progress,
                           Session& session)
{
    auto other = readRunForReport(against.find('#') == std::string::npos ? RunReference{stored.file, against}
                                                                         : parseRunReference(against),
                                  -1, progress);
    if (other) warnOfDamage(*other, session);
    return other;
}

Result<Json> write(const FormatInfo& format, const StoredRun& stored, const ExportChoice& options, Session& session)
{
    const auto named = [](const StoredRun& run) {
        return fmt::format("{}, run {}", std::filesystem::path(run.file).filename().string(), run.run.info.id);
    };
    ExportRequest request;
    request.run = &stored.run;
    request.path = options.output;
    request.step = options.step - 1;
    request.program = "Stagewright " + versionText();
    request.source = named(stored);
    request.options = options.ofFormats;
    request.progress = session.reporter("spans");
    std::optional<StoredRun> other;
    if (!options.against.empty()) {
        STAGEWRIGHT_TRY(other, otherRun(stored, options.against, request.progress, session));
        request.against = &other->run;
        request.againstSource = named(*other);
    }
    STAGEWRIGHT_TRY(const auto written, format.write(request));
    if (options.verbose) session.note(written.sentence);
    Json counts = Json::object();
    for (const auto& [key, count] : written.counts) counts[key] = count;
    return counts;
}

Result<int> runExport(const ExportChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(const auto chosen, formatOf(options.format, options.output));
    const FormatInfo& format = *chosen;
    for (const auto& [name, value] : options.ofFormats) {
        const auto option = std::find_if(format.options.begin(), format.options.end(),
                                         [&name = name](const FormatOption& one) { return one.name == name; });
        if (option == format.options.end())
            return fail(ErrorCode::Usage,
                        fmt::format("--{} is for {}, but the format is {}", name, owners(name), format.name),
                        "omit it, or use another format");
        if (option->check != nullptr)
            if (auto right = option->check(value); !right)
                return tl::unexpected(std::move(right.error()).with("--" + name));
    }
    if (!options.against.empty() && !format.compares)
        return fail(ErrorCode::Usage, fmt::format("--against: {} holds only one run", format.name),
                    "use " + listed(formatNames([](const FormatInfo& one) { return one.compares; })));
    if (options.step > 0 && !format.oneStep)
        return fail(ErrorCode::Usage, fmt::format("--step: format {} is not of a single step", format.name),
                    "omit it, or use " + listed(formatNames([](const FormatInfo& one) { return one.oneStep; })));
    if (options.verbose && format.drawn) session.note("--verbose is not used: a picture has no spans to count");
    if (format.drawn && options.against.find('#') != std::string::npos)
        return fail(ErrorCode::Usage, "--against: pictures compare two runs of one file",
                    "merge them with runs --merge, or use html");
    RunReference reference = parseRunReference(options.file);
    if (!options.run.empty()) reference.run = options.run;
    STAGEWRIGHT_TRY(auto stored,
                    format.oneStep ? readRunForReport(reference, std::max(-1, options.step - 1)) : readRun(reference));
    warnOfDamage(stored, session);
    const Result<Json> counts = format.drawn ? draw(format, stored, options) : write(format, stored, options, session);
    if (!counts) return tl::unexpected(counts.error());
    if (session.json)
        session.answer({{"file", stored.file},
                        {"run", stored.run.info.id},
                        {"format", std::string(format.name)},
                        {"output", options.output},
                        {"counts", counts->empty() ? Json(nullptr) : *counts}});
    session.note(
        fmt::format("wrote {} ({}#{} {})", options.output, stored.file, stored.run.info.id, stored.run.info.name));
    return ExitDone;
}

// Each once, in the order of the formats; an option of several formats names all of them.
void addFormatOptions(OptionSet& verb, const std::shared_ptr<ExportChoice>& options)
{
    std::vector<std::string_view> known;
    for (const FormatInfo* format : allFormats())
        for (const FormatOption& option : format->options) {
            if (std::find(known.begin(), known.end(), option.name) != known.end()) continue;
            known.push_back(option.name);
            std::string help = owners(option.name) + ": " + std::string(option.help);
            help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
            const std::string word = "--" + std::string(option.name);
            const auto keep = [options, name = std::string(option.name)](const std::string& value) {
                options->ofFormats.emplace_back(name, value);
            };
            if (option.value.empty())
                verb.flag(word, keep, help);
            else
                verb.value(word, keep, help).form(std::string(option.value));
        }
}

std::string formatsHelp()
{
    std::string text;
    for (const FormatInfo* format : allFormats())
        if (canExport(*format)) text += fmt::format("{}: {}\n", format->name, format->writes);
    return text + "[from the suffix of OUT]";
}

} // namespace

Command command_export()
{
    return {
        "export", "Write a run for other tools",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<ExportChoice>();
            verb.value("FILE", &options->file, "A run file, or FILE#RUN").required();
            verb.value("RUN", &options->run, "A run, by number or name [the newest]");
            verb.value("--format", &options->format, formatsHelp()).form("FORMAT").check(oneOf(formatNames()));
            verb.value("--against", &options->against, "html, pictures: compare with another run (A)").form("RUN");
            verb.value("--step", &options->step, "html, pictures: a step, from 1 [the one with the median time]")
                .form("N")
                .check(wholeNumber(1, 1'000'000'000));
            addFormatOptions(verb, options);
            verb.value("-o,--output", &options->output, "The file to write, or the folder")
                .form("OUT")
                .required()
                .replaces();
            verb.flag("-v,--verbose", options->verbose, "Print how many spans, flows and counter samples were written");
            verb.notes("Example: stagewright export demo.stagewright zb-h1 --format chrome -o zb-h1.json --verbose");
            return [options](Session& session) { return runExport(*options, session); };
        },
        true, true};
}

} // namespace stagewright
