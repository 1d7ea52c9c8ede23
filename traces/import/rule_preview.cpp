#include "traces/import/rule_preview.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "traces/foreign/label_rules.h"

namespace stagewright {

namespace {

std::vector<RuleMatches> rulesIn(std::string_view text)
{
    std::vector<RuleMatches> out;
    int line = 0;
    for (const std::string_view row : itemsOf(text, "\n")) {
        ++line;
        const std::string_view rule = trimmed(row);
        if (rule.empty() || rule.front() == '#') continue;
        const std::size_t word = std::min(rule.find_first_of(" \t"), rule.size());
        out.push_back({line, std::string(rule.substr(0, word)), std::string(trimmed(rule.substr(word))), {}, 0, 0});
    }
    return out;
}

void countMatches(const std::vector<ForeignRank>& ranks, const LabelRules& rules, std::vector<RuleMatches>& matches)
{
    std::map<int, RuleMatches*> byLine;
    for (RuleMatches& match : matches) byLine[match.line] = &match;
    for (const ForeignRank& rank : ranks) {
        std::vector<std::int64_t> ranges(rank.names.size(), 0);
        for (const ForeignSpan& span : rank.annotations.empty() ? rank.deviceAnnotations : rank.annotations)
            ++ranges[span.name];
        std::set<int> here;
        for (std::uint32_t name = 0; name < ranges.size(); ++name) {
            if (ranges[name] == 0) continue;
            const auto meaning = rules.meaningOf(rank.names[name]);
            if (!meaning || meaning->dialect != LabelDialect::User) continue;
            RuleMatches& match = *byLine[meaning->line];
            if (match.ranges == 0) match.example = plainRangeName(rank.names[name]);
            match.ranges += ranges[name];
            if (here.insert(meaning->line).second) ++match.ranks;
        }
    }
}

std::string those(std::int64_t count, std::string_view noun)
{
    return fmt::format("{} {}", counted(count, noun), count == 1 ? "is" : "are");
}

// Forwards without their backward and the other way round, within a rank and step.
void findOrphans(const OpReading& reading, RulePreview& out)
{
    bool backwards = false;
    for (const RankOps& rank : reading.ranks)
        for (const OpRange& range : rank.ops) backwards = backwards || isReturn(range.op.kind);
    if (!backwards) return; // inference has none
    struct Half {
        std::int64_t count = 0;
        std::string first;
    };
    Half forwards, others;
    for (std::size_t r = 0; r < reading.ranks.size(); ++r) {
        // forwards and backwards by step, stage, microbatch, slice, chunk
        std::map<std::tuple<int, int, int, int, int>, std::pair<int, int>> seen;
        for (const OpRange& range : reading.ranks[r].ops) {
            auto& [forward, backward] =
                seen[{range.step, range.op.stage, range.op.microbatch, range.op.slice, range.chunk}];
            if (isForward(range.op.kind)) ++forward;
            if (isReturn(range.op.kind)) ++backward;
        }
        for (const auto& [key, counts] : seen) {
            const auto& [step, stage, microbatch, slice, chunk] = key;
            const auto add = [&, step = step, stage = stage, microbatch = microbatch](Half& half, int more) {
                if (more <= 0) return;
                if (half.count == 0)
                    half.first = fmt::format("rank {}, step {}, stage {}, microbatch {}", r, stepNumber(step), stage,
                                             microbatch);
                half.count += more;
            };
            add(forwards, counts.first - counts.second);
            add(others, counts.second - counts.first);
        }
    }
    if (forwards.count > 0)
        out.remarks.push_back(
            fmt::format("{} without a backward, the first at {}", those(forwards.count, "forward"), forwards.first));
    if (others.count > 0)
        out.remarks.push_back(
            fmt::format("{} without a forward, the first at {}", those(others.count, "backward"), others.first));
    out.orphans += forwards.count + others.count;
}

} // namespace

Result<RulePreview> previewRules(const std::vector<ForeignRank>& ranks, std::string_view text, bool messages,
                                 const std::stop_token& stop)
{
    STAGEWRIGHT_TRY(auto rules, LabelRules::parse(text));
    RulePreview out;
    out.ranks = static_cast<int>(ranks.size());
    out.rules = rulesIn(text);
    countMatches(ranks, rules, out.rules);
    OpReading reading = readOps(ranks, rules);
    if (reading.dialect != LabelDialect::User) {
        out.rebuilt.why = "no range matches a rule of an op";
        return out;
    }
    for (const RankOps& rank : reading.ranks) out.matched += static_cast<std::int64_t>(rank.ops.size());
    out.matched += reading.outside + reading.nested;
    out.steps = reading.steps;
    if (reading.outside > 0)
        out.remarks.push_back(fmt::format("{} outside complete steps", those(reading.outside, "range")));
    if (reading.nested > 0)
        out.remarks.push_back(fmt::format("{} within another op and skipped", those(reading.nested, "range")));
    out.orphans = reading.outside;
    out.nested = reading.nested;
    out.remarks.insert(out.remarks.end(), reading.notes.begin(), reading.notes.end());
    inferStages(ranks, messages, reading, out.remarks);
    out.copies = reading.copies;
    findOrphans(reading, out);
    if (stop.stop_requested()) return out;
    std::vector<RankWork> work;
    const ForeignRank none; // the order is that of the host
    for (RankOps& rank : reading.ranks) work.push_back(placeWork(none, rank, stop));
    out.rebuilt = rebuildSchedule(reading, work, "mapped", out.remarks);
    return out;
}

std::string toText(const RulePreview& preview)
{
    if (!preview.rebuilt.schedule) return "no schedule: " + preview.rebuilt.why;
    const Schedule& schedule = *preview.rebuilt.schedule;
    return fmt::format("{} on {}: {}, {}, {}",
                       preview.rebuilt.recognised.empty() ? "an order of its own" : preview.rebuilt.recognised,
                       counted(schedule.ranks, "rank"), counted(schedule.stages, "stage"),
                       counted(schedule.microbatches, "microbatch"), counted(preview.steps, "step"));
}

} // namespace stagewright
