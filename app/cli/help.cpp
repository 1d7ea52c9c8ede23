#include "app/cli/help.h"

#include <fmt/core.h>

namespace stagewright {

HelpFormatter::HelpFormatter()
{
    column_width(34);
    label("Positionals", "Arguments");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const
{
    std::string text = "Usage: " + name;
    for (const CLI::Option* option : app->get_options([](const CLI::Option* o) { return o->get_positional(); }))
        text += " " + make_option_usage(option);
    if (app->get_require_subcommand_min() > 0) text += " VERB";
    return text + " [options]\n";
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const
{
    if (option->get_type_size() == 0) return {};
    if (option->get_positional()) return {};
    return " " + option->get_type_name();
}

std::string HelpFormatter::make_option_usage(const CLI::Option* option) const
{
    const std::string name = option->get_name(true);
    const bool many = option->get_items_expected_max() > 1;
    const std::string text = many ? name + "…" : name;
    return option->get_required() ? text : "[" + text + "]";
}

std::string HelpFormatter::make_description(const CLI::App* app) const
{
    return app->get_description() + "\n";
}

} // namespace stagewright
