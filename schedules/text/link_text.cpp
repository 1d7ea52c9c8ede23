#include "schedules/text/link_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

struct Suffix {
    const char* text;
    double factor;
};

template <std::size_t N>
Result<double> parseQuantity(const std::string& text, const Suffix (&suffixes)[N], const char* what)
{
    if (const auto quantity = quantityOf(text); quantity && quantity->value >= 0) {
        const double value = quantity->value;
        const std::string_view unit = quantity->unit.substr(quantity->unit.starts_with(' ') ? 1 : 0);
        for (const Suffix& suffix : suffixes)
            if (unit == suffix.text) {
                if (value * suffix.factor > 9e18)
                    return fail(ErrorCode::Usage, fmt::format("'{}' is too large for {}", text, what));
                return value * suffix.factor;
            }
    }
    std::string accepted;
    for (const Suffix& suffix : suffixes) accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", suffix.text);
    return fail(ErrorCode::Usage, fmt::format("'{}' is not {}", text, what),
                fmt::format("write a number and a unit of {}", accepted));
}

} // namespace

Result<Nanos> parseTime(const std::string& text)
{
    static constexpr Suffix suffixes[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    return parseQuantity(text, suffixes, "a time").map([](double value) {
        return static_cast<Nanos>(std::llround(value));
    });
}

Result<Bytes> parseBytes(const std::string& text)
{
    static constexpr Suffix suffixes[] = {{"B", 1},      {"kB", 1e3},      {"MB", 1e6},        {"GB", 1e9},
                                          {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    return parseQuantity(text, suffixes, "a size").map([](double value) {
        return static_cast<Bytes>(std::llround(value));
    });
}

bool isPlainNumber(const std::string& text)
{
    return text.find_first_not_of("0123456789.") == std::string::npos &&
           text.find_first_of("0123456789") != std::string::npos;
}

Result<Bytes> parseActivations(const std::string& text, const CostModel& costs)
{
    constexpr double most = 1e9;
    if (!costs.knowsActivations())
        return fail(ErrorCode::Usage, "these costs have no sizes of activations",
                    "add stage_bytes to the costs, or use costs of a run that recorded memory");
    if (isPlainNumber(text)) {
        if (costs.memoryUnit == 1)
            return fail(ErrorCode::Usage, "these costs count bytes", "write a size such as 64MB");
        const auto number = numberOf(text);
        if (!number) return fail(ErrorCode::Usage, fmt::format("'{}' is not a number", text), "write 4 or 64MB");
        return static_cast<Bytes>(std::min(*number, most) * static_cast<double>(costs.memoryUnit));
    }
    STAGEWRIGHT_TRY(const Bytes bytes, parseBytes(text));
    if (costs.memoryUnit != 1)
        return fail(ErrorCode::Usage, "unit costs count microbatch-activations, not bytes",
                    "write a plain number such as 4, or use measured costs (--costs-from FILE#RUN)");
    return bytes;
}

Result<double> parseSpeed(const std::string& text)
{
    static constexpr Suffix suffixes[] = {{"B/s", 1},    {"kB/s", 1e3},      {"MB/s", 1e6},
                                          {"GB/s", 1e9}, {"Mbit/s", 1.25e5}, {"Gbit/s", 1.25e8}};
    STAGEWRIGHT_TRY(const double speed, parseQuantity(text, suffixes, "a bandwidth"));
    if (speed <= 0)
        return fail(ErrorCode::Usage, "a bandwidth of 0 never delivers", "omit it for a link without limit");
    return speed;
}

Result<Link> parseLink(const std::string& text)
{
    const auto [time, rate] = keyValueOf(text, ',');
    Link link;
    STAGEWRIGHT_TRY(link.latency, parseTime(std::string(time)));
    if (rate) {
        STAGEWRIGHT_TRY(link.bytesPerSecond, parseSpeed(std::string(*rate)));
    }
    return link;
}

Result<Copies> parseCopies(std::string_view text)
{
    Copies copies;
    for (const std::string_view part : split(text, ",")) {
        const auto [key, given] = keyValueOf(part);
        const std::string value(given.value_or(key));
        if (!given) {
            STAGEWRIGHT_TRY(copies.outBytesPerSecond, parseSpeed(value));
            copies.inBytesPerSecond = copies.outBytesPerSecond;
        } else if (key == "out") {
            STAGEWRIGHT_TRY(copies.outBytesPerSecond, parseSpeed(value));
        } else if (key == "in") {
            STAGEWRIGHT_TRY(copies.inBytesPerSecond, parseSpeed(value));
        } else if (key == "latency") {
            STAGEWRIGHT_TRY(copies.latency, parseTime(value));
        } else if (key == "duplex" && (value == "half" || value == "full")) {
            copies.fullDuplex = value == "full";
        } else {
            return fail(ErrorCode::Usage, fmt::format("'{}' is not known", part),
                        "write 15GB/s, or out=15GB/s,in=12GB/s; also latency=10us and duplex=full");
        }
    }
    if (text.empty() || (copies.outBytesPerSecond > 0) != (copies.inBytesPerSecond > 0))
        return fail(ErrorCode::Usage, fmt::format("'{}' has no speed of both ways", text),
                    "write 15GB/s, or out=15GB/s,in=12GB/s");
    return copies;
}

Result<CollectiveWay> parseCollectives(std::string_view text)
{
    CollectiveWay out;
    bool first = true;
    for (const std::string_view part : split(text, ":")) {
        const auto [key, value] = keyValueOf(part);
        if (std::exchange(first, false)) {
            STAGEWRIGHT_TRY(out.costs.algorithm, parseCollectiveAlgorithm(part));
        } else if (key == "per-host" && value) {
            const auto count = wholeOf<int>(*value);
            if (!count || *count < 1)
                return fail(ErrorCode::Usage, fmt::format("'{}' is not a number of a stage's ranks on a host", *value),
                            "write per-host=8");
            out.costs.perHost = *count;
        } else if (key == "between" && value) {
            STAGEWRIGHT_TRY(out.costs.between, parseLink(std::string(*value)));
        } else if (part == "shared") {
            out.lane = ResourceUse::Shared;
        } else {
            return fail(ErrorCode::Usage, fmt::format("'{}' is not known", part),
                        "after ring, tree or two-level come :per-host=N, :between=LATENCY,BANDWIDTH and :shared");
        }
    }
    return out;
}

} // namespace stagewright
