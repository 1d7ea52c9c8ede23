#include "traces/foreign/label_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr std::size_t longestName = 512; // no label of an op is longer; kernels' names may have kilobytes

constexpr std::string_view pytorchRules = "action PP:{action}\n"
                                          "step ProfilerStep#{step}\n";
constexpr std::string_view zeroBubbleRules = "F F{microbatch}.{chunk}.{slice}\n"
                                             "I B{microbatch}.{chunk}.{slice}\n"
                                             "W W{microbatch}.{chunk}.{slice}\n"
                                             "B BW{microbatch}.{chunk}.{slice}\n"
                                             "F F{microbatch}\n"
                                             "I B{microbatch}\n"
                                             "W W{microbatch}\n"
                                             "B BW{microbatch}\n"
                                             "step iter_*_{step}\n";
constexpr std::string_view passRules = "F Forward {microbatch}\n"
                                       "B Backward {microbatch}\n";
constexpr std::string_view megatronRules = "F forward_step\n"
                                           "F forward-compute\n"
                                           "F *.forward_step\n"
                                           "B backward_step\n"
                                           "B backward-compute\n"
                                           "B *.backward_step\n"
                                           "OPT optimizer\n"
                                           "step train_step*\n"
                                           "step *.train_step\n"
                                           // spans of OpenTelemetry, with their numbers behind the names
                                           // (import/otlp/span_labels.h)
                                           "F megatron.microbatch.forward\n"
                                           "B megatron.microbatch.backward\n"
                                           "F *forward stage {stage} microbatch {microbatch}\n"
                                           "B *backward stage {stage} microbatch {microbatch}\n"
                                           "F *forward chunk {chunk} microbatch {microbatch}\n"
                                           "B *backward chunk {chunk} microbatch {microbatch}\n"
                                           "F *forward microbatch {microbatch}\n"
                                           "B *backward microbatch {microbatch}\n"
                                           "OPT *optimizer stage {stage}\n"
                                           "OPT megatron.train.iteration.optimizer\n"
                                           "REDUCE_GRAD megatron.grad_sync.finish stage {stage}\n"
                                           "REDUCE_GRAD megatron.grad_sync.finish\n"
                                           "step *iteration step {step}\n"
                                           "step *step step {step}\n";
// instrument_w_nvtx names a range as the function's qualified name.
constexpr std::string_view deepSpeedRules = "F *PipelineEngine._exec_forward_pass\n"
                                            "F *DeepSpeedEngine.forward\n"
                                            "B *PipelineEngine._exec_backward_pass\n"
                                            "B *DeepSpeedEngine.backward\n"
                                            "OPT *PipelineEngine._exec_optimizer_step\n"
                                            "OPT *DeepSpeedEngine.step\n"
                                            "step *PipelineEngine.train_batch\n";
constexpr std::string_view vllmRules = "F gpu_model_runner: forward\n"
                                       "F *GPUModelRunner.execute_model\n"
                                       "F execute_model*\n"
                                       "F execute_context_*\n";

std::optional<OpKind> kindOf(std::string_view text)
{
    for (std::size_t k = 0; k < allKinds().size(); ++k)
        if (const auto kind = static_cast<OpKind>(k); !isDelay(kind) && ruleOf(kind).text == text) return kind;
    return std::nullopt;
}

// "2F0", "(0F3;7B1)OVERLAP_F_B", "1BW4" of older files.
bool readAction(std::string_view text, LabelMeaning& meaning)
{
    constexpr std::string_view pair = ")OVERLAP_F_B";
    if (text.size() > pair.size() && text.front() == '(' && text.ends_with(pair)) {
        for (const std::string_view action : itemsOf(text.substr(1, text.size() - 1 - pair.size()), ";"))
            if (!readAction(action, meaning)) return false;
        return meaning.ops.size() == 2;
    }
    std::string plain(text);
    if (const std::size_t old = plain.find("BW"); old != std::string::npos) {
        plain.erase(old + 1, 1);
        meaning.oldLetters = true;
    }
    const auto op = parseOp(plain);
    if (!op || isDelay(op->kind)) return false;
    meaning.ops.push_back(*op);
    return true;
}

} // namespace

