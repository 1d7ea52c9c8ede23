#include "traces/import/kineto/kineto_event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <simdjson.h>

#include "schedules/base/time_limits.h"
#include "traces/foreign/json_events.h"
#include "traces/import/kineto/event_repair.h"

namespace stagewright {

namespace {

namespace od = simdjson::ondemand;

static_assert(JsonEvents::padding >= simdjson::SIMDJSON_PADDING);

std::string_view trimmedToken(std::string_view token)
{
    while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
    if (token.size() >= 2 && token.front() == '"' && token.back() == '"') token = token.substr(1, token.size() - 2);
    return token;
}

// Whether a key, behind its opening quote, is `text`. Reads as far as `text` is long: events have padding behind them.
template <std::size_t N>
bool isKey(const char* raw, const char (&text)[N])
{
    static_assert(N <= JsonEvents::padding);
    return std::memcmp(raw, text, N - 1) == 0 && raw[N - 1] == '"';
}

// The text of a value up to the next one. Stray colons and brackets can lead the parser past the end of the text, where
// lengths are less than nothing: such a value is damage.
std::string_view rawToken(od::value value)
{
    const std::string_view token = value.raw_json_token();
    if (token.size() > std::numeric_limits<std::int32_t>::max()) throw simdjson::simdjson_error(simdjson::TAPE_ERROR);
    return token;
}

std::string_view tokenOf(od::value value) { return trimmedToken(rawToken(value)); }

// A string without escapes is read where it lies, others are unescaped into the parser. Empty: not a string, or its
// escapes are broken.
std::optional<std::string_view> stringOf(od::value value)
{
    const std::string_view token = rawToken(value);
    if (token.empty() || token.front() != '"') return std::nullopt;
    if (std::memchr(token.data(), '\\', token.size()) == nullptr) return trimmedToken(token);
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
    return text;
}

std::string_view textOf(od::value value) { return stringOf(value).value_or(std::string_view()); }

void readNumber(od::value value, std::int64_t& to)
{
    if (const auto number = wholeNumberOf(tokenOf(value))) to = *number;
}

// Up to three numbers; others are left out.
void readSizes(od::value value, std::array<std::int64_t, 3>& to)
{
    if (value.type() != od::json_type::array) return;
    std::size_t at = 0;
    for (auto size : value.get_array()) {
        if (at < to.size()) readNumber(size.value(), to[at]);
        ++at;
    }
}

// Arguments by their names, which `is` compares with what the event has. first: the name's first character.
template <typename Is>
std::int64_t* numberNamed(char first, const Is& is, KinetoArgs& args)
{
    switch (first) {
    case 'c':
        if (is("correlation") || is("correlation_id") || is("connection_id")) return &args.correlation;
        return is("count") ? &args.count : nullptr;
    case 'E': return is("External id") ? &args.external : nullptr;
    case 'e': return is("external id") ? &args.external : nullptr;
    case 's':
        if (is("stream") || is("stream id")) return &args.stream;
        if (is("src rank")) return &args.sourceRank;
        if (is("size(Byte)")) return &args.copied;
        return is("step") || is("step_num") ? &args.step : nullptr;
    case 'S':
        if (is("Src Rank")) return &args.sourceRank;
        if (is("Stream Id")) return &args.stream;
        return is("Seq") ? &args.sequence : nullptr;
    case 'D':
        if (is("Dst Rank")) return &args.targetRank;
        if (is("Device Type")) return &args.deviceType;
        return is("Device Id") ? &args.deviceId : nullptr;
    case 'd': return is("dst rank") ? &args.targetRank : nullptr;
    case 'b': return is("bytes") ? &args.copied : nullptr;
    case 'g':
        if (is("graph id")) return &args.graph;
        return is("graph node id") ? &args.graphNode : nullptr;
    case 'I': return is("In msg nelems") ? &args.elementsIn : nullptr;
    case 'O': return is("Out msg nelems") ? &args.elementsOut : nullptr;
    case 'B': return is("Bytes") ? &args.bytes : nullptr;
    case 'T':
        if (is("Total Allocated")) return &args.total;
        return is("Task Id") ? &args.task : nullptr;
    case 't': return is("task id") ? &args.task : nullptr;
    case 'P': return is("Physic Stream Id") ? &args.stream : nullptr;
    default: return nullptr;
    }
}

template <typename Is>
std::string_view* textNamed(char first, const Is& is, KinetoArgs& args)
{
    switch (first) {
    case 'c': return is("category") ? &args.category : nullptr;
    case 'n': return is("name") ? &args.name : nullptr;
    case 'd': return is("dtype") || is("data_type") ? &args.elementType : nullptr;
    case 'T': return is("Task Type") ? &args.taskType : nullptr;
    case 'a': return is("alg_type") ? &args.algorithm : nullptr;
    case 'P':
        if (is("Process Group Name")) return &args.group;
        return is("Process Group Description") ? &args.groupPurpose : nullptr;
    case 'C': return is("Collective name") ? &args.collective : nullptr;
    default: return nullptr;
    }
}

// Those that are neither.
constexpr std::array<std::string_view, 10> otherArgs{
    "notify_id", "duration estimated(us)", "Transport Type", "block", "grid", "Input Dims", "Input dims",
    "Addr",      "Process Group Ranks",    "Concrete Inputs"};

void readOther(const char* key, od::value value, KinetoArgs& args)
{
    switch (*key) {
    case 'n':
        if (isKey(key, "notify_id")) args.ofPlane = true;
        break;
    case 'd':
        if (isKey(key, "duration estimated(us)")) args.ofPlane = true;
        break;
    case 'T':
        if (isKey(key, "Transport Type")) args.ofPlane = true;
        break;
    case 'b':
        if (isKey(key, "block")) readSizes(value, args.block);
        break;
    case 'g':
        if (isKey(key, "grid")) readSizes(value, args.grid);
        break;
    case 'I':
        if ((isKey(key, "Input Dims") || isKey(key, "Input dims")) && value.type() == od::json_type::array)
            args.inputs = value.get_array().value().raw_json().value();
        break;
    case 'A':
        if (isKey(key, "Addr")) {
            const std::string_view token = tokenOf(value);
            (void)std::from_chars(token.data(), token.data() + token.size(), args.address);
        }
        break;
    case 'P':
        if (!isKey(key, "Process Group Ranks")) break;
        if (value.type() == od::json_type::string)
            args.groupRanks = textOf(value);
        else if (value.type() == od::json_type::array)
            args.groupRanks = value.get_array().value().raw_json().value();
        break;
    case 'C':
        if (isKey(key, "Concrete Inputs") && value.type() == od::json_type::array) {
            std::size_t at = 0;
            for (auto input : value.get_array()) {
                if (at == 2) readNumber(input.value(), args.peer);
                if (at == 3) readNumber(input.value(), args.tag);
                ++at;
            }
        }
        break;
    default: break;
    }
}

void readArg(const char* key, od::value value, KinetoArgs& args)
{
    const auto is = [key](const auto& name) { return isKey(key, name); };
    if (std::int64_t* const number = numberNamed(*key, is, args))
        readNumber(value, *number);
    else if (std::string_view* const text = textNamed(*key, is, args))
        *text = textOf(value);
    else
        readOther(key, value, args);
}

bool readArgs(od::object args, KinetoArgs& to)
{
    for (auto inner : args) {
        od::field arg;
        if (std::move(inner).get(arg) != simdjson::SUCCESS) return false;
        readArg(arg.key().raw(), arg.value(), to);
    }
    return true;
}

// What events need besides the parser of the batch.
struct Scratch {
    od::parser args;  // of those that come before what says how they are read
    std::string path; // a name with its backslashes
};

bool readName(od::value value, KinetoEvent& event, Scratch& scratch)
{
    const std::string_view token = rawToken(value);
    const auto text = stringOf(value);
    if (!text && token.starts_with('"')) return false;
    event.name = text ? *text : trimmedToken(token);
    if (!text || token.find('\\') == std::string_view::npos || !isPathOfEscapes(trimmedToken(token))) return true;
    scratch.path = trimmedToken(token);
    event.name = scratch.path;
    event.repaired = true;
    return true;
}

bool readObject(od::object object, KinetoEvent& event, KinetoEventParser::WantArgs wantArgs, Scratch& scratch)
{
    event = {};
    std::string_view before; // arguments that came before the phase
    for (auto result : object) {
        od::field field;
        if (std::move(result).get(field) != simdjson::SUCCESS) return false;
        const char* key = field.key().raw();
        od::value value = field.value();
        switch (*key) {
        case 'p':
            if (isKey(key, "ph")) {
                const std::string_view phase = tokenOf(value);
                event.phase = phase.size() == 1 ? phase.front() : '?';
            } else if (isKey(key, "pid")) {
                event.pid = tokenOf(value);
            }
            break;
        case 'n':
            if (isKey(key, "name") && !readName(value, event, scratch)) return false;
            break;
        case 'c':
            if (isKey(key, "cat")) event.category = textOf(value);
            break;
        case 't':
            if (isKey(key, "tid")) {
                event.tid = tokenOf(value);
            } else if (isKey(key, "ts")) {
                event.time = nanosOfMicroseconds(rawToken(value));
                if (!event.time) return false;
            }
            break;
        case 'd':
            if (isKey(key, "dur")) {
                event.duration = nanosOfMicroseconds(rawToken(value));
                if (!event.duration) return false;
            }
            break;
        case 'i':
            if (isKey(key, "id")) event.id = tokenOf(value);
            break;
        case 'a':
            if (!isKey(key, "args") || (!event.category.empty() && !wantArgs(event.category, event.name)) ||
                value.type() != od::json_type::object)
                break;
            if (event.phase == 0)
                before = value.get_object().value().raw_json();
            else if (event.phase == 'C')
                event.args.object = value.get_object().value().raw_json();
            else if (!readArgs(value.get_object(), event.args))
                return false;
            break;
        default: break;
        }
    }
    if (before.empty()) return true;
    if (event.phase == 'C') {
        event.args.object = before;
        return true;
    }
    if (event.phase == 0 || (!event.category.empty() && !wantArgs(event.category, event.name))) return true;
    od::document args = scratch.args.iterate(simdjson::padded_string_view(before, before.size() + JsonEvents::padding));
    return readArgs(args.get_object(), event.args);
}

} // namespace

std::int64_t* numberArg(std::string_view name, KinetoArgs& args)
{
    return name.empty() ? nullptr
                        : numberNamed(
                              name.front(), [name](std::string_view one) { return one == name; }, args);
}

std::string_view* textArg(std::string_view name, KinetoArgs& args)
{
    return name.empty() ? nullptr
                        : textNamed(
                              name.front(), [name](std::string_view one) { return one == name; }, args);
}

bool KinetoEventParser::reads(std::string_view name)
{
    static KinetoArgs none; // nothing is written to it
    if (numberArg(name, none) != nullptr || textArg(name, none) != nullptr) return true;
    const auto& others = otherArgs;
    return std::find(others.begin(), others.end(), name) != others.end();
}

std::optional<std::int64_t> wholeNumberOf(std::string_view token)
{
    token = trimmedToken(token);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
    return value;
}

std::optional<Nanos> nanosOfMicroseconds(std::string_view token)
{
    constexpr Nanos most = farthestReading;
    token = trimmedToken(token);
    const char* at = token.data();
    const char* end = at + token.size();
    Nanos whole = 0;
    const auto [dot, error] = std::from_chars(at, end, whole);
    if (error == std::errc() && whole < most / 1000 && whole > -most / 1000) {
        if (dot == end) return whole * 1000;
        if (*dot == '.') {
            Nanos part = 0;
            int digits = 0;
            const char* next = dot + 1;
            for (; next < end && *next >= '0' && *next <= '9'; ++next, ++digits) {
                if (digits < 3)
                    part = part * 10 + (*next - '0');
                else if (digits == 3 && *next >= '5')
                    ++part;
            }
            if (next == end && digits > 0) {
                for (int i = digits; i < 3; ++i) part *= 10;
                return *at == '-' ? whole * 1000 - part : whole * 1000 + part;
            }
        }
    }
    double value = 0;
    const auto [last, bad] = std::from_chars(at, end, value);
    if (bad != std::errc() || last != end || !std::isfinite(value) ||
        std::abs(value) > static_cast<double>(most) / 1000)
        return std::nullopt;
    return static_cast<Nanos>(std::llround(value * 1000));
}

struct KinetoEventParser::State {
    od::parser parser;
    Scratch scratch;
};

KinetoEventParser::KinetoEventParser() : m_state(std::make_unique<State>()) {}
KinetoEventParser::~KinetoEventParser() = default;

bool KinetoEventParser::parse(std::string_view text, KinetoEvent& event, WantArgs wantArgs)
{
    try {
        od::document document =
            m_state->parser.iterate(simdjson::padded_string_view(text, text.size() + JsonEvents::padding));
        return readObject(document.get_object(), event, wantArgs, m_state->scratch);
    } catch (const simdjson::simdjson_error&) {
        return false;
    }
}

bool KinetoEventParser::parseArgs(std::string_view object, KinetoArgs& args)
{
    try {
        od::document document =
            m_state->parser.iterate(simdjson::padded_string_view(object, object.size() + JsonEvents::padding));
        return readArgs(document.get_object(), args);
    } catch (const simdjson::simdjson_error&) {
        return false;
    }
}

std::size_t KinetoEventParser::parseAll(std::string_view array, KinetoEvent& event, WantArgs wantArgs,
                                        const std::function<bool()>& take)
{
    std::size_t taken = 0;
    try {
        od::document document =
            m_state->parser.iterate(simdjson::padded_string_view(array, array.size() + JsonEvents::padding));
        for (auto element : document.get_array()) {
            if (!readObject(element.get_object(), event, wantArgs, m_state->scratch) || !take()) break;
            ++taken;
        }
    } catch (const simdjson::simdjson_error&) { // the caller parses the rest one by one
    }
    return taken;
}

} // namespace stagewright
