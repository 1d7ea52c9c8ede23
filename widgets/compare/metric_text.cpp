#include "widgets/compare/metric_text.h"

#include <algorithm>
#include <cmath>

#include "widgets/literals.h"

namespace stagewright {

namespace {

// One unit for both columns of a row, chosen by the larger value.
struct Scale {
    double factor = 1;
    QString unit;
    int decimals = 3;
    bool counts = false; // of unit-cost work

    QString text(double value) const { return counts ? shortText(value / factor) : fixed(value / factor, decimals); }
};

Scale scaleFor(const MetricDelta& metric, const Units& units, double atLeast)
{
    const double most = std::max({std::abs(metric.a), std::abs(metric.b), atLeast});
    Scale scale;
    if (metric.unit == "fraction") return {0.01, u"%"_s, 1};
    const auto inScale = [&](const NumberScale& of) {
        scale = {of.size, QString::fromUtf8(of.name.data(), static_cast<qsizetype>(of.name.size())),
                 of.size == 1 ? 0 : decimalsOf(most / of.size)};
    };
    if (metric.unit == "ns") {
        if (units.time != 1)
            scale = {static_cast<double>(units.time), u"units"_s, 3, true};
        else
            inScale(timeScale(most));
    } else if (metric.unit == "bytes") {
        if (units.memory != 1)
            scale = {static_cast<double>(units.memory), u"microbatches"_s, 3, true};
        else
            inScale(byteScale(most));
    }
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
    text.title.replace("Peak activation, rank"_L1, "Peak, rank"_L1)
        .replace("Loss after the last step"_L1, "Last loss"_L1);
    text.title.replace("communication"_L1, "comm."_L1, Qt::CaseInsensitive);
    text.title[0] = text.title[0].toUpper();
    if (!scale.unit.isEmpty()) text.title += u", "_s + scale.unit;
    text.change = (delta > 0 && scale.text(delta) != scale.text(0) ? u"+"_s : QString()) + scale.text(delta);
    if (metric.unit == "ns" && metric.a != 0)
        text.change = changeText(metric.a, metric.b);
    else if (metric.unit == "fraction")
        text.change += u" pt"_s;
    const bool neutral = !shows || std::abs(delta / scale.factor) < 0.5 * std::pow(10, -scale.decimals);
    const bool good = (delta < 0) == lessIsBetter(metric.key);
    text.a = scale.text(metric.a);
    text.b = scale.text(metric.b);
    text.role = neutral ? "secondary" : good ? "better" : "worse";
    return text;
}

} // namespace stagewright
