// TeraPipe (Li et al. 2021, arXiv 2102.07988): sequences cut into slices that follow each other through the pipeline.
//
// A token attends to earlier ones only, so a stage can run slice i once slice i−1 is through; backwards run in reverse,
// since gradients of keys and values come from the later slices. Slices get shorter along the sequence because later
// ones attend to more: the lengths come from the dynamic program of section 3.3 with
// t(l, c) = start + token·l + context·(l·c + l(l+1)/2) for l tokens behind c.
//   base=gpipe  all forwards, then all backwards (the paper's)
//   base=1f1b   slices in 1F1B: min(p−r−2+n, mn) warm-up forwards for n slices, slices reversed within each microbatch
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/draft.h"
#include "schedules/model/slicing.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter terapipeParameters[] = {
    {"base", "gpipe", "gpipe|1f1b", "the order of slices: all forwards first, or one forward, one backward", "2",
     "1f1b=over 1F1B"},
    {"slices", "auto", "auto|whole",
     "slices of a sequence: auto, by the dynamic program; a number: that many equal ones", "2", "{} slices"},
    {"tokens", "16", "whole", "tokens of a sequence that the dynamic program cuts", "2", "{} tokens"},
    {"start", "2", "real", "time of a slice without its tokens", "2", "slices start {}"},
    {"token", "1", "real", "time per token", "2", "{} a token"},
    {"context", "0.125", "real", "time per pair of a token and one it attends to", "2", "{} a pair"}};

Result<std::vector<int>> lengthsOf(const Shape& shape)
{
    const int tokens = shape.number("tokens", 16);
    constexpr int most = 4096; // the program's tables grow with the square
    if (tokens > most)
        return fail(ErrorCode::Usage, fmt::format("terapipe: {} tokens; at most {} are cut", tokens, most),
                    fmt::format("count in larger units; the nearest that works is tokens={}", most));
    if (const int slices = shape.number("slices", 0); slices > 0) {
        constexpr int mostSlices = 32767;
        if (slices > mostSlices)
            return fail(ErrorCode::Usage,
                        fmt::format("terapipe: {} slices; at most {} are possible", slices, mostSlices),
                        fmt::format("the nearest that works is slices={}", mostSlices));
        return std::vector<int>(static_cast<std::size_t>(slices), 1);
    }
    SliceTask task;
    task.tokens = tokens;
    task.stages = shape.ranks;
    task.sequences = shape.microbatches;
    const double start = numberOf(shape.parameter("start")).value_or(2);
    const double token = numberOf(shape.parameter("token")).value_or(1);
    const double context = numberOf(shape.parameter("context")).value_or(0.125);
    // Long sequences have as many different times as pairs of numbers; 0.1 % of the whole is near enough.
    if (tokens > 64) task.step = (start + token * tokens + context * tokens * tokens) / 1000;
    STAGEWRIGHT_TRY(auto slicing, sliceSequence(task, [&](int length, int before) {
                        const double l = length;
                        return start + token * l + context * (l * before + l * (l + 1) / 2);
                    }));
    return std::move(slicing.lengths);
}

Result<Schedule> makeTerapipe(const Shape& shape)
{
    STAGEWRIGHT_TRY(auto lengths, lengthsOf(shape));
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int n = static_cast<int>(lengths.size());
    Schedule out = draft("terapipe", p, p, m, Placement::loop(p, p));
    const bool equal = std::all_of(lengths.begin(), lengths.end(), [&](int l) { return l == lengths.front(); });
    if (!equal) out.sliceLengths.assign(lengths.begin(), lengths.end());
    const int total = m * n;
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(total));
        const int warmup = shape.parameter("base") == "1f1b" ? std::max(0, p - r - 2 + n) : total;
        oneForwardOneBackward(total, warmup, [&](OpKind kind, int k) {
            Op op = makeOp(kind, r, k / n);
            op.slice = static_cast<std::int16_t>(kind == OpKind::Forward ? k % n : n - 1 - k % n);
            ops.push_back(op);
        });
    }
    return out;
}

ClosedForm closedFormTerapipe(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const auto lengths = lengthsOf(shape);
    if (!lengths || shape.parameter("base") == "1f1b") return form;
    const double longest = *std::max_element(lengths->begin(), lengths->end());
    const double all = std::accumulate(lengths->begin(), lengths->end(), 0);
    form.makespan = (shape.microbatches + (shape.ranks - 1) * longest / all) * (forward + inputGrad + weightGrad);
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.microbatches);
    return form;
}

} // namespace

extern const ScheduleInfo terapipe;
constinit const ScheduleInfo terapipe{
    .name = "terapipe",
    .title = "TeraPipe (sequence slices)",
    .summary =
        "sequences cut into slices by a dynamic program: the bubble of one slice, for models that look back only",
    .paper = "Li et al. 2021, arXiv 2102.07988; base=1f1b as in the zero-bubble authors' code",
    .constraints = "any ranks, any microbatches; models in which a token sees earlier ones only",
    .formulas = "makespan  (m + (p-1)a)T, a the longest slice's share of the sequence (gpipe; time by length)\n"
                "bubble    (p-1)aT per rank\n"
                "peak      m on every rank (gpipe)\n"
                "slices    least sum t + (p-1) max t over all ways to cut, t(l,c) as the parameters say",
    .drawing =
        "rank 0 |F0 F0FF1 F1FF2 F2FF3 F3F.................B0 ..B0- .....B0-- B1 B1- B1-- B2 B2- B2-- B3 B3- B3-- |\n"
        "rank 1 |...F0F0F0F1F1F1F2F2F2F3F3F3...........B0 ..B0 ...B0--- B1 B1 B1--- B2 B2 B2--- B3 B3 B3--- .....|\n"
        "rank 2 |.....F0 F0FF1 F1FF2 F2FF3 F3F......B0 .B0- .B0-- B1 B1- B1-- B2 B2- B2-- B3 B3- B3-- ...........|\n"
        "rank 3 |........F0 FF0F1 FF1F2 FF2F3 FF3B0 B0- B0-- B1 B1- B1-- B2 B2- B2-- B3 B3- B3-- ................|\n",
    .aliases = "token-level, seq1f1b (base=1f1b)",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeTerapipe,
    .closedForm = closedFormTerapipe,
    .parameters = terapipeParameters,
};

} // namespace stagewright::library
