// Roofline (Williams et al. 2009, CACM 52(4)): each kind of op compared with the device's limit at its arithmetic
// intensity. The ceilings are measured once on the device and stored with the run ("ceiling_matrix_flops",
// floating-point operations per second in the run's precision, and "ceiling_copy_bytes", bytes read and written per
// second, in its environment); operations and bytes follow from the model (docs/numbers.md, "Roofline").
#pragma once

#include <vector>

#include "schedules/base/plot.h"
#include "schedules/model/analytic_costs.h"
#include "traces/run/run.h"

namespace stagewright {

class StepContext; // step_context.h

struct Ceilings {
    double flops = 0;          // per second
    double bytesPerSecond = 0; // of memory
};

struct OpWork { // of one whole microbatch through one stage
    double flops = 0;
    double bytes = 0; // compulsory traffic: weights once, kept activations once
};

struct RooflineRow {
    OpKind kind{}; // F, B, I, W, R
    std::int64_t ops = 0;
    Nanos time = 0; // sum of durations
    double flops = 0;
    double bytes = 0;

    double intensity() const { return bytes > 0 ? flops / bytes : 0; } // operations per byte
    double achieved() const { return time > 0 ? flops / (static_cast<double>(time) * 1e-9) : 0; }
    double attainable(const Ceilings& ceilings) const; // min(ceiling of operations, intensity × ceiling of bytes)
    double share(const Ceilings& ceilings) const;      // achieved ÷ attainable; 0: no ceiling
    bool memoryBound(const Ceilings& ceilings) const;
};

// elementBytes: of a weight or activation. Zero for kinds other than F, B, I, W, R.
OpWork workOf(OpKind kind, const StageShape& stage, double elementBytes = 4);

// Usage error if the run's model is unknown; Unavailable if its environment has no ceilings.
Result<Ceilings> ceilingsOf(const Run& run);
Result<std::vector<RooflineRow>> rooflineOf(const StepContext& context); // of a run
// What each kind of op reaches, a mark with its letter under the two ceilings; both axes logarithmic.
Plot rooflinePlot(const std::vector<RooflineRow>& rows, const Ceilings& ceilings);

} // namespace stagewright
