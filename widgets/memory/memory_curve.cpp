#include "widgets/memory/memory_curve.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "schedules/base/ticks.h"
#include "schedules/model/memory_ink.h"
#include "widgets/literals.h"
#include "widgets/plot/painter_canvas.h"
#include "widgets/sentence.h"

namespace stagewright {

Bytes MemoryCurve::at(Nanos time) const
{
    const std::size_t next = after(time);
    return next == 0 ? 0 : points[next - 1].inUse;
}

std::size_t MemoryCurve::after(Nanos time) const
{
    const auto found =
        std::upper_bound(points.begin(), points.end(), time, [](Nanos t, const MemoryPoint& p) { return t < p.time; });
    return static_cast<std::size_t>(found - points.begin());
}

Extremes MemoryCurve::over(std::size_t first, std::size_t last) const
{
    return index.over(first, last, [this](std::size_t i) { return static_cast<double>(points[i].inUse); });
}

Bytes MemoryCurve::peakIn(const TimeRange& range) const
{
    const Bytes carried = at(range.begin);
    const Extremes inside = over(after(range.begin), after(range.end - 1));
    return inside.empty() ? carried : std::max(carried, static_cast<Bytes>(inside.most));
}

std::optional<Nanos> MemoryCurve::firstOver(Bytes limit) const
{
    const std::size_t found = index.firstAbove(static_cast<double>(limit),
                                               [this](std::size_t i) { return static_cast<double>(points[i].inUse); });
    if (found >= points.size()) return std::nullopt;
    return std::max<Nanos>(0, points[found].time);
}

void MemoryCurve::seal()
{
    index.build(points.size(), [this](std::size_t i) { return static_cast<double>(points[i].inUse); });
    peak = peakTime = 0;
    bool any = false;
    for (const MemoryPoint& point : points) {
        if (any && point.inUse <= peak) continue;
        any = true;
        peak = point.inUse;
        peakTime = point.time;
    }
}

MemoryCurve curveOf(const MemorySeries& series, Nanos origin, Nanos duration)
{
    MemoryCurve curve;
    curve.end = duration;
    curve.points.reserve(series.points.size());
    for (const MemoryPoint& point : series.points) curve.points.push_back({point.time - origin, point.inUse});
    curve.seal();
    curve.peak = series.peak;
    curve.peakTime = series.peakTime - origin;
    return curve;
}

const std::vector<MemoryCategory>& stackOrder()
{
    using C = MemoryCategory;
    static const std::vector<C> order{C::Activations, C::Communication, C::Workspace, C::Buckets,
                                      C::Gathered,    C::Gradients,     C::Weights,   C::Optimizer};
    return order;
}

QString titleOf(MemoryCategory category) { return qtText(traitsOf(category).title); }

QColor colourOf(MemoryCategory category, const Theme& theme) { return colourOf(inkOf(category), theme); }

std::optional<double> CounterCurve::at(Nanos time) const
{
    const auto next = std::upper_bound(samples.begin(), samples.end(), time,
                                       [](Nanos t, const CounterSample& s) { return t < s.time; });
    if (next == samples.begin() || !std::isfinite((next - 1)->value)) return std::nullopt;
    return (next - 1)->value;
}

std::vector<Bytes> memoryTicks(Bytes top, double height, double minSpacing, const Units& units)
{
    std::vector<Bytes> ticks{0};
    if (top <= 0 || height <= 0) return ticks;
    double unit = 1;
    if (units.memory != 1) {
        unit = static_cast<double>(units.memory);
    } else {
        for (const double size : {1073741824.0, 1048576.0, 1024.0})
            if (unit == 1 && static_cast<double>(top) >= size) unit = size;
    }
    const double step = roundStep(std::max(static_cast<double>(top) / unit * minSpacing / height, 1 / unit)).size;
    for (int n = 1; n * step * unit <= static_cast<double>(top) * (1 + 1e-12); ++n) {
        ticks.push_back(static_cast<Bytes>(std::llround(n * step * unit)));
    }
    const double whole = static_cast<double>(top) / unit, decade = std::pow(10.0, std::floor(std::log10(whole)));
    for (const double factor : {5.0, 2.0, 1.0}) { // of a low chart the largest round value, so that it has a scale
        if (ticks.size() > 1 || factor * decade > whole || factor * decade < 1) continue;
        if (factor * decade / whole * height >= 0.35 * minSpacing)
            ticks.push_back(static_cast<Bytes>(std::llround(factor * decade * unit)));
    }
    return ticks;
}

std::vector<double> counterTicks(double least, double most, double height, double minSpacing)
{
    if (!(most > least) || height <= 0) return {};
    return roundValues(least, most, roundStep((most - least) * minSpacing / height).size);
}

CounterUnit counterUnit(double most, const QString& unit)
{
    const double size = std::abs(most);
    if (unit == "bytes"_L1 || unit == "B"_L1) {
        const NumberScale scale = byteScale(size);
        return {scale.size, QString::fromUtf8(scale.name.data(), static_cast<qsizetype>(scale.name.size()))};
    }
    if (unit == "%"_L1) return {1, unit};
    for (const auto& [at, factor, name] :
         {std::tuple{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}})
        if (size >= at) return {factor, QString::fromLatin1(name) + unit};
    return {1, unit};
}

QString counterText(double value, const QString& unit)
{
    if (!std::isfinite(value)) return u"–"_s;
    if (unit == "bytes"_L1 || unit == "B"_L1) return bytesText(std::llround(value));
    const CounterUnit printed = counterUnit(value, unit);
    const double scaled = value / printed.factor;
    const int decimals = std::abs(scaled) >= 99.95 || scaled == std::floor(scaled) ? 0
                         : std::abs(scaled) >= 9.995                               ? 1
                         : std::abs(scaled) >= 0.0995                              ? 2
                                                                                   : 4;
    const QString text = fixed(scaled, decimals);
    return printed.name.isEmpty() ? text : text + u' ' + printed.name;
}

} // namespace stagewright
