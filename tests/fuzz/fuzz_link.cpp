// Links of any bytes: read or refused with a reason; what is read is read again of its own text.
#include <cstdint>
#include <string>

#include "require.h"
#include "traces/run/run_link.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto link = parseRunLink(std::string(reinterpret_cast<const char*>(data), size));
    if (!link) {
        require(!link.error().message.empty());
        return 0;
    }
    const auto again = parseRunLink(toText(*link));
    require(again.has_value() && toText(*again) == toText(*link));
    return 0;
}
