#include "app/cli/call.h"

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/commands.h"
#include "app/cli/option_set.h"
#include "app/cli/session.h"
#include "app/cli/text/table.h"
#include "app/version/version.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

// How --help looks: usage, what the verb does, options with what they accept, examples.
class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter()
    {
        column_width(34);
        label("Positionals", "Arguments");
    }

    // CLI11 pads by bytes: an ellipsis counts as three.
    std::string make_option(const CLI::Option* option, bool positional) const override
    {
        const std::string name = make_option_name(option, positional) + make_option_opts(option);
        std::ostringstream out;
        CLI::detail::format_help(out, name, make_option_desc(option), column_width_ + name.size() - displayWidth(name));
        return out.str();
    }

    std::string make_usage(const CLI::App* app, std::string name) const override
    {
        std::string text = "Usage: " + name;
        for (const CLI::Option* option : app->get_options([](const CLI::Option* o) { return o->get_positional(); }))
            text += " " + make_option_usage(option);
        if (app->get_require_subcommand_min() > 0) text += " VERB";
        return text + " [options]\n";
    }

    std::string make_option_opts(const CLI::Option* option) const override
    {
        return option->get_type_size() == 0 || option->get_positional() ? "" : " " + option->get_type_name();
    }

    std::string make_option_usage(const CLI::Option* option) const override
    {
        const std::string text = option->get_name(true) + (option->get_items_expected_max() > 1 ? "…" : "");
        return option->get_required() ? text : "[" + text + "]";
    }

    std::string make_description(const CLI::App* app) const override { return app->get_description() + "\n"; }
};

const CLI::App& chosen(const CLI::App& app)
{
    const auto subcommands = app.get_subcommands();
    return subcommands.empty() ? app : *subcommands.front();
}

std::string helpHint(const CLI::App& app)
{
    const CLI::App& sub = chosen(app);
    return &sub == &app ? "see 'stagewright --help'" : fmt::format("see 'stagewright {} --help'", sub.get_name());
}

Error unexpectedArgument(const CLI::App& app)
{
    const CLI::App& sub = chosen(app);
    std::vector<std::string> extras = sub.remaining();
    if (extras.empty()) extras = app.remaining();
    const std::string extra = extras.empty() ? std::string() : extras.front();
    Error error{ErrorCode::Usage, {}, helpHint(app)};
    if (&sub == &app && !extra.starts_with("-")) {
        std::vector<std::string> verbs;
        for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
            verbs.push_back(verb->get_name());
        const std::string near = nearestName(extra, verbs);
        error.message = fmt::format("there is no verb '{}'", extra);
        error.remedy =
            near.empty() ? fmt::format("verbs are {}", listed(verbs)) : fmt::format("did you mean '{}'?", near);
        return error;
    }
    if (extra.starts_with("-")) {
        const std::string name(keyValueOf(extra).key);
        std::vector<std::string> known;
        for (const CLI::Option* option : sub.get_options())
            for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
        const std::string near = nearestName(name, known);
        error.message = fmt::format("'{}' has no option {}", sub.get_name(), name);
        if (!near.empty()) error.remedy = fmt::format("did you mean {}? {}", near, helpHint(app));
        return error;
    }
    error.message = fmt::format("'{}' does not take the argument '{}'", sub.get_name(), extra);
    if (sub.get_option_no_throw("--schedule") != nullptr)
        error.remedy = fmt::format("write -s {} if it is a schedule; {}", extra, helpHint(app));
    return error;
}

std::string lowerFirst(std::string text)
{
    if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a')
        text[0] = static_cast<char>(text[0] - 'A' + 'a');
    while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
    return text;
}

// The error of an option with several long names, by the one that was typed.
std::string asTyped(const CLI::App& app, const std::string& message, int count, char** words)
{
    const std::string name = message.substr(0, message.find(':'));
    const CLI::Option* option = chosen(app).get_option_no_throw(name);
    if (option == nullptr) return message;
    for (const std::string& other : option->get_lnames())
        for (int i = 1; i < count; ++i)
            if (keyValueOf(words[i]).key == "--" + other) return "--" + other + message.substr(name.size());
    return message;
}

