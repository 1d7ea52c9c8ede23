// LabelRules: which op a range's name in a foreign trace means. Built in: PyTorch's `PP:` labels and `Forward i`,
// zero-bubble's letters, the function names of Megatron-LM, DeepSpeed and vLLM; a user's file comes before them. One
// rule per line, `#` starts a comment line:
//
//     F        fwd stage {stage} mb {microbatch}*
//     B        bwd stage {stage} mb {microbatch}*
//     F        pass {microbatch-1} of chunk {chunk}        counted from 1: one is subtracted
//     SEND_F   isend {stage}/{microbatch}
//     step     iteration {step}*
//     ignore   warmup *
//
// First word: a kind in PyTorch's letters (F, B full backward, I input gradient, W weight gradient, R, OPT,
// REDUCE_GRAD, UNSHARD, RESHARD, SEND_F, RECV_F, SEND_B, RECV_B), `action` (the op as text, {action}), `step` or
// `ignore`. The rest is the pattern: the whole name must match; `*` is any text, {stage}, {chunk}, {microbatch},
// {slice} and {step} a whole number, also optionally with -1 or +1, a backslash makes the next character literal. The
// first rule that matches counts.
//
// Missing fields are inferred: the stage from the rank's place in the pipeline (with a chunk: of its loop or V), the
// microbatch from the number of the range among its like within the step. Blanks around a pattern are ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/op.h"

namespace stagewright {

// The dialect of a name. A run is read in one dialect: the first that matches any op.
enum class LabelDialect : std::uint8_t {
    User,
    PyTorch,
    ZeroBubble,
    PassNames,
    Megatron,
    DeepSpeed,
    VLlm,
};
inline constexpr std::size_t labelDialectCount = 7;
std::string_view toText(LabelDialect dialect);
// The rules of a built-in dialect, to start a file of one's own from; "" for User.
std::string_view readyRules(LabelDialect dialect);

// "PP:0F1, seq = 12, op_id = 3" → "PP:0F1": without the suffixes that a profiler adds to a range's name.
std::string_view plainRangeName(std::string_view name);

struct LabelMeaning {
    enum class What : std::uint8_t {
        Op,
        Step,
        Ignore,
    };
    What what = What::Op;
    LabelDialect dialect = LabelDialect::User;
    std::vector<Op> ops;     // one; two for an overlapped pair. Stage and microbatch 0 if missing
    bool oldLetters = false; // written as BW: then B in this trace is the input gradient
    bool saysStage = false;
    bool saysMicrobatch = false;
    int chunk = -1;
    std::int64_t step = -1; // −1: missing
    int line = 0;           // of the rule in its text, from 1
};

class LabelRules {
public:
    static const LabelRules& builtIn();
    // The user's rules, then the built-in ones. Usage error naming the line.
    static Result<LabelRules> parse(std::string_view text);

    // The meaning of `name`; empty: none. O(rules × length) except for `*`, which tries every position.
    std::optional<LabelMeaning> meaningOf(std::string_view name) const;

private:
    struct Part {
        enum class Kind : std::uint8_t {
            Text,
            Any,
            Number,
            Action,
        };
        Kind kind = Kind::Text;
        std::string text; // of Text; of Number the field
        int offset = 0;
    };
    struct Rule {
        LabelMeaning::What what = LabelMeaning::What::Op;
        LabelDialect dialect = LabelDialect::User;
        std::string kind; // "F"; "action"
        std::vector<Part> parts;
        int line = 0;
    };
    struct Match;

    Result<void> add(std::string_view text, LabelDialect dialect, bool user);
    static Result<std::vector<Part>> partsOf(std::string_view pattern);
    static bool matches(const std::vector<Part>& parts, std::size_t part, std::string_view text, Match& match);
    std::vector<Rule> m_rules;
};

} // namespace stagewright
