#include "traces/import/name_patterns.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/foreign/label_rules.h"

namespace stagewright {

namespace {

constexpr std::size_t longestName = 256;
constexpr std::size_t mostPatterns = 2'000;
constexpr std::size_t mostValues = 65'536;

bool isLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

struct Number {
    std::string text;
    std::int64_t value;
};

// The name with a zero byte for each of its numbers.
std::string skeletonOf(std::string_view name, std::vector<Number>& numbers)
{
    std::string out;
    for (std::size_t i = 0; i < name.size();) {
        if (!isDigit(name[i])) {
            out += name[i++];
            continue;
        }
        std::size_t end = i;
        while (end < name.size() && isDigit(name[end])) ++end;
        std::int64_t value = 0;
        // an address, a time
        if (end - i > 9 || std::from_chars(name.data() + i, name.data() + end, value).ec != std::errc()) value = -1;
        numbers.push_back({std::string(name.substr(i, end - i)), value});
        out += '\0';
        i = end;
    }
    return out;
}

// Lower-case words of letters; "DistributedDataParallel.forward" is distributed, data, parallel, forward.
std::vector<std::string> wordsOf(std::string_view text)
{
    std::vector<std::string> words;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!isLetter(text[i])) continue;
        const bool begins = i == 0 || !isLetter(text[i - 1]) ||
                            (std::isupper(static_cast<unsigned char>(text[i])) != 0 &&
                             std::islower(static_cast<unsigned char>(text[i - 1])) != 0);
        if (begins) words.emplace_back();
        words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
    }
    return words;
}

template <std::size_t Count>
bool hasWord(const std::vector<std::string>& words, const std::array<std::string_view, Count>& wanted)
{
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
    });
}

// By the words of a name. Framework operators, messages and waits are not passes, whatever else their names say.
std::string kindOf(std::string_view skeleton)
{
    const std::string text = lowered(skeleton);
    for (const std::string_view other :
         std::to_array<std::string_view>({"nccl", "gloo", "aten::", "autograd::", "c10d", "all_to_all", "alltoall",
                                          "all2all", "allreduce", "all_reduce", "allgather", "all_gather",
                                          "reduce_scatter", "dataloader", "zero_grad", "cuda", "profilerstep"}))
        if (text.find(other) != std::string::npos) return {};
    const std::vector<std::string> words = wordsOf(skeleton);
    if (hasWord(words, std::to_array<std::string_view>({"send", "recv", "receive", "isend", "irecv", "wait", "copy",
                                                        "sync", "prefetch", "hook", "synchronize"})))
        return {};
    const bool weight = hasWord(words, std::to_array<std::string_view>({"wgrad", "weight", "weights", "dw"}));
    const bool input = hasWord(words, std::to_array<std::string_view>({"dgrad", "agrad", "input", "dx"}));
    if (hasWord(words, std::to_array<std::string_view>({"recompute", "recomputation", "rematerialize"}))) return "R";
    if (hasWord(words, std::to_array<std::string_view>({"forward", "fwd", "fprop", "fw"})) &&
        !hasWord(words, std::to_array<std::string_view>({"backward", "bwd"})))
        return "F";
    if (hasWord(words, std::to_array<std::string_view>({"backward", "bwd", "bprop", "bw"})) &&
        !hasWord(words, std::to_array<std::string_view>({"forward", "fwd"}))) {
        for (const std::string& word : words) // "AddmmBackward0" is one operator's
            if (word == "backward" && skeleton.find(std::string("Backward") + '\0') != std::string_view::npos &&
                words.size() > 1 && isLetter(skeleton.front()) && skeleton.find(' ') == std::string_view::npos &&
                skeleton.find('_') == std::string_view::npos)
                return {};
        return weight ? "W" : input ? "I" : "B";
    }
    if (weight && hasWord(words, std::to_array<std::string_view>({"grad", "gradient", "gradients", "wgrad", "dw"})))
        return "W";
    if (input &&
        hasWord(words, std::to_array<std::string_view>({"grad", "gradient", "gradients", "dgrad", "agrad", "dx"})))
        return "I";
    if (hasWord(words, std::to_array<std::string_view>({"optimizer", "optim", "adam", "sgd"}))) return "OPT";
    if (hasWord(words, std::to_array<std::string_view>({"step", "iter", "iteration"}))) return "step";
    if (words.size() == 1 && words[0].size() == 1 && skeleton.find('\0') != std::string_view::npos) { // F3, B 3
        if (words[0] == "f") return "F";
        if (words[0] == "b") return "B";
        if (words[0] == "w") return "W";
    }
    return {};
}

