#include "schedules/model/op.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr std::int64_t largestMicrobatch = 999'999'999;

// Reads one op from left to right; `at` is the next unread character.
struct OpReader {
    std::string_view text;
    std::size_t at = 0;

    bool done() const { return at >= text.size(); }
    bool next(char c)
    {
        if (done() || text[at] != c) return false;
        ++at;
        return true;
    }
    Error error(std::string_view expected) const
    {
        const std::string where =
            done() ? std::string("the end") : fmt::format("character {} ('{}')", at + 1, text[at]);
        return Error{ErrorCode::Unreadable, fmt::format("op '{}': {} expected at {}", text, expected, where),
                     "ops read like 2F0, 3I1, 0W7, 1B4"};
    }
    Result<std::int64_t> number(std::string_view what, std::int64_t largest)
    {
        std::uint64_t value = 0;
        const char* first = text.data() + at;
        const char* last = text.data() + text.size();
        if (done() || *first < '0' || *first > '9') return tl::unexpected(error(what));
        const auto [end, failure] = std::from_chars(first, last, value);
        if (failure != std::errc() || value > static_cast<std::uint64_t>(largest))
            return tl::unexpected(
                Error{ErrorCode::Unreadable,
                      fmt::format("op '{}': {} at character {} is above {}", text, what, at + 1, largest), ""});
        at += static_cast<std::size_t>(end - first);
        return static_cast<std::int64_t>(value);
    }
    Result<OpKind> kind()
    {
        const std::size_t begin = at;
        while (!done() && ((text[at] >= 'A' && text[at] <= 'Z') || text[at] == '_')) ++at;
        const std::string_view word = text.substr(begin, at - begin);
        for (const KindTraits& rule : allKinds())
            if (rule.text == word) return rule.kind;
        if (word.empty()) return tl::unexpected(error("a kind (F, B, I, W …)"));
        return tl::unexpected(Error{
            ErrorCode::Unreadable, fmt::format("op '{}': unknown kind '{}' at character {}", text, word, begin + 1),
            "kinds are F, B, I, W, R, OPT, FILLER, FACTOR_A, FACTOR_G, INVERT and the communication kinds"});
    }
};

} // namespace

std::string toText(const Op& op)
{
    const KindTraits& rule = ruleOf(op.kind);
    std::string out = fmt::format("{}{}", op.stage, rule.text);
    if (isDelay(op.kind)) {
        out += std::to_string(op.delay);
        return out;
    }
    if (rule.inPieces) return out + fmt::format(".{}", op.slice);
    if (!hasMicrobatch(op)) return out;
    out += std::to_string(op.microbatch);
    if (op.count > 1) out += fmt::format("-{}", op.microbatch + op.count - 1);
    if (op.slice >= 0) out += fmt::format(".{}", op.slice);
    if (op.half > 0) out += fmt::format("h{}", op.half - 1);
    return out;
}

Result<Op> parseOp(std::string_view text)
{
    OpReader in{text};
    Op op;
    STAGEWRIGHT_TRY(const auto stage, in.number("stage", std::numeric_limits<std::uint16_t>::max()));
    op.stage = static_cast<std::uint16_t>(stage);
    STAGEWRIGHT_TRY(op.kind, in.kind());
    if (isDelay(op.kind)) {
        STAGEWRIGHT_TRY(const auto delay, in.number("delay in ns", std::numeric_limits<std::uint32_t>::max()));
        op.delay = static_cast<std::uint32_t>(delay);
    } else if (isInPieces(op.kind)) {
        if (!in.next('.')) return tl::unexpected(in.error("a piece (.0, .1 …)"));
        STAGEWRIGHT_TRY(const auto piece, in.number("piece", std::numeric_limits<std::int16_t>::max()));
        op.slice = static_cast<std::int16_t>(piece);
    } else if (ruleOf(op.kind).takesMicrobatch || (ruleOf(op.kind).mayTakeMicrobatch && !in.done())) {
        STAGEWRIGHT_TRY(const auto first, in.number("microbatch", largestMicrobatch));
        op.microbatch = static_cast<std::int32_t>(first);
        if (in.next('-')) {
            STAGEWRIGHT_TRY(const auto last, in.number("last microbatch", largestMicrobatch));
            const std::int64_t count = last - first + 1;
            if (count < 2 || count > std::numeric_limits<std::uint16_t>::max())
                return fail(ErrorCode::Unreadable,
                            fmt::format("op '{}': microbatches {} to {} are {} microbatches, 2 to 65535 expected", text,
                                        first, last, count));
            op.count = static_cast<std::uint16_t>(count);
        }
        if (in.next('.')) {
            STAGEWRIGHT_TRY(const auto slice, in.number("slice", std::numeric_limits<std::int16_t>::max()));
            op.slice = static_cast<std::int16_t>(slice);
        }
        if (in.next('h')) {
            STAGEWRIGHT_TRY(const auto half, in.number("half (0 or 1)", 1));
            op.half = static_cast<std::uint8_t>(half + 1);
        }
    }
    if (!in.done()) return tl::unexpected(in.error("nothing more"));
    return op;
}

} // namespace stagewright

std::size_t std::hash<stagewright::Op>::operator()(const stagewright::Op& op) const noexcept
{
    auto mix = [](std::uint64_t x) {
        x += 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    };
    const auto low = static_cast<std::uint64_t>(static_cast<std::uint32_t>(op.microbatch)) |
                     (static_cast<std::uint64_t>(op.delay) << 32);
    const auto high = static_cast<std::uint64_t>(op.stage) | (static_cast<std::uint64_t>(op.count) << 16) |
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.slice)) << 32) |
                      (static_cast<std::uint64_t>(op.kind) << 48) | (static_cast<std::uint64_t>(op.half) << 56);
    return static_cast<std::size_t>(mix(mix(low) ^ high));
}
