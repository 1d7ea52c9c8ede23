#include "app/launch/shell_words.h"

#include <algorithm>

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