std::string_view toText(LabelDialect dialect)
{
    switch (dialect) {
    case LabelDialect::User: return "the rule file";
    case LabelDialect::PyTorch: return "PyTorch's PP: labels";
    case LabelDialect::ZeroBubble: return "zero-bubble's letters";
    case LabelDialect::PassNames: return "Forward i and Backward i";
    case LabelDialect::Megatron: return "Megatron's names";
    case LabelDialect::DeepSpeed: return "DeepSpeed's function names";
    case LabelDialect::VLlm: return "vLLM's ranges";
    }
    return "";
}

std::string_view readyRules(LabelDialect dialect)
{
    switch (dialect) {
    case LabelDialect::User: return "";
    case LabelDialect::PyTorch: return pytorchRules;
    case LabelDialect::ZeroBubble: return zeroBubbleRules;
    case LabelDialect::PassNames: return passRules;
    case LabelDialect::Megatron: return megatronRules;
    case LabelDialect::DeepSpeed: return deepSpeedRules;
    case LabelDialect::VLlm: return vllmRules;
    }
    return "";
}

std::string_view plainRangeName(std::string_view name)
{
    for (const std::string_view tail : std::to_array<std::string_view>({", op_id = ", ", seq = ", ", sizes = "}))
        if (const std::size_t at = name.find(tail); at != std::string_view::npos) name = name.substr(0, at);
    return trimmed(name);
}

struct LabelRules::Match {
    std::vector<std::pair<std::string, std::int64_t>> numbers;
    std::string_view action;
    std::size_t steps = 0; // bounds the work of several `*`
};

Result<std::vector<LabelRules::Part>> LabelRules::partsOf(std::string_view pattern)
{
    std::vector<Part> parts;
    const auto letter = [&parts](char c) {
        if (parts.empty() || parts.back().kind != Part::Kind::Text) parts.push_back({});
        parts.back().text += c;
    };
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\' && i + 1 < pattern.size()) {
            letter(pattern[++i]);
        } else if (c == '*') {
            if (parts.empty() || parts.back().kind != Part::Kind::Any) parts.push_back({Part::Kind::Any, {}, 0});
        } else if (c == '{') {
            const std::size_t close = pattern.find('}', i);
            if (close == std::string_view::npos)
                return fail(ErrorCode::Usage, fmt::format("pattern '{}': {{ without }}", pattern),
                            "write \\{ for the character itself");
            std::string field(pattern.substr(i + 1, close - i - 1));
            Part part{Part::Kind::Number, {}, 0};
            if (field.ends_with("-1") || field.ends_with("+1")) {
                part.offset = field.ends_with("-1") ? -1 : 1;
                field.erase(field.size() - 2);
            }
            if (field == "action")
                part.kind = Part::Kind::Action;
            else if (field != "stage" && field != "chunk" && field != "microbatch" && field != "slice" &&
                     field != "step")
                return fail(ErrorCode::Usage, fmt::format("pattern '{}': there is no {{{}}}", pattern, field),
                            "there are {stage}, {chunk}, {microbatch}, {slice}, {step} and {action}");
            part.text = std::move(field);
            parts.push_back(std::move(part));
            i = close;
        } else {
            letter(c);
        }
    }
    if (parts.empty())
        return fail(ErrorCode::Usage, "the rule has no pattern",
                    "write the name, for example: F forward of {microbatch}");
    return parts;
}

