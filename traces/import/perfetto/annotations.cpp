#include "traces/import/perfetto/annotations.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

void appendText(std::string_view text, std::string& to)
{
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
    if (plain)
        to.append("\"").append(text).append("\"");
    else
        to += jsonText(text);
}
template <typename Number>
void appendNumber(Number value, std::string& to)
{
    fmt::format_to(std::back_inserter(to), "{}", value);
}

// The annotation's name; "": it has none.
std::string_view nameOfAnnotation(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts)
{
    Fields<pf::Annotation> message(annotation.data(), annotation.size());
    std::string_view name;
    while (message.next())
        if (message.tag() == pf::Annotation::nameIid && message.isNumber()) {
            if (const auto id = sequence.noteName(message.number())) name = texts[*id];
        } else if (message.tag() == pf::Annotation::name && message.isBytes()) {
            name = message.bytes();
        }
    return name;
}

// Its value, the last one where it has several; lists and objects take all of theirs.
void appendValue(std::string_view annotation, std::string_view name, const PerfettoSequence& sequence,
                 const NameTable& texts, int depth, std::string& to)
{
    Fields<pf::Annotation> message(annotation.data(), annotation.size());
    const std::size_t begin = to.size();
    char close = 0; // of a list or an object
    const auto restart = [&] { to.resize(begin); };
    const auto text = [&](std::string_view value) {
        restart();
        isListInText(name, value) ? void(to.append(value)) : appendText(value, to);
    };
    while (message.next()) {
        const bool number = message.isNumber(), bytes = message.isBytes();
        const pf::Annotation tag = message.tag();
        if (tag == pf::Annotation::boolean && number) {
            restart();
            to += (message.number() != 0) ? "true" : "false";
        } else if ((tag == pf::Annotation::unsignedInt || tag == pf::Annotation::pointer) && number) {
            restart();
            appendNumber(message.number(), to);
        } else if (tag == pf::Annotation::signedInt && number) {
            restart();
            appendNumber(message.whole(), to);
        } else if (tag == pf::Annotation::number && message.isDouble()) {
            restart();
            const double value = message.real();
            std::isfinite(value) ? appendNumber(value, to) : void(to += "null");
        } else if (tag == pf::Annotation::textIid && number) {
            const auto id = sequence.noteText(message.number());
            text(id ? std::string_view(texts[*id]) : std::string_view());
        } else if (tag == pf::Annotation::text && bytes) {
            text(message.bytes());
        } else if (tag == pf::Annotation::legacyJson && bytes) {
            restart();
            const std::string_view json = message.bytes();
            to += nlohmann::json::accept(json) ? json : std::string_view("null");
        } else if ((tag == pf::Annotation::entries || tag == pf::Annotation::values) && bytes && depth < mostDepth) {
            const bool list = tag == pf::Annotation::values;
            if (close != (list ? ']' : '}')) {
                restart();
                to += list ? '[' : '{';
                close = list ? ']' : '}';
            } else {
                to += ',';
            }
            const std::string_view inner = message.bytes();
            const std::string_view innerName = list ? std::string_view() : nameOfAnnotation(inner, sequence, texts);
            if (!list) {
                appendText(innerName, to);
                to += ':';
            }
            appendValue(inner, innerName, sequence, texts, depth + 1, to);
            continue;
        } else
            continue;
        close = 0;
    }
    if (close != 0)
        to += close;
    else if (to.size() == begin)
        to += "null";
}

} // namespace

WholeNote wholeNote(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts)
{
    Fields<pf::Annotation> message(annotation.data(), annotation.size());
    WholeNote note;
    while (message.next()) switch (message.tag()) {
        case pf::Annotation::nameIid:
            if (!message.isNumber()) return {};
            if (const auto id = sequence.noteName(message.number())) note.name = texts[*id];
            break;
        case pf::Annotation::name:
            if (!message.isBytes()) return {};
            note.name = message.bytes();
            break;
        case pf::Annotation::signedInt:
        case pf::Annotation::unsignedInt:
            if (message.isNumber()) note.value = message.whole();
            break;
        default: note.value.reset();
        }
    return note;
}

void addMember(std::string_view name, std::string_view value, std::string& json)
{
    if (!json.empty()) json += ',';
    appendText(name, json);
    json.append(":").append(value);
}

void addAnnotation(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts,
                   std::string& json)
{
    const std::string_view name = nameOfAnnotation(annotation, sequence, texts);
    if (name.empty()) return;
    if (!json.empty()) json += ',';
    appendText(name, json);
    json += ':';
    appendValue(annotation, name, sequence, texts, 0, json);
}

} // namespace stagewright