Error usageError(const CLI::App& app, const CLI::ParseError& error, int count, char** words)
{
    const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) || (app.get_subcommands().empty() && !app.remaining().empty()))
        return unexpectedArgument(app);
    if (app.get_subcommands().empty() && required)
        return {ErrorCode::Usage, "a verb is needed", "see 'stagewright --help'"};
    const std::string message = asTyped(app, lowerFirst(error.what()), count, words);
    return {ErrorCode::Usage, required ? fmt::format("'{}': {}", chosen(app).get_name(), message) : message,
            helpHint(app)};
}

// Whether the words contain --json, for errors before they are parsed.
bool asksFor(int count, char** words, std::string_view option)
{
    for (int i = 1; i < count; ++i)
        if (words[i] == option) return true;
    return false;
}

// A value as it was typed.
struct CallWord {
    std::string option;
    std::string value;
    bool replaces = false;
};
using CallWords = std::vector<CallWord>;

// Whether what was typed names this file: as it is, as FILE#RUN, FILE:FUNCTION or ID=FILE, by a pattern, or by a folder
// that it is in.
bool names(const std::string& typed, const std::filesystem::path& file)
{
    namespace fs = std::filesystem;
    std::error_code unknown;
    for (const std::string& name : {typed, typed.substr(0, typed.rfind('#')), typed.substr(0, typed.rfind(':')),
                                    typed.substr(typed.find('=') + 1)}) {
        if (name.empty()) continue;
        if (fs::equivalent(name, file, unknown) || (name.find_first_of("*?[") != std::string::npos &&
                                                    ::fnmatch(name.c_str(), file.c_str(), FNM_PATHNAME) == 0))
            return true;
    }
    if (!fs::is_directory(typed, unknown)) return false;
    for (fs::path above = fs::canonical(file, unknown).parent_path(); !above.empty(); above = above.parent_path()) {
        if (fs::equivalent(typed, above, unknown)) return true;
        if (above == above.parent_path()) break;
    }
    return false;
}

// A file that is read is not replaced by the same call. Run files are: runs are added to them, and nothing else
// replaces them.
Result<void> keepsWhatItReads(const CallWords& words)
{
    std::error_code unknown;
    for (const CallWord& output : words) {
        if (!output.replaces || output.value.ends_with(".stagewright") ||
            !std::filesystem::is_regular_file(output.value, unknown))
            continue;
        for (const CallWord& input : words)
            if (!input.replaces && names(input.value, output.value))
                return fail(ErrorCode::Usage,
                            fmt::format("{} {}: it would replace a file that is read ({})", output.option, output.value,
                                        input.option),
                            "choose another name");
    }
    return {};
}

} // namespace

// Hands the options of a verb to the parser, and gives what completes them. `words` gets what was typed.
class CallReader {
public:
    static std::function<Result<void>()> add(CLI::App& app, const OptionSet& set,
                                             const std::shared_ptr<CallWords>& words)
    {
        std::map<const Option*, CLI::Option*> made;
        for (const Option& option : set.m_options) {
            CLI::Option* one = made[&option] = add(app, option);
            if (!option.m_flag)
                one->each([words, name = one->get_name(), replaces = option.m_replaces](const std::string& value) {
                    words->push_back({name, value, replaces});
                });
        }
        for (const auto& [option, one] : made) {
            if (!option->m_excluded.empty()) one->excludes(app.get_option(option->m_excluded));
            if (set.m_watch && !one->get_lnames().empty())
                one->each([given = set.m_watch, name = "--" + one->get_lnames().back()](const std::string& value) {
                    (*given)[name] = value;
                });
            if (set.m_typed && !one->get_lnames().empty())
                one->each([typed = set.m_typed, flag = option->m_flag,
                           name = "--" + one->get_lnames().front()](const std::string& value) {
                    typed->push_back({name, flag ? std::nullopt : std::optional(value)});
                });
        }
        if (!set.m_notes.empty()) app.footer(set.m_notes); // else the one of the program
        return set.m_then;
    }

private:
    static CLI::Option* add(CLI::App& app, const Option& option)
    {
        CLI::Option* one = std::visit([&](const auto& place) { return make(app, option, place); }, option.m_place);
        if (!option.m_form.empty()) one->type_name(option.m_form);
        if (option.m_check)
            one->check(CLI::Validator([check = option.m_check](std::string& text) { return check(text); }, ""));
        if (option.m_required) one->required();
        if (option.m_commas) one->delimiter(',');
        if (option.m_each) one->allow_extra_args(false);
        if (option.m_most > 0) one->expected(option.m_least, option.m_most);
        if (option.m_given != nullptr) one->each([given = option.m_given](const std::string&) { *given = true; });
        return one;
    }
    static CLI::Option* make(CLI::App& app, const Option& option, bool* flag)
    {
        return app.add_flag(option.m_names, *flag, option.m_help);
    }
    static CLI::Option* make(CLI::App& app, const Option& option, const Option::Receiver& receiver)
    {
        if (option.m_flag)
            return app.add_flag_callback(
                option.m_names, [receiver] { receiver({}); }, option.m_help);
        return app.add_option_function<std::string>(option.m_names, receiver, option.m_help);
    }
    template <typename Value>
    static CLI::Option* make(CLI::App& app, const Option& option, Value* value)
    {
        return app.add_option(option.m_names, *value, option.m_help);
    }
};

