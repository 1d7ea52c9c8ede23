#include "widgets/compare/metric_text.h"

#include <algorithm>
#include <cmath>

namespace stagewright {

namespace {

// One unit for both columns of a row, chosen by the larger value.
struct Scale {
    double factor = 1;
    QString unit;
    int decimals = 3;
};

Scale scaleFor(const MetricDelta& metric, const Units& units, double atLeast)
{
    const double most = std::max({std::abs(metric.a), std::abs(metric.b), atLeast});
    Scale scale;
    if (metric.unit == "fraction") return {0.01, QStringLiteral("%"), 1};
    auto choose = [&](std::initializer_list<std::pair<double, const char*>> steps) {
        for (const auto& [factor, unit] : steps)
            if (most >= factor || scale.unit.isEmpty()) scale = {factor, QString::fromUtf8(unit), 2};
    };
    if (metric.unit == "ns") {
        if (units.time != 1)
            scale = {static_cast<double>(units.time), QStringLiteral("units"), 2};
        else
            choose({{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}});
    } else if (metric.unit == "bytes") {
        if (units.memory != 1)
            scale = {static_cast<double>(units.memory), QStringLiteral("units"), 2};
        else
            choose({{1, "B"}, {1024.0, "KiB"}, {1048576.0, "MiB"}, {1073741824.0, "GiB"}});
    }
    if (!scale.unit.isEmpty() && most / scale.factor >= 100) scale.decimals = 1;
    return scale;
}

} // namespace

bool lessIsBetter(const std::string& key)
{
    return key.find("hidden") == std::string::npos && key.find("busy_fraction") == std::string::npos;
}

MetricText metricText(const MetricDelta& metric, const Units& units, bool shows, double most)
{
    const double delta = metric.delta();
    const Scale scale = scaleFor(metric, units, most);
    MetricText text;
    text.title = QString::fromStdString(metric.title);
    text.whole = text.title;
    text.title.replace(QLatin1String("Peak activation, rank"), QLatin1String("Peak, rank")).replace(QLatin1String("Loss after the last step"), QLatin1String("Last loss"));
    text.title.replace(QLatin1String("communication"), QLatin1String("comm."), Qt::CaseInsensitive);
    text.title[0] = text.title[0].toUpper();
    if (!scale.unit.isEmpty()) text.title += QStringLiteral(", ") + scale.unit;
    text.change = signedFixed(delta / scale.factor, scale.decimals);
    if (metric.unit == "ns" && metric.a != 0)
        text.change = changeText(metric.a, metric.b);
    else if (metric.unit == "fraction")
        text.change += QStringLiteral(" pt");
    const bool neutral = !shows || std::abs(delta / scale.factor) < 0.5 * std::pow(10, -scale.decimals);
    const bool good = (delta < 0) == lessIsBetter(metric.key);
    text.a = fixed(metric.a / scale.factor, scale.decimals);
    text.b = fixed(metric.b / scale.factor, scale.decimals);
    text.role = neutral ? "secondary" : good ? "better"
                                             : "worse";
    return text;
}

} // namespace stagewright
