#include "app/cli/usage.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "app/cli/text/figures.h"

namespace stagewright {

namespace {

std::size_t editDistance(const std::string& a, const std::string& b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

const CLI::App& chosen(const CLI::App& app)
{
    const auto subcommands = app.get_subcommands();
    return subcommands.empty() ? app : *subcommands.front();
}

std::string helpHint(const CLI::App& app)
{
    const CLI::App& sub = chosen(app);
    if (&sub == &app) return "see 'stagewright --help'";
    return fmt::format("see 'stagewright {} --help'", sub.get_name());
}

std::vector<std::string> optionNames(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
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
        for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(verb->get_name());
        const std::string near = nearestName(extra, verbs);
        error.message = fmt::format("there is no verb '{}'", extra);
        error.remedy = near.empty() ? fmt::format("verbs are {}", listText(verbs)) : fmt::format("did you mean '{}'?", near);
        return error;
    }
    if (extra.starts_with("-")) {
        const std::string name = extra.substr(0, extra.find('='));
        const std::string near = nearestName(name, optionNames(sub));
        error.message = fmt::format("'{}' has no option {}", sub.get_name(), name);
        if (!near.empty()) error.remedy = fmt::format("did you mean {}? {}", near, helpHint(app));
        return error;
    }
    error.message = fmt::format("'{}' does not take the argument '{}'", sub.get_name(), extra);
    return error;
}

std::string lowerFirst(std::string text)
{
    if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a') text[0] = static_cast<char>(text[0] - 'A' + 'a');
    while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
    return text;
}

} // namespace

std::string nearestName(const std::string& text, const std::vector<std::string>& names)
{
    std::string best;
    std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
    for (const std::string& name : names) {
        const std::size_t distance = editDistance(text, name);
        if (distance < least) {
            least = distance;
            best = name;
        } else if (best.empty() && text.size() >= 3 && name.starts_with(text)) {
            best = name;
        }
    }
    return best;
}

Error usageError(const CLI::App& app, const CLI::ParseError& error)
{
    if (dynamic_cast<const CLI::ExtrasError*>(&error)) return unexpectedArgument(app);
    if (app.get_subcommands().empty()) {
        if (!app.remaining().empty()) return unexpectedArgument(app);
        if (dynamic_cast<const CLI::RequiredError*>(&error))
            return {ErrorCode::Usage, "a verb is needed", "see 'stagewright --help'"};
    }
    std::string message = lowerFirst(error.what());
    if (dynamic_cast<const CLI::RequiredError*>(&error))
        message = fmt::format("'{}': {}", chosen(app).get_name(), message);
    return {ErrorCode::Usage, message, helpHint(app)};
}

CLI::Validator wholeNumber(long long least, long long most)
{
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            long long value = 0;
            const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return {};
            return fmt::format("takes a whole number from {} to {}, not '{}'", least, most, text);
        },
        "");
}

CLI::Validator realNumber(double least, double most)
{
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            double value = 0;
            const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return {};
            return fmt::format("takes a number from {} to {}, not '{}'", least, most, text);
        },
        "");
}

CLI::Validator oneOf(std::vector<std::string> names)
{
    return CLI::Validator(
        [names = std::move(names)](std::string& text) -> std::string {
            if (std::find(names.begin(), names.end(), text) != names.end()) return {};
            const std::string near = nearestName(text, names);
            return fmt::format("takes one of {}, not '{}'{}", listText(names), text,
                               near.empty() ? std::string() : fmt::format("; did you mean {}?", near));
        },
        "");
}

} // namespace stagewright
