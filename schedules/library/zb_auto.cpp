// ZB-auto (Qi et al. 2024, arXiv 2401.10241, section 3.1): the zero-bubble heuristic for given costs, latency and
// memory.
//
// Forwards warm a rank up as long as memory allows and they are through before the first gradient comes; later ones
// alternate with I; W runs where memory is full or the rank would wait. Each of the rules has variants, of which the
// one with the shortest span is kept (schedules/heuristic/zero_bubble.h). At unit costs and limit p this is ZB-H1.

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/heuristic/zero_bubble.h"
#include "schedules/library/registry.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter parametersZbAuto[] = {
    {"limit", "1", "real",
     "microbatches a rank may hold, in multiples of the ranks; a memory cap given with the costs comes first", "2",
     "cap {} × ranks"},
    {"freed", "0", "real", "part of an activation that the input gradient frees, 0 to 1; W frees the rest", "2",
     "I frees {}"},
};

double limitOf(const Shape& shape)
{
    return shape.costs.memoryLimit > 0 ? shape.costs.memoryLimit
                                       : numberOf(shape.parameter("limit")).value_or(1) * shape.ranks;
}

Result<Schedule> makeZbAuto(const Shape& shape)
{
    const double limit = limitOf(shape);
    if (limit < 1)
        return fail(ErrorCode::Usage, fmt::format("zb-auto: a limit of {} microbatches; at least one is needed", limit),
                    fmt::format("the smallest that works is limit={}", 1.0 / shape.ranks));
    Shape own = shape;
    if (own.costs.freedAtInput <= 0) own.costs.freedAtInput = numberOf(shape.parameter("freed")).value_or(0);
    if (own.costs.freedAtInput > 1)
        return fail(ErrorCode::Usage,
                    fmt::format("zb-auto: freed={} is more than the whole activation", own.costs.freedAtInput),
                    "the maximum is freed=1");
    const planning::Pipeline pipeline =
        planning::evenPipeline(shape.ranks, 1, shape.microbatches, own.costs, limit, Objective::Span);
    const planning::Found found = planning::zeroBubble(pipeline);
    if (!found.feasible())
        return fail(ErrorCode::Usage,
                    fmt::format("zb-auto: no order of {} ranks and {} microbatches keeps a limit of {}", shape.ranks,
                                shape.microbatches, limit),
                    "raise the limit");
    return planning::scheduleOf(pipeline, found.words, "zb-auto");
}

// At even unit costs and the limits of ZB-H1 and ZB-H2 the heuristic finds the optimum.
ClosedForm closedFormZbAuto(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const bool even = forward == inputGrad && inputGrad == weightGrad && shape.costs.latency == 0 &&
                      shape.costs.forward == shape.costs.inputGrad && shape.costs.inputGrad == shape.costs.weightGrad;
    if (even && shape.microbatches >= shape.ranks && limitOf(shape) == shape.ranks)
        form.makespan = (3.0 * shape.microbatches + shape.ranks - 1) * forward;
    return form;
}

} // namespace

extern const ScheduleInfo zb_auto;
constinit const ScheduleInfo zb_auto{
    .name = "zb-auto",
    .title = "ZB-auto (zero bubble, searched for costs and memory)",
    .summary = "warm-up forwards while they come for free, weight gradients where they cost nothing; best of several "
               "rules by span",
    .paper = "Qi et al. 2024, arXiv 2401.10241, section 3.1",
    .constraints = "any ranks, any microbatches, a limit of at least one microbatch",
    .formulas =
        "makespan  3m + p - 1 at F = I = W = 1, limit p, m >= p\n"
        "span      at unit costs 3m + 2p - 1 - k for a limit of k microbatches, p <= k < 2p; 3m from 2p - 1 on\n"
        "peak      at most the limit",
    .drawing = "rank 0 |F0 F1 F2 F3 .........I0 W0 I1 W1 I2 W2 I3 W3 |\n"
               "rank 1 |...F0 F1 F2 ......I0 F3 I1 W0 I2 W1 I3 W2 W3 |\n"
               "rank 2 |......F0 F1 ...I0 F2 I1 F3 I2 W0 I3 W1 W2 W3 |\n"
               "rank 3 |.........F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3 |\n",
    .aliases = "zb-1p-auto, zb-2p-auto, zbauto",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeZbAuto,
    .closedForm = closedFormZbAuto,
    .parameters = parametersZbAuto,
    .searches = true,
};

} // namespace stagewright::library
