#include "traces/format/format_registry.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "traces/foreign/archive.h"

namespace stagewright {

namespace formats {
#define STAGEWRIGHT_FORMAT(name, folder) extern const FormatInfo name;
#include "traces/formats.def"
#undef STAGEWRIGHT_FORMAT
} // namespace formats

namespace {

#define STAGEWRIGHT_FORMAT(name, folder) &formats::name,
constexpr auto all = std::to_array<const FormatInfo*>({
#include "traces/formats.def"
});
#undef STAGEWRIGHT_FORMAT

bool endsWith(std::string_view path, std::string_view suffix)
{
    return path.size() >= suffix.size() &&
           std::equal(suffix.rbegin(), suffix.rend(), path.rbegin(), [](char a, char b) {
               return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
           });
}

bool hasSuffixOf(const FormatInfo& info, std::string_view path)
{
    return std::any_of(info.suffixes.begin(), info.suffixes.end(),
                       [&](std::string_view suffix) { return endsWith(path, suffix); });
}

} // namespace

std::span<const FormatInfo* const> allFormats() { return all; }

const FormatInfo* findFormat(std::string_view name)
{
    for (const FormatInfo* info : all)
        if (info->name == name) return info;
    return nullptr;
}

const FormatInfo* formatOfHead(std::string_view head)
{
    for (const FormatInfo* info : all)
        if (info->read != nullptr && info->sniff(head)) return info;
    return nullptr;
}

const FormatInfo* formatOfSuffix(std::string_view path)
{
    const auto found = std::find_if(all.begin(), all.end(), [&](const FormatInfo* info) {
        return (info->write != nullptr || info->drawn) && !info->folder && hasSuffixOf(*info, path);
    });
    return found == all.end() ? nullptr : *found;
}

bool holdsOrder(std::string_view path)
{
    return std::any_of(all.begin(), all.end(), [&](const FormatInfo* info) {
        return info->read != nullptr && info->order && hasSuffixOf(*info, path);
    });
}

bool holdsTrace(std::string_view path)
{
    const auto ends = [path](std::string_view suffix) { return endsWith(path, suffix); };
    return std::any_of(packedSuffixes.begin(), packedSuffixes.end(), ends) ||
           std::any_of(all.begin(), all.end(), [&](const FormatInfo* info) {
               return info->read != nullptr && !info->order && hasSuffixOf(*info, path);
           });
}

std::vector<std::string_view> readSuffixes()
{
    std::vector<std::string_view> suffixes;
    for (const FormatInfo* info : all)
        if (info->read != nullptr) suffixes.insert(suffixes.end(), info->suffixes.begin(), info->suffixes.end());
    suffixes.insert(suffixes.end(), packedSuffixes.begin(), packedSuffixes.end());
    return suffixes;
}

bool holdsHostExports(std::string_view format)
{
    const FormatInfo* info = findFormat(format);
    return info != nullptr && info->hostExports;
}

std::string readableFormats()
{
    std::vector<std::string_view> names;
    for (const FormatInfo* info : all)
        if (info->read != nullptr) names.push_back(info->reads);
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += std::string(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
    return text;
}

const std::string* ExportRequest::option(std::string_view name) const
{
    for (const auto& [key, value] : options)
        if (key == name) return &value;
    return nullptr;
}

} // namespace stagewright
