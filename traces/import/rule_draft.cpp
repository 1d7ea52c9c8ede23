#include "traces/import/rule_draft.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/foreign/label_rules.h"

namespace stagewright {

namespace {

constexpr std::size_t mostForwards = 6;
constexpr std::size_t mostBackwards = 6;

std::vector<const NamePattern*> ofKind(const std::vector<NamePattern>& patterns, std::string_view kind,
                                       std::size_t most)
{
    std::vector<const NamePattern*> out;
    for (const NamePattern& pattern : patterns)
        if (pattern.kind == kind) out.push_back(&pattern);
    // The longest first: passes are around what they call.
    std::stable_sort(out.begin(), out.end(), [](const NamePattern* a, const NamePattern* b) {
        return std::tie(b->ranks, b->total) < std::tie(a->ranks, a->total);
    });
    if (out.size() > most) out.resize(most);
    return out;
}

// The ranks with only those ranges that may be ops or steps: what is tried often is small.
std::vector<ForeignRank> onlyPasses(const std::vector<ForeignRank>& ranks, const std::string& rules)
{
    const auto meanings = LabelRules::parse(rules);
    std::vector<ForeignRank> out(ranks.size());
    for (std::size_t r = 0; r < ranks.size() && meanings; ++r) {
        const ForeignRank& from = ranks[r];
        std::vector<std::uint32_t> name(from.names.size(), 0xffffffffu);
        for (std::uint32_t n = 0; n < name.size(); ++n)
            if (meanings->meaningOf(from.names[n])) name[n] = out[r].names.idOf(from.names[n]);
        out[r].rank = from.rank;
        const auto take = [&](const std::vector<ForeignSpan>& spans, std::vector<ForeignSpan>& to) {
            for (ForeignSpan span : spans) {
                if (name[span.name] == 0xffffffffu) continue;
                span.name = name[span.name];
                to.push_back(span);
            }
        };
        take(from.annotations, out[r].annotations);
        if (from.annotations.empty()) take(from.deviceAnnotations, out[r].deviceAnnotations);
    }
    return out;
}

std::string lineOf(const NamePattern& pattern) { return ruleLine(pattern.kind, patternText(pattern.pieces)); }

// Whole schedules first, then those with the fewest orphans, then those that cover the most time.
struct Score {
    bool schedule = false;
    bool known = false;
    double orphans = 1; // share of the ranges
    Nanos covered = 0;
    auto key() const { return std::tuple(schedule, -orphans, known, covered); }
};

Score scoreOf(const RulePreview& preview, Nanos covered)
{
    Score score;
    score.schedule = preview.rebuilt.schedule != nullptr || preview.copies;
    score.known = !preview.rebuilt.recognised.empty();
    score.orphans = preview.matched > 0
                        ? static_cast<double>(preview.orphans + preview.nested) / static_cast<double>(preview.matched)
                        : 1;
    score.covered = covered;
    return score;
}

class Drafter {
public:
    Drafter(const std::vector<ForeignRank>& ranks, const std::vector<NamePattern>& patterns, bool messages,
            const std::stop_token& stop)
        : m_ranks(ranks), m_patterns(patterns), m_messages(messages), m_stop(stop),
          m_forwards(ofKind(patterns, "F", mostForwards)), m_backwards(ofKind(patterns, "B", mostBackwards)),
          m_inputs(ofKind(patterns, "I", 2)), m_weights(ofKind(patterns, "W", 2)),
          m_optimizers(ofKind(patterns, "OPT", 1)), m_recomputes(ofKind(patterns, "R", 1)),
          m_steps(ofKind(patterns, "step", 2))
    {
    }

