// How --help looks: usage, what the verb does, options with what they accept, examples.
#pragma once

#include <CLI/CLI.hpp>

namespace stagewright {

class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter();
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_usage(const CLI::Option* option) const override;
    std::string make_description(const CLI::App* app) const override;
};

} // namespace stagewright
