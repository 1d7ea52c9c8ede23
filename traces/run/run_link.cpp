#include "traces/run/run_link.h"

#include <charconv>
#include <set>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::string_view plain = "-._~/";

bool isPlain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           plain.find(c) != std::string_view::npos;
}

std::string encoded(std::string_view text)
{
    std::string out;
    for (const char c : text)
        out += isPlain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return out;
}

std::optional<std::string> decoded(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        unsigned byte = 0;
        if (i + 2 >= text.size()) return std::nullopt;
        const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
        if (error != std::errc() || end != text.data() + i + 3 || byte == 0) return std::nullopt;
        out += static_cast<char>(byte);
        i += 2;
    }
    return out;
}

template <typename Number>
bool read(std::string_view text, Number& to)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc() && end == text.data() + text.size();
}

tl::unexpected<Error> wrong(std::string_view link, const std::string& why)
{
    return fail(ErrorCode::Usage, fmt::format("link {}: {}", link, why),
                "write stagewright:FILE#run=2&step=9&op=3B1&range=FROM-TO (in ns); all but the file may be missing");
}

// "" where the part is taken, else what is wrong.
std::string take(RunLink& link, const std::string& key, const std::string& value)
{
    if (value.empty()) return key + " has no value";
    if (key == "run") {
        link.run = value;
    } else if (key == "op") {
        link.op = value;
    } else if (key == "step") {
        if (!read(value, link.step) || link.step < 1) return fmt::format("step '{}' is not a number from 1", value);
    } else if (key == "range") {
        const std::size_t dash = value.find('-', 1);
        Nanos from = 0, to = 0;
        if (dash == std::string::npos || !read(std::string_view(value).substr(0, dash), from) ||
            !read(std::string_view(value).substr(dash + 1), to) || from >= to)
            return fmt::format("range '{}' is not FROM-TO in nanoseconds", value);
        link.range = {from, to};
    } else {
        return fmt::format("'{}' is not known", key);
    }
    return {};
}

} // namespace

std::string toText(const RunLink& link)
{
    std::string parts;
    const auto add = [&](std::string_view key, const std::string& value) {
        if (!value.empty()) parts += fmt::format("{}{}={}", parts.empty() ? '#' : '&', key, encoded(value));
    };
    add("run", link.run);
    if (link.step > 0) add("step", std::to_string(link.step));
    add("op", link.op);
    if (link.range) add("range", fmt::format("{}-{}", link.range->first, link.range->second));
    const bool slashes = link.file.starts_with("//"); // which would be read as those of an address
    return std::string(runLinkScheme) + (slashes ? "//" : "") + encoded(link.file) + parts;
}

Result<RunLink> parseRunLink(std::string_view text)
{
    std::string_view rest = text;
    if (!rest.starts_with(runLinkScheme)) return wrong(text, "it does not start with stagewright:");
    rest.remove_prefix(runLinkScheme.size());
    if (rest.find('\0') != std::string_view::npos) return wrong("", "a character of it is zero"); // as %00
    if (rest.starts_with("///")) rest.remove_prefix(2);
    const std::size_t hash = std::min(rest.find('#'), rest.size());
    const auto file = decoded(rest.substr(0, hash));
    if (!file || file->empty()) return wrong(text, file ? "it names no file" : "a % is not followed by two digits");
    RunLink link;
    link.file = *file;
    rest.remove_prefix(std::min(rest.size(), hash + 1));
    std::set<std::string> seen;
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string key(part.substr(0, equals));
        const auto value = decoded(part.substr(std::min(part.size(), equals + 1)));
        if (!value) return wrong(text, "a % is not followed by two digits");
        if (!seen.insert(key).second) return wrong(text, fmt::format("{} is there twice", key));
        if (const std::string why = take(link, key, *value); !why.empty()) return wrong(text, why);
    }
    return link;
}

} // namespace stagewright