    std::optional<RuleDraft> draft()
    {
        if (m_forwards.empty()) return std::nullopt;
        std::string all;
        for (const auto* list :
             {&m_forwards, &m_backwards, &m_inputs, &m_weights, &m_optimizers, &m_recomputes, &m_steps})
            for (const NamePattern* pattern : *list) all += lineOf(*pattern) + '\n';
        m_small = onlyPasses(m_ranks, all);
        for (const NamePattern* forward : m_forwards) {
            tryBackwards(forward, m_inputs.empty() ? nullptr : m_inputs.front(),
                         m_weights.empty() ? nullptr : m_weights.front());
            for (const NamePattern* backward : m_backwards)
                tryBackwards(forward, backward, m_inputs.empty() && !m_weights.empty() ? m_weights.front() : nullptr);
            if (m_stop.stop_requested()) return std::nullopt;
        }
        // Marks of steps may be wrong, or of something else: kept only if nothing gets worse.
        for (const auto* list : {&m_steps, &m_recomputes})
            for (const NamePattern* pattern : *list) {
                auto chosen = m_chosen;
                chosen.push_back(pattern);
                if (tryRules(chosen)) break;
            }
        auto preview = previewRules(m_ranks, textOf(m_chosen), m_messages, m_stop);
        if (!preview || m_stop.stop_requested()) return std::nullopt;
        RuleDraft out;
        out.text = fileOf(*preview);
        preview = previewRules(m_ranks, out.text, m_messages, m_stop); // with the numbers of the file's lines
        if (!preview) return std::nullopt;
        out.preview = std::move(*preview);
        return out;
    }

private:
    void tryBackwards(const NamePattern* forward, const NamePattern* first, const NamePattern* second)
    {
        std::vector<const NamePattern*> chosen{forward};
        for (const NamePattern* pattern : {first, second})
            if (pattern != nullptr) chosen.push_back(pattern);
        if (!m_optimizers.empty()) chosen.push_back(m_optimizers.front());
        tryRules(chosen);
    }

    bool tryRules(const std::vector<const NamePattern*>& chosen)
    {
        const auto preview = previewRules(m_small, textOf(chosen), m_messages, m_stop);
        if (!preview) return false;
        Nanos covered = 0;
        for (const NamePattern* pattern : chosen) covered += pattern->kind == "step" ? 0 : pattern->total;
        const Score score = scoreOf(*preview, covered);
        if (!m_chosen.empty() && score.key() < m_best.key()) return false;
        if (!m_chosen.empty() && score.key() == m_best.key() && chosen.size() <= m_chosen.size()) return false;
        m_best = score;
        m_chosen = chosen;
        return true;
    }

    static std::string textOf(const std::vector<const NamePattern*>& chosen)
    {
        std::string text;
        for (const NamePattern* pattern : chosen) text += lineOf(*pattern) + '\n';
        return text;
    }

    std::string fileOf(const RulePreview& preview) const
    {
        std::string text = fmt::format(
            "# A draft: rules for the named ranges of {}. Check it, then import again with --rules.\n# It gives: {}.\n",
            counted(preview.ranks, "rank"), toText(preview));
        for (const std::string& remark : preview.remarks) text += fmt::format("# {}.\n", remark);
        text += "#\n# {stage}, {chunk}, {microbatch}, {slice} and {step} are numbers in the name, * is any text. "
                "Without {stage} the stage is the rank,\n"
                "# without {microbatch} microbatches are counted.\n";
        for (const NamePattern* pattern : m_chosen) {
            text += fmt::format("\n# {} on {}, for example: {}\n{}\n", counted(pattern->ranges, "range"),
                                counted(pattern->ranks, "rank"), pattern->example, lineOf(*pattern));
        }
        std::string others;
        std::size_t listedOthers = 0;
        for (const NamePattern& pattern : m_patterns) {
            if (pattern.kind.empty() || std::find(m_chosen.begin(), m_chosen.end(), &pattern) != m_chosen.end() ||
                ++listedOthers > 24)
                continue;
            others += fmt::format("# {}   ({} on {})\n", lineOf(pattern), counted(pattern.ranges, "range"),
                                  counted(pattern.ranks, "rank"));
        }
        if (!others.empty()) text += "\n# Not chosen, although the names look like passes:\n" + others;
        return text;
    }

    const std::vector<ForeignRank>& m_ranks;
    const std::vector<NamePattern>& m_patterns;
    bool m_messages;
    std::stop_token m_stop;
    std::vector<const NamePattern*> m_forwards, m_backwards, m_inputs, m_weights, m_optimizers, m_recomputes, m_steps;
    std::vector<ForeignRank> m_small;
    std::vector<const NamePattern*> m_chosen;
    Score m_best;
};

} // namespace

std::string ruleLine(std::string_view kind, std::string_view pattern) { return fmt::format("{:<8} {}", kind, pattern); }

std::string namesText(const std::vector<NamePattern>& patterns, std::size_t most)
{
    std::string text;
    std::size_t count = 0;
    const bool passes = !patterns.empty() && !patterns.front().kind.empty(); // they come first
    for (const NamePattern& pattern : patterns) {
        if (passes && pattern.kind.empty()) break;
        if (count++ == most) return text + ", …";
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", pattern.example, pattern.ranges);
    }
    return text;
}

std::optional<RuleDraft> suggestRules(const std::vector<ForeignRank>& ranks, const std::vector<NamePattern>& patterns,
                                      bool messages, const std::stop_token& stop)
{
    return Drafter(ranks, patterns, messages, stop).draft();
}

} // namespace stagewright
