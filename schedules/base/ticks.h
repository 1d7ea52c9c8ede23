// The one rule for round values on axes and rulers: steps of 1, 2 or 5 times a power of ten.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace stagewright {

struct RoundStep {
    double size = 1;
    int lead = 1; // 1, 2 or 5
    int decimals() const { return std::max(0, static_cast<int>(-std::floor(std::log10(size) + 1e-9))); }
};

// The smallest round step that is at least `least` > 0.
inline RoundStep roundStep(double least)
{
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const int lead : {1, 2, 5})
        if (lead * power >= least * (1 - 1e-9)) return {lead * power, lead};
    return {10 * power, 1};
}

// The step for at most `most` steps in a range; a range of nothing is taken as a tiny one.
inline RoundStep roundStep(double range, int most) { return roundStep(std::max(range, 1e-12) / std::max(1, most)); }

// The multiples of a step from least to most, both included; zero is 0 exactly.
inline std::vector<double> roundValues(double least, double most, double step)
{
    std::vector<double> values;
    for (double n = std::ceil(least / step - 1e-9); n * step <= most + step * 1e-6; n += 1)
        values.push_back(n == 0 ? 0 : n * step);
    return values;
}

} // namespace stagewright
