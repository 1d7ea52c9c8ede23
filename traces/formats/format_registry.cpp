#include "traces/formats/format_registry.h"

#include <array>

namespace stagewright {

namespace formats {
#define STAGEWRIGHT_FORMAT(name) extern const FormatInfo name;
#include "traces/formats/formats.def"
#undef STAGEWRIGHT_FORMAT
} // namespace formats

namespace {

#define STAGEWRIGHT_FORMAT(name) &formats::name,
constexpr auto all = std::to_array<const FormatInfo*>({
#include "traces/formats/formats.def"
});
#undef STAGEWRIGHT_FORMAT

} // namespace

std::span<const FormatInfo* const> allFormats()
{
    return all;
}

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

} // namespace stagewright
