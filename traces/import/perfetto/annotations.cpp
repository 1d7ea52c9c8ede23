#include "traces/import/perfetto/annotations.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_message.hpp>

#include "traces/export/chrome_json.h"
#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace {

namespace pf = perfetto;

constexpr int mostDepth = 16; // of lists and objects in each other

bool isListInText(std::string_view name, std::string_view text)
{
    return (name == "Input Dims" || name == "Input dims" || name == "Concrete Inputs" || name == "grid" ||
            name == "block") &&
           text.starts_with('[') && nlohmann::json::accept(text);
}

// The value, and the name where it has one; "": it has none.
std::string valueOf(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts, int depth,
                    std::string_view& name)
{
    protozero::pbf_message<pf::Annotation> message(annotation.data(), annotation.size());
    std::string value, entries;
    bool list = false;
    const auto textOf = [](std::optional<std::uint32_t> id, const NameTable& table) {
        return id ? std::string_view(table[*id]) : std::string_view();
    };
    std::string_view text;
    bool isText = false;
    while (message.next()) {
        const bool number = isNumber(message), bytes = isBytes(message);
        switch (message.tag()) {
        case pf::Annotation::nameIid:
            if (number) {
                name = textOf(sequence.noteName(message.get_uint64()), texts);
                continue;
            }
            break;
        case pf::Annotation::name:
            if (bytes) {
                const auto view = message.get_view();
                name = {view.data(), view.size()};
                continue;
            }
            break;
        case pf::Annotation::boolean:
            if (number) {
                value = message.get_bool() ? "true" : "false";
                continue;
            }
            break;
        case pf::Annotation::unsignedInt:
        case pf::Annotation::pointer:
            if (number) {
                value = std::to_string(message.get_uint64());
                continue;
            }
            break;
        case pf::Annotation::signedInt:
            if (number) {
                value = std::to_string(message.get_int64());
                continue;
            }
            break;
        case pf::Annotation::number:
            if (isDouble(message)) {
                const double one = message.get_double();
                value = std::isfinite(one) ? fmt::format("{}", one) : "null";
                continue;
            }
            break;
        case pf::Annotation::textIid:
            if (number) {
                text = textOf(sequence.noteText(message.get_uint64()), texts);
                isText = true;
                continue;
            }
            break;
        case pf::Annotation::text:
            if (bytes) {
                const auto view = message.get_view();
                text = {view.data(), view.size()};
                isText = true;
                continue;
            }
            break;
        case pf::Annotation::legacyJson:
            if (bytes) {
                const auto view = message.get_view();
                value = nlohmann::json::accept(std::string_view(view.data(), view.size()))
                            ? std::string(view.data(), view.size())
                            : "null";
                continue;
            }
            break;
        case pf::Annotation::entries:
        case pf::Annotation::values:
            if (bytes && depth < mostDepth) {
                list = message.tag() == pf::Annotation::values;
                const auto view = message.get_view();
                std::string_view inner;
                const std::string one = valueOf({view.data(), view.size()}, sequence, texts, depth + 1, inner);
                if (!entries.empty()) entries += ',';
                entries += list ? one : fmt::format("{}:{}", jsonText(inner), one);
                continue;
            }
            break;
        default: break;
        }
        message.skip();
    }
    if (isText) return isListInText(name, text) ? std::string(text) : jsonText(text);
    if (!entries.empty()) return list ? "[" + entries + "]" : "{" + entries + "}";
    return value.empty() ? "null" : value;
}

} // namespace

void addMember(std::string_view name, std::string_view text, std::string& json)
{
    json += fmt::format("{}{}:{}", json.empty() ? "" : ",", jsonText(name), text);
}

void addAnnotation(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts,
                   std::string& json)
{
    std::string_view name;
    const std::string value = valueOf(annotation, sequence, texts, 0, name);
    if (!name.empty()) addMember(name, value, json);
}

} // namespace stagewright
