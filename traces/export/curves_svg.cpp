#include "traces/export/curves_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "traces/export/timeline_svg.h"

namespace stagewright {
namespace {

constexpr double curveLeft = 64, curveRight = 16, curveTop = 40, curveBottom = 40, curveHeight = 300;
constexpr std::array lineClasses{"first", "second"};

struct CurveAxis {
    double least = 0, most = 1, step = 1;
    int decimals() const { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }
};

// At most `ticks` steps of 1, 2 or 5; both ends are on ticks.
CurveAxis axisOf(double least, double most, int ticks, bool whole)
{
    if (most - least < 1e-12) {
        least -= 0.5;
        most += 0.5;
    }
    const double exact = (most - least) / ticks;
    double step = std::pow(10, std::floor(std::log10(exact)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
        if (step * factor >= exact - 1e-12) {
            step *= factor;
            break;
        }
    if (whole) step = std::max(1.0, step);
    return {std::floor(least / step + 1e-9) * step, std::ceil(most / step - 1e-9) * step, step};
}

} // namespace

std::string curvesSvg(const TableCurves& curves, const std::string& title, double width)
{
    if (curves.empty()) return {};
    const CurvePoint least = curves.least(), most = curves.most();
    CurveAxis across = axisOf(least.x, most.x, 12, true);
    across.least = least.x; // the lines fill the width
    across.most = std::max(most.x, least.x + 1);
    const CurveAxis up = axisOf(least.y, most.y, 6, false);
    const double right = width - curveRight, bottom = curveHeight - curveBottom;
    const auto x = [&](double value) {
        return curveLeft + (value - across.least) / (across.most - across.least) * (right - curveLeft);
    };
    const auto y = [&](double value) {
        return bottom - (value - up.least) / (up.most - up.least) * (bottom - curveTop);
    };
    std::string out = fmt::format(
        "<svg class=\"sw\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n", width,
        curveHeight, escaped(title), escaped(title));
    for (int i = 0; up.least + i * up.step <= up.most + up.step * 1e-6; ++i) {
        const double value = up.least + i * up.step;
        out += fmt::format("<path class=\"grid\" d=\"M{0} {1:.1f}H{2:.1f}\"/><text class=\"tick\" text-anchor=\"end\" "
                           "x=\"{3}\" y=\"{4:.1f}\">{5:.{6}f}</text>\n",
                           curveLeft, y(value), right, curveLeft - 8, y(value) + 4, value, up.decimals());
    }
    for (double value = std::ceil(across.least / across.step) * across.step; value <= across.most + 1e-9;
         value += across.step)
        out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2:.1f}\"/><text class=\"tick\" "
                           "text-anchor=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4:.0f}</text>\n",
                           x(value), curveTop, bottom, bottom + 16, value);
    out += fmt::format("<text class=\"sub\" x=\"0\" y=\"14\">{}</text><text class=\"sub\" text-anchor=\"end\" "
                       "x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       escaped(curves.up), right, bottom + 32, escaped(curves.across));
    double legend = curveLeft;
    for (std::size_t i = 0; i < curves.curves.size(); ++i) {
        const TableCurve& curve = curves.curves[i];
        const char* name = lineClasses[i % lineClasses.size()];
        std::string path;
        for (std::size_t k = 0; k < curve.points.size(); ++k)
            path += fmt::format("{}{:.2f} {:.2f}", k == 0 ? "M" : "L", x(curve.points[k].x), y(curve.points[k].y));
        if (curve.points.size() == 1)
            out += fmt::format(
                "<circle class=\"curve {}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\"><title>{}</title></circle>\n", name,
                x(curve.points[0].x), y(curve.points[0].y), escaped(curve.title));
        else
            out += fmt::format("<path class=\"curve {}\" d=\"{}\"><title>{}</title></path>\n", name, path,
                               escaped(curve.title));
        if (curves.curves.size() < 2) continue;
        out += fmt::format(
            "<path class=\"curve {}\" d=\"M{:.1f} 28h22\"/><text class=\"tick\" x=\"{:.1f}\" y=\"32\">{}</text>\n",
            name, legend, legend + 28, escaped(curve.title));
        legend += 28 + 7.0 * static_cast<double>(curve.title.size()) + 24;
    }
    return out + "</svg>\n";
}

} // namespace stagewright
