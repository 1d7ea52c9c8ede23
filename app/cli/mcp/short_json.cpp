#include "app/cli/mcp/short_json.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace stagewright {

namespace {

using MessageJson = nlohmann::ordered_json;

// Lists of at most so many items, texts of at most so many bytes.
MessageJson cutTo(const MessageJson& value, std::size_t items, std::size_t bytes)
{
    if (value.is_object()) {
        MessageJson out = MessageJson::object();
        for (const auto& [key, one] : value.items()) out[key] = cutTo(one, items, bytes);
        return out;
    }
    if (value.is_array()) {
        MessageJson out = MessageJson::array();
        for (const MessageJson& one : value) {
            if (out.size() == items) {
                out.push_back(fmt::format("{} more are left out", value.size() - items));
                break;
            }
            out.push_back(cutTo(one, items, bytes));
        }
        return out;
    }
    if (value.is_string() && value.get_ref<const std::string&>().size() > bytes) {
        std::string text = value.get<std::string>().substr(0, bytes);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
        if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
        return text + "…";
    }
    return value;
}

std::string textOfJson(const MessageJson& value)
{
    return value.dump(-1, ' ', false, MessageJson::error_handler_t::replace);
}

} // namespace

std::string shortJson(const nlohmann::ordered_json& value, std::size_t most)
{
    std::string text = textOfJson(value);
    for (std::size_t items = 256, bytes = 16384; text.size() > most && items > 0; items /= 2, bytes /= 2)
        text = textOfJson(cutTo(value, items, std::max<std::size_t>(bytes, 200)));
    return text;
}

} // namespace stagewright
