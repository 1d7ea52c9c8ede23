// Files of rules of any bytes, up to a line that is ---: read or refused with the line; the lines behind it are names
// whose meaning they give.
#include <cstdint>
#include <string_view>

#include "require.h"
#include "schedules/base/text.h"
#include "traces/foreign/label_rules.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    constexpr std::size_t most = 4096; // a pattern of many * takes as long as it is
    const std::string_view text(reinterpret_cast<const char*>(data), size < most ? size : most);
    const std::size_t at = text.find("\n---\n");
    const auto rules = LabelRules::parse(text.substr(0, at));
    if (!rules) {
        require(!rules.error().message.empty());
        return 0;
    }
    const std::string_view names = at == std::string_view::npos ? text : text.substr(at + 5);
    int count = 0;
    for (const std::string_view name : split(names, "\n")) {
        if (++count > 64) break;
        const auto meaning = rules->meaningOf(name.substr(0, 200));
        if (!meaning || meaning->what != LabelMeaning::What::Op) continue;
        require(!meaning->ops.empty() && meaning->ops.size() <= 2);
    }
    return 0;
}