Result<Call> readCall(int count, char** words, Session& session)
{
    constexpr const char* help = "Print this help and exit";
    CLI::App app(
        "A workbench for pipeline-parallel training: make a schedule, train for real with it, see where time and\n"
        "memory went, change it, compare.");
    app.name("stagewright");
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", "stagewright " + versionText(), "Print the version and exit");
    app.get_help_ptr()->description(help);
    app.require_subcommand(1);
    app.footer(
        "'stagewright VERB --help' explains a verb. Exit codes: 0 done, 1 a check or requirement failed,\n"
        "2 wrong usage, 3 input unreadable, 4 device or program not available, 5 the run failed, 130 interrupted.");

    std::string level = "info";
    std::map<const CLI::App*, Runner> runners;
    std::map<const CLI::App*, std::function<Result<void>()>> completions;
    const auto typed = std::make_shared<CallWords>(); // of the verb that was called
    for (const Command& command : allCommands()) {
        CLI::App* verb = app.add_subcommand(std::string(command.name), std::string(command.summary));
        verb->group("Verbs");
        verb->get_help_ptr()->description(help);
        OptionSet options;
        runners[verb] = command.setUp(options);
        if (command.json) options.flag("--json", session.json, "Print one JSON object instead of text");
        if (command.document)
            options.flag("--markdown", session.markdown, "Print Markdown instead of text").excludes("--json");
        options.value("--log-level", &level, "error, warning, info or debug [info]")
            .form("LEVEL")
            .check(oneOf({"error", "warning", "info", "debug"}));
        if (command.longWork) {
            options.value("--progress", &session.progressMode, "auto (a bar on a terminal), jsonl or none [auto]")
                .form("MODE")
                .check(oneOf({"auto", "jsonl", "none"}));
            options.flag("--stdin-control", session.stdinControl, "Cancel when standard input ends");
        }
        completions[verb] = CallReader::add(*verb, options, typed);
    }
    try {
        app.parse(count, words);
    } catch (const CLI::Success& success) { // help or version
        app.exit(success);
        return Call{};
    } catch (const CLI::ParseError& error) {
        session.json = asksFor(count, words, "--json");
        return tl::unexpected(usageError(app, error, count, words));
    }
    const CLI::App* verb = app.get_subcommands().front();
    session.logLevel = level == "error"     ? LogLevel::Error
                       : level == "warning" ? LogLevel::Warning
                       : level == "debug"   ? LogLevel::Debug
                                            : LogLevel::Info;
    STAGEWRIGHT_CHECK(keepsWhatItReads(*typed));
    if (const auto& complete = completions.at(verb)) STAGEWRIGHT_CHECK(complete());
    return Call{verb->get_name(), runners.at(verb)};
}

} // namespace stagewright