Result<void> LabelRules::add(std::string_view text, LabelDialect dialect, bool user)
{
    int number = 0;
    for (const std::string_view row : itemsOf(text, "\n")) {
        const std::string_view line = trimmed(row);
        ++number;
        if (line.empty() || line.front() == '#') continue;
        const auto at = [number](Error error) {
            return tl::unexpected(std::move(error).with(fmt::format("line {}", number)));
        };
        const std::size_t word = std::min(line.find_first_of(" \t"), line.size());
        Rule rule;
        rule.dialect = dialect;
        rule.line = number;
        rule.kind = line.substr(0, word);
        if (rule.kind == "step")
            rule.what = LabelMeaning::What::Step;
        else if (rule.kind == "ignore")
            rule.what = LabelMeaning::What::Ignore;
        else if (rule.kind != "action" && !kindOf(rule.kind))
            return at({ErrorCode::Usage, fmt::format("'{}' is not a kind of op", rule.kind),
                       "write F, B, I, W, R, OPT, REDUCE_GRAD, UNSHARD, RESHARD, SEND_F, RECV_F, SEND_B, RECV_B, "
                       "action, step or ignore"});
        auto parts = partsOf(trimmed(line.substr(word)));
        if (!parts) return at(std::move(parts.error()));
        rule.parts = std::move(*parts);
        const bool action = std::any_of(rule.parts.begin(), rule.parts.end(),
                                        [](const Part& part) { return part.kind == Part::Kind::Action; });
        if (action != (rule.kind == "action"))
            return at({ErrorCode::Usage, fmt::format("'{}': {{action}} and the kind action go together", line),
                       "write: action PP:{action}"});
        m_rules.push_back(std::move(rule));
    }
    if (user && number > 10'000) return fail(ErrorCode::Usage, fmt::format("{} lines of rules, at most 10000", number));
    return {};
}

const LabelRules& LabelRules::builtIn()
{
    static const LabelRules rules = [] {
        LabelRules made;
        for (std::size_t d = 0; d < labelDialectCount; ++d)
            (void)made.add(readyRules(static_cast<LabelDialect>(d)), static_cast<LabelDialect>(d), false);
        return made;
    }();
    return rules;
}

Result<LabelRules> LabelRules::parse(std::string_view text)
{
    LabelRules rules;
    STAGEWRIGHT_CHECK(rules.add(text, LabelDialect::User, true));
    const auto& more = builtIn().m_rules;
    rules.m_rules.insert(rules.m_rules.end(), more.begin(), more.end());
    return rules;
}

bool LabelRules::matches(const std::vector<Part>& parts, std::size_t part, std::string_view text, Match& match)
{
    if (++match.steps > 100'000) return false;
    if (part == parts.size()) return text.empty();
    const Part& wanted = parts[part];
    switch (wanted.kind) {
    case Part::Kind::Text:
        return text.starts_with(wanted.text) && matches(parts, part + 1, text.substr(wanted.text.size()), match);
    case Part::Kind::Any:
        for (std::size_t skip = 0; skip <= text.size(); ++skip)
            if (matches(parts, part + 1, text.substr(skip), match)) return true;
        return false;
    case Part::Kind::Number: {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const auto used = static_cast<std::size_t>(end - text.data());
        if (error != std::errc() || used == 0 || text.front() == '-' ||
            value > std::numeric_limits<std::int32_t>::max() - 1)
            return false;
        match.numbers.emplace_back(wanted.text, value + wanted.offset);
        if (matches(parts, part + 1, text.substr(used), match)) return true;
        match.numbers.pop_back();
        return false;
    }
    case Part::Kind::Action:
        for (std::size_t size = text.size(); size > 0; --size) {
            match.action = text.substr(0, size);
            if (matches(parts, part + 1, text.substr(size), match)) return true;
        }
        return false;
    }
    return false;
}

std::optional<LabelMeaning> LabelRules::meaningOf(std::string_view name) const
{
    if (name.size() > longestName) return std::nullopt;
    name = plainRangeName(name);
    for (const Rule& rule : m_rules) {
        Match match;
        if (!matches(rule.parts, 0, name, match)) continue;
        LabelMeaning meaning;
        meaning.what = rule.what;
        meaning.dialect = rule.dialect;
        meaning.line = rule.line;
        Op op;
        if (rule.what == LabelMeaning::What::Op && rule.kind != "action") {
            op.kind = *kindOf(rule.kind);
            op.microbatch = ruleOf(op.kind).takesMicrobatch ? 0 : -1;
        }
        bool fits = true;
        for (const auto& [field, value] : match.numbers) {
            fits = fits && value >= 0 && (field == "step" || value <= 65'535);
            if (field == "stage") op.stage = static_cast<std::uint16_t>(value), meaning.saysStage = true;
            if (field == "microbatch") op.microbatch = static_cast<std::int32_t>(value), meaning.saysMicrobatch = true;
            if (field == "chunk") meaning.chunk = static_cast<int>(value);
            if (field == "slice") op.slice = static_cast<std::int16_t>(std::min<std::int64_t>(value, 32'767));
            if (field == "step") meaning.step = value;
        }
        if (!fits) continue;
        if (rule.what == LabelMeaning::What::Op) {
            if (rule.kind == "action") {
                if (!readAction(match.action, meaning)) continue;
                meaning.saysStage = meaning.saysMicrobatch = true;
            } else {
                if (!ruleOf(op.kind).takesMicrobatch) op.microbatch = -1, meaning.saysMicrobatch = true;
                meaning.ops = {op};
            }
        }
        return meaning;
    }
    return std::nullopt;
}

} // namespace stagewright
