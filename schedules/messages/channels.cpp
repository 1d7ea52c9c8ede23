#include "schedules/messages/channels.h"

#include "schedules/base/text.h"

namespace stagewright {

std::string limitText(const Channels& channels)
{
    if (channels.oneStream) return "one";
    if (channels.perDirection > 0) return std::to_string(channels.perDirection);
    return channels.apart ? "0" : "shared";
}

bool readLimit(std::string_view text, Channels& channels)
{
    constexpr int most = 1'000'000;
    int number = 0;
    if (text != "shared" && text != "one" && (!readNumber(text, number) || number < 0 || number > most)) return false;
    channels.oneStream = text == "one";
    channels.apart = text != "shared" && text != "one" && number == 0;
    channels.perDirection = number;
    return true;
}

} // namespace stagewright