NumberMeaning meaningOfWord(std::string_view before)
{
    const std::vector<std::string> words = wordsOf(before);
    if (words.empty()) return NumberMeaning::Any;
    const std::size_t separators = before.size() - (before.find_last_not_of(" _-.:=#([/") + 1);
    if (separators > 3) return NumberMeaning::Any;
    const std::vector<std::string> last{words.back()};
    if (hasWord(last, std::to_array<std::string_view>({"stage", "stg", "st", "pp", "pipe", "pipeline"})))
        return NumberMeaning::Stage;
    if (hasWord(last, std::to_array<std::string_view>({"chunk", "vp", "vpp", "virtual", "vstage", "part"})))
        return NumberMeaning::Chunk;
    if (hasWord(last, std::to_array<std::string_view>(
                          {"mb", "mbs", "microbatch", "micro", "minibatch", "ubatch", "ub", "batch", "mbid"})))
        return NumberMeaning::Microbatch;
    if (hasWord(last, std::to_array<std::string_view>({"step", "iter", "iteration"}))) return NumberMeaning::Step;
    if (hasWord(last, std::to_array<std::string_view>({"slice", "seq", "split"}))) return NumberMeaning::Slice;
    return NumberMeaning::Any;
}

bool meansOther(std::string_view before) // a number that is none of the op's
{
    const std::vector<std::string> words = wordsOf(before);
    return !words.empty() && hasWord(std::vector<std::string>{words.back()},
                                     std::to_array<std::string_view>(
                                         {"rank", "gpu", "device", "dev", "layer", "node", "thread", "size"}));
}

struct Values {                                 // of one number of a skeleton
    std::map<std::int64_t, std::int64_t> times; // ranges by value
    std::map<std::size_t, std::int64_t> ofRank; // the only value on a rank; −1: several
    std::set<std::string> texts;                // of the same value: "1" and "01"

