// What was chosen by measurement, kept between runs of the program, so that nothing is measured twice and repeated
// trainings give the same bits: $XDG_CACHE_HOME/stagewright/products (else ~/.cache), a text file of one choice a line:
// key, tab, value, tab, reason. A key names the machine, its libraries and the shape. Standard library only, as the
// CUDA module is built with it too.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

namespace stagewright {

class KeptChoices {
public:
    KeptChoices()
    {
        const char* cache = std::getenv("XDG_CACHE_HOME");
        const char* home = std::getenv("HOME");
        if (cache != nullptr && *cache == '/')
            m_file = std::filesystem::path(cache) / "stagewright" / "products";
        else if (home != nullptr && *home == '/')
            m_file = std::filesystem::path(home) / ".cache" / "stagewright" / "products";
    }

    // Value and reason.
    std::optional<std::pair<std::string, std::string>> find(const std::string& key) const
    {
        std::optional<std::pair<std::string, std::string>> found;
        each(key, [&](const std::string& rest, std::string value, std::string reason) {
            if (rest.empty() && !found) found.emplace(std::move(value), std::move(reason));
        });
        return found;
    }

    // f(what the key has after the prefix, value, reason) for every line whose key starts with it.
    template <typename Visit>
    void each(const std::string& prefix, Visit&& visit) const
    {
        std::ifstream file(m_file);
        for (std::string line; std::getline(file, line);) {
            const std::size_t value = line.find('\t');
            const std::size_t reason = value == std::string::npos ? value : line.find('\t', value + 1);
            if (!line.starts_with(prefix) || reason == std::string::npos || value < prefix.size()) continue;
            visit(line.substr(prefix.size(), value - prefix.size()), line.substr(value + 1, reason - value - 1),
                  line.substr(reason + 1));
        }
    }

    // Whether the folder is there, or could be made, and can be written.
    bool canKeep() const
    {
        std::error_code error;
        return !m_file.empty() && (std::filesystem::create_directories(m_file.parent_path(), error), !error) &&
               ::access(m_file.parent_path().c_str(), W_OK) == 0;
    }

    // Other keys stay; a program that writes at the same time may lose its line, and measures again.
    void keep(const std::string& key, const std::string& value, const std::string& reason) const
    {
        std::string lines;
        {
            std::ifstream file(m_file);
            for (std::string line; std::getline(file, line);)
                if (!line.starts_with(key + '\t')) lines += line + '\n';
        }
        const std::filesystem::path part = m_file.string() + "." + std::to_string(::getpid());
        std::ofstream file(part);
        file << lines << key << '\t' << value << '\t' << reason << '\n';
        file.close();
        std::error_code error;
        if (file) std::filesystem::rename(part, m_file, error);
        if (!file || error) std::filesystem::remove(part, error); // a full disk: what was kept stays
    }

private:
    std::filesystem::path m_file; // empty: nowhere
};

// Nothing is measured: STAGEWRIGHT_PRODUCTS=table, for those who want the libraries' own choice.
inline bool choicesByTable()
{
    const char* rule = std::getenv("STAGEWRIGHT_PRODUCTS");
    return rule != nullptr && std::string(rule) == "table";
}

} // namespace stagewright
