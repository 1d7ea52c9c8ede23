#include "schedules/text/megatron.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <fmt/format.h>

#include "schedules/library/registry.h"

namespace stagewright {

namespace {

constexpr std::size_t mostCharacters = 1 << 20; // of a layout without its repetitions

tl::unexpected<Error> refused(const std::string& why, const std::string& remedy)
{
    return fail(ErrorCode::Usage, why, remedy);
}

// "*3" at `at` of the text: the number, and the place behind it. None: there is no such thing.
struct Times {
    std::size_t number = 0, end = 0; // end 0: none
};
Times timesAt(std::string_view text, std::size_t at)
{
    if (at + 1 >= text.size() || text[at] != '*') return {};
    std::size_t end = at + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at + 1) return {};
    Times out{mostCharacters + 1, end}; // also where it does not fit
    std::from_chars(text.data() + at + 1, text.data() + end, out.number);
    return out;
}

// With every X*n repeated, where widthAt(place) is the length of the X that may be there, and its text is inside it.
template <typename Width>
Result<std::string> repeated(std::string_view text, int margin, const Width& widthAt)
{
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t width = widthAt(at);
        const Times times = width > 0 ? timesAt(text, at + width) : Times{};
        if (times.end == 0) {
            out += text[at++];
            continue;
        }
        const std::string_view one =
            text.substr(at + static_cast<std::size_t>(margin), width - 2 * static_cast<std::size_t>(margin));
        if (times.number > (mostCharacters - out.size()) / one.size())
            return refused(fmt::format("more than {} characters when its repetitions are written out", mostCharacters),
                           "use smaller numbers");
        for (std::size_t i = 0; i < times.number; ++i) out += one;
        at = times.end;
    }
    return out;
}

// The rules of which stage holds what, beyond the first and the last.
Result<void> checkPredictions(const MegatronLayout& layout)
{
    bool predicts = false;
    std::size_t where = 0;
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const auto& stage = layout.stages[k];
        if (stage.predictions == 0) continue;
        if (predicts)
            return refused(fmt::format("multi-token prediction (m) is in stages {} and {}", where, k),
                           "put all of it into one stage");
        predicts = true;
        where = k;
        if (k + static_cast<std::size_t>(layout.ranks) < layout.stages.size())
            return refused(fmt::format("m is in stage {}, which is not the last one of its rank", k),
                           fmt::format("put it into one of the last {} stages", layout.ranks));
    }
    return {};
}

} // namespace

std::vector<int> MegatronLayout::layers() const
{
    std::vector<int> out;
    for (const Stage& stage : stages) out.push_back(stage.layers);
    return out;
}

Result<MegatronLayout> readMegatronLayout(std::string_view text, int ranks)
{
    std::string plain(text);
    std::erase(plain, ',');
    STAGEWRIGHT_TRY(plain, repeated(plain, 1, [&](std::size_t at) -> std::size_t {
                        const std::size_t end = plain[at] == '(' ? plain.find(')', at) : std::string::npos;
                        return end == std::string::npos || end == at + 1 ? 0 : end + 1 - at;
                    }));
    STAGEWRIGHT_TRY(plain, repeated(plain, 0, [](std::size_t) -> std::size_t { return 1; }));

    MegatronLayout out{ranks, {{}}};
    int embeddings = 0, losses = 0;
    bool predicted = false;
    for (const char c : plain) {
        MegatronLayout::Stage& stage = out.stages.back();
        switch (c) {
        case '|': out.stages.emplace_back(); break;
        case 'E':
            stage.embedding = true;
            ++embeddings;
            break;
        case 't':
            if (predicted)
                return refused("a layer (t) comes after multi-token prediction (m)", "put every t before the first m");
            ++stage.layers;
            break;
        case 'm':
            predicted = true;
            ++stage.predictions;
            break;
        case 'L':
            stage.loss = true;
            ++losses;
            break;
        default:
            return refused(fmt::format("'{}' is not one of E, t, m, L and |", c),
                           "write E for the embedding, t for a layer, m for multi-token prediction, L for the loss, | "
                           "between stages; (…)*n and t*n repeat, without nesting and without spaces");
        }
    }
    const std::size_t stages = out.stages.size();
    if (stages % static_cast<std::size_t>(ranks) != 0)
        return refused(fmt::format("{} stages can't be divided among {} ranks", stages, ranks),
                       "add or remove a |, or change --ranks");
    std::erase(plain, '|');
    if (plain.empty() || plain.front() != 'E' || embeddings != 1)
        return refused("the embedding (E) has to be first, once", "begin with E");
    if (plain.back() != 'L' || losses != 1) return refused("the loss (L) has to be last, once", "end with L");
    STAGEWRIGHT_CHECK(checkPredictions(out));
    return out;
}