    void add(std::size_t rank, const Number& number, std::int64_t ranges)
    {
        if (times.size() < mostValues) times[number.value] += ranges;
        if (texts.size() < 2) texts.insert(number.text);
        const auto [found, added] = ofRank.try_emplace(rank, number.value);
        if (!added && found->second != number.value) found->second = -1;
    }
    bool constant() const { return times.size() == 1 && texts.size() == 1; }
    bool readable() const { return times.begin()->first >= 0 && times.rbegin()->first <= 65'535; }
    // One value on each rank, all different.
    bool ofRanks() const
    {
        std::set<std::int64_t> seen;
        return ofRank.size() > 1 && std::all_of(ofRank.begin(), ofRank.end(), [&seen](const auto& entry) {
                   return entry.second >= 0 && seen.insert(entry.second).second;
               });
    }
    bool counts() const // 0, 1, 2 … or from 1
    {
        return times.begin()->first <= 1 &&
               times.rbegin()->first - times.begin()->first + 1 == static_cast<std::int64_t>(times.size());
    }
};

struct Collected {
    std::int64_t ranges = 0;
    std::set<std::size_t> ranks;
    Nanos total = 0, shortest = 0, longest = 0;
    std::string example;
    std::vector<Number> first;
    std::vector<Values> values;
};

NamePattern patternOf(const std::string& skeleton, const Collected& seen)
{
    NamePattern out;
    out.example = seen.example;
    out.ranges = seen.ranges;
    out.ranks = static_cast<int>(seen.ranks.size());
    out.total = seen.total;
    out.shortest = seen.shortest;
    out.longest = seen.longest;
    out.kind = kindOf(skeleton);
    std::size_t number = 0;
    std::string before; // the number, names of ranges
    std::set<NumberMeaning> used;
    std::vector<std::size_t> open; // numbers whose words say nothing
    const auto addText = [&out](std::string_view text) {
        if (out.pieces.empty() || out.pieces.back().number) out.pieces.push_back({});
        out.pieces.back().text += text;
    };
    for (const char c : skeleton) {
        if (c != '\0') {
            addText(std::string_view(&c, 1));
            before += c;
            continue;
        }
        const Values& values = seen.values[number];
        const bool single = values.constant();
        NumberMeaning meaning = values.readable() ? meaningOfWord(before) : NumberMeaning::Any;
        if (out.kind == "step" && meaning == NumberMeaning::Any && values.readable()) meaning = NumberMeaning::Step;
        if (out.kind == "step" && meaning != NumberMeaning::Step) meaning = NumberMeaning::Any;
        if (single && meaning == NumberMeaning::Any) {
            addText(seen.first[number].text);
        } else {
            if (!used.insert(meaning).second) meaning = NumberMeaning::Any;
            out.pieces.push_back({{},
                                  true,
                                  meaning,
                                  static_cast<int>(std::clamp<std::int64_t>(values.times.begin()->first, 0, 65'535)),
                                  static_cast<int>(std::clamp<std::int64_t>(values.times.rbegin()->first, 0, 65'535))});
            if (meaning == NumberMeaning::Any && values.readable() && !meansOther(before) && out.kind != "step")
                open.push_back(number);
            if (meaning == NumberMeaning::Any && (!values.readable() || meansOther(before) || out.kind == "step"))
                open.push_back(std::string::npos);
        }
        ++number;
        before.clear();
    }
    // Numbers without a word: one for each rank is the stage, one that counts is the microbatch.
    std::size_t at = 0;
    for (NamePiece& piece : out.pieces) {
        if (!piece.number || piece.meaning != NumberMeaning::Any || at >= open.size()) continue;
        const std::size_t of = open[at++];
        if (of == std::string::npos) continue;
        if (!used.contains(NumberMeaning::Stage) && seen.values[of].ofRanks() && seen.values[of].counts())
            piece.meaning = NumberMeaning::Stage;
        else if (!used.contains(NumberMeaning::Microbatch) && seen.values[of].counts())
            piece.meaning = NumberMeaning::Microbatch;
        used.insert(piece.meaning);
    }
    return out;
}

std::string_view fieldOf(NumberMeaning meaning)
{
    switch (meaning) {
    case NumberMeaning::Any: return "";
    case NumberMeaning::Microbatch: return "microbatch";
    case NumberMeaning::Stage: return "stage";
    case NumberMeaning::Chunk: return "chunk";
    case NumberMeaning::Slice: return "slice";
    case NumberMeaning::Step: return "step";
    }
    return "";
}

} // namespace

std::string patternText(const std::vector<NamePiece>& pieces)
{
    std::string out;
    std::set<NumberMeaning> used;
    for (const NamePiece& piece : pieces) {
        if (!piece.number) {
            for (const char c : piece.text) {
                if (c == '*' || c == '{' || c == '\\') out += '\\';
                out += c;
            }
        } else if (piece.meaning == NumberMeaning::Any || !used.insert(piece.meaning).second) {
            out += '*';
        } else {
            const bool fromOne = piece.least == 1 && piece.meaning != NumberMeaning::Step;
            out += fmt::format("{{{}{}}}", fieldOf(piece.meaning), fromOne ? "-1" : "");
        }
    }
    return out;
}

std::vector<NamePattern> namePatterns(const std::vector<ForeignRank>& ranks)
{
    std::map<std::string, Collected> bySkeleton;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        struct Sum {
            std::int64_t ranges = 0;
            Nanos total = 0, shortest = 0, longest = 0;
        };
        std::vector<Sum> sums(ranks[r].names.size());
        for (const ForeignSpan& span :
             ranks[r].annotations.empty() ? ranks[r].deviceAnnotations : ranks[r].annotations) {
            Sum& sum = sums[span.name];
            const Nanos length = span.end - span.start;
            sum.shortest = sum.ranges == 0 ? length : std::min(sum.shortest, length);
            sum.longest = std::max(sum.longest, length);
            ++sum.ranges;
            sum.total += length;
        }
        for (std::uint32_t name = 0; name < sums.size(); ++name) {
            const Sum& sum = sums[name];
            const std::string_view text = plainRangeName(ranks[r].names[name]);
            if (sum.ranges == 0 || text.empty() || text.starts_with("ProfilerStep#") || text.size() > longestName ||
                text.find('\0') != std::string_view::npos || text.find('\n') != std::string_view::npos)
                continue;
            std::vector<Number> numbers;
            Collected& seen = bySkeleton[skeletonOf(text, numbers)];
            if (seen.ranges == 0) {
                seen.example = text;
                seen.first = numbers;
                seen.values.resize(numbers.size());
                seen.shortest = sum.shortest;
            }
            seen.ranges += sum.ranges;
            seen.ranks.insert(r);
            seen.total += sum.total;
            seen.shortest = std::min(seen.shortest, sum.shortest);
            seen.longest = std::max(seen.longest, sum.longest);
            for (std::size_t n = 0; n < numbers.size(); ++n) seen.values[n].add(r, numbers[n], sum.ranges);
        }
    }
    std::vector<NamePattern> out;
    out.reserve(bySkeleton.size());
    for (const auto& [skeleton, seen] : bySkeleton) out.push_back(patternOf(skeleton, seen));
    std::stable_sort(out.begin(), out.end(), [](const NamePattern& a, const NamePattern& b) {
        return std::pair(a.kind.empty(), -a.ranges) < std::pair(b.kind.empty(), -b.ranges);
    });
    if (out.size() > mostPatterns) out.resize(mostPatterns);
    return out;
}

} // namespace stagewright
