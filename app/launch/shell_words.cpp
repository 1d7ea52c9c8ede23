#include "app/launch/shell_words.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"

namespace stagewright {

namespace {

bool isControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool isHarmless(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-+./:,@%").find(c) != std::string_view::npos;
}

} // namespace

std::string shellWord(std::string_view text)
{
    const bool option = text.starts_with('-'); // no assignment, whatever it is in front of
    if (!text.empty() &&
        std::all_of(text.begin(), text.end(), [&](char c) { return isHarmless(c) || (option && c == '='); }))
        return std::string(text);
    std::string quoted = "'";
    for (const char c : text)
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    return quoted + "'";
}

std::string shellCommand(const std::vector<std::string>& words)
{
    std::string command;
    for (const std::string& word : words) command += (command.empty() ? "" : " ") + shellWord(word);
    return command;
}

std::optional<std::vector<std::string>> shellSplit(std::string_view text)
{
    std::vector<std::string> words;
    std::optional<std::string> word;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            if (word) words.push_back(*std::exchange(word, std::nullopt));
            continue;
        }
        if (!word) word.emplace();
        if (c == quote)
            quote = 0;
        else if (quote == 0 && (c == '"' || c == '\''))
            quote = c;
        else if (quote != '\'' && c == '\\' && i + 1 < text.size())
            *word += text[++i];
        else
            *word += c;
    }
    if (quote != 0) return std::nullopt;
    if (word) words.push_back(*word);
    return words;
}

std::string shellPath(std::string_view folder)
{
    if (folder == "~") return "\"$HOME\"";
    if (folder.starts_with("~/")) return "\"$HOME\"/" + shellWord(folder.substr(2));
    return shellWord(folder);
}

std::string whyNotSent(std::string_view text)
{
    const auto bad = std::find_if(text.begin(), text.end(), isControl);
    return bad == text.end() ? std::string()
                             : fmt::format("its character {} is a control character (0x{:02x})", bad - text.begin() + 1,
                                           static_cast<unsigned char>(*bad));
}

std::string plainText(std::string_view text, std::size_t most)
{
    return shownText(text.substr(0, most)) + (text.size() > most ? " …" : "");
}

} // namespace stagewright