std::string megatronLayout(const std::vector<int>& layers)
{
    MegatronLayout layout{1, {}};
    for (const int count : layers) layout.stages.push_back({false, count, 0, false});
    if (!layers.empty()) layout.stages.front().embedding = layout.stages.back().loss = true;
    return toText(layout);
}

std::string toText(const MegatronLayout& layout)
{
    const auto times = [](char c, int count) {
        return count > 3 ? fmt::format("{}*{}", c, count) : std::string(static_cast<std::size_t>(count), c);
    };
    std::vector<std::string> stages;
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const auto& stage = layout.stages[k];
        std::string text = (stage.embedding ? "E" : "") + times('t', stage.layers) + times('m', stage.predictions);
        if (stage.loss) text += 'L';
        if (k + 1 < layout.stages.size()) text += '|';
        stages.push_back(std::move(text));
    }
    std::string out;
    for (auto at = stages.begin(); at != stages.end();) {
        const auto end = std::find_if(at, stages.end(), [&](const std::string& other) { return other != *at; });
        if (end - at > 2)
            out += fmt::format("({})*{}", *at, end - at);
        else
            for (auto one = at; one != end; ++one) out += *one;
        at = end;
    }
    return out;
}

Result<MegatronOrder> megatronOrder(const Schedule& schedule)
{
    const std::string name = recognise(schedule);
    const int ranks = schedule.pipelineRanks();
    const int m = schedule.microbatches;
    if (name == "1f1b") return MegatronOrder{};
    constexpr std::string_view interleaved = "interleaved-1f1b", group = ":group=";
    if (name == interleaved || name.starts_with(std::string(interleaved) + std::string(group))) {
        MegatronOrder out{schedule.stages / ranks, m / std::max(1, m / ranks)};
        if (name.size() > interleaved.size()) {
            const std::string_view number = std::string_view(name).substr(interleaved.size() + group.size());
            std::from_chars(number.data(), number.data() + number.size(), out.group);
        }
        if (out.group >= ranks && out.group <= m && (m % out.group == 0 || m % out.group >= ranks)) return out;
        return fail(
            ErrorCode::Invalid,
            fmt::format("Megatron-LM does not run groups of {} of {} microbatches on {} ranks", out.group, m, ranks),
            m < ranks
                ? fmt::format("use {} microbatches or more", ranks)
                : fmt::format("the nearest that it runs is {}{}{}", interleaved, group, m % ranks == 0 ? ranks : m));
    }
    const bool loop = schedule.stages > ranks && schedule.stages % ranks == 0;
    return fail(ErrorCode::Invalid,
                fmt::format("Megatron-LM runs 1F1B and interleaved 1F1B; {} is another order", !name.empty() ? name
                                                                                               : schedule.name.empty()
                                                                                                   ? "this"
                                                                                                   : schedule.name),
                loop && m >= ranks ? fmt::format("the nearest that it runs is {}{}{}, with {} chunks", interleaved,
                                                 group, m % ranks == 0 ? ranks : m, schedule.stages / ranks)
                                   : "the nearest that it runs is 1f1b");
}

} // namespace stagewright
