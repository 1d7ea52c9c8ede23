#include "schedules/layout/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

struct Constant {
    std::string_view key;
    double StepConstants::*place;
};
constexpr auto constantKeys = std::to_array<Constant>({{"efficiency", &StepConstants::efficiency},
                                                       {"memory_share", &StepConstants::memoryShare},
                                                       {"layer_floor_s", &StepConstants::layerFloor},
                                                       {"collective_s", &StepConstants::collective},
                                                       {"within_share", &StepConstants::withinShare},
                                                       {"between_share", &StepConstants::betweenShare},
                                                       {"optimizer_passes", &StepConstants::optimizerPasses}});
using Point = std::array<double, constantKeys.size()>; // logarithms

StepConstants constantsAt(const Point& point)
{
    StepConstants out;
    for (std::size_t i = 0; i < point.size(); ++i) out.*constantKeys[i].place = std::exp(point[i]);
    return out;
}

Point pointOf(const StepConstants& constants)
{
    Point out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::log(std::max(1e-12, constants.*constantKeys[i].place));
    return out;
}

// a + factor × (b − a)
Point along(const Point& a, const Point& b, double factor)
{
    Point out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + factor * (b[i] - a[i]);
    return out;
}

template <typename Loss>
Point minimum(Point start, const Loss& loss, const Progress& progress)
{
    constexpr int rounds = 6000, restarts = 4;
    for (int again = 0; again < restarts; ++again) {
        std::vector<std::pair<double, Point>> simplex{{loss(start), start}};
        for (std::size_t i = 0; i < start.size(); ++i) {
            Point corner = start;
            corner[i] += 0.3;
            simplex.emplace_back(loss(corner), corner);
        }
        for (int round = 0; round < rounds && !progress.cancelled(); ++round) {
            if (round % 100 == 0) progress.tell("fit", again * rounds + round, restarts * rounds);
            std::sort(simplex.begin(), simplex.end());
            Point centre{};
            for (std::size_t k = 0; k + 1 < simplex.size(); ++k)
                for (std::size_t i = 0; i < centre.size(); ++i)
                    centre[i] += simplex[k].second[i] / static_cast<double>(simplex.size() - 1);
            auto& [worst, corner] = simplex.back();
            const auto replace = [&](const Point& point, double at) { corner = point, worst = at; };
            const Point mirrored = along(corner, centre, 2);
            const double there = loss(mirrored);
            if (there < simplex.front().first) {
                const Point further = along(corner, centre, 3);
                const double beyond = loss(further);
                beyond < there ? replace(further, beyond) : replace(mirrored, there);
            } else if (there < simplex[simplex.size() - 2].first) {
                replace(mirrored, there);
            } else if (const Point nearer = along(corner, centre, 0.5); loss(nearer) < worst) {
                replace(nearer, loss(nearer));
            } else {
                for (std::size_t k = 1; k < simplex.size(); ++k) {
                    simplex[k].second = along(simplex.front().second, simplex[k].second, 0.5);
                    simplex[k].first = loss(simplex[k].second);
                }
            }
        }
        start = std::min_element(simplex.begin(), simplex.end())->second;
    }
    return start;
}

double predicted(const MeasuredStep& row, Cluster cluster, const StepConstants& constants)
{
    cluster.devices = row.way.devices();
    return stepOf(row.model, cluster, row.way, constants).sum();
}

} // namespace

Result<std::vector<MeasuredStep>> parseMeasuredSteps(std::string_view text)
{
    std::vector<MeasuredStep> rows;
    std::vector<std::string> titles;
    int number = 0;
    for (const std::string_view line : itemsOf(text, "\n")) {
        ++number;
        if (trimmed(line).empty()) continue;
        const auto cells = split(trimmed(line), ",");
        if (titles.empty()) {
            for (const std::string_view cell : cells) titles.emplace_back(trimmed(cell));
            continue;
        }
        const auto wrong = [&](std::string_view key, std::string_view why) {
            return fail(ErrorCode::Unreadable, fmt::format("line {}: {} {}", number, key, why),
                        "columns are hidden,layers,heads,t,p,d,b,samples,ms, and seq, vocab, v, recompute");
        };
        std::map<std::string_view, std::string_view> of;
        for (std::size_t i = 0; i < std::min(titles.size(), cells.size()); ++i) of[titles[i]] = trimmed(cells[i]);
        MeasuredStep row;
        row.model = {"measured", 0, 0, 0, 2048, 51200, 1};
        row.way.kept = KeptActivations::Inputs;
        int samples = 0;
        struct Column {
            std::string_view key;
            int* place;
        };
        for (const auto& [key, place] : std::to_array<Column>({{"hidden", &row.model.hidden},
                                                               {"layers", &row.model.layers},
                                                               {"heads", &row.model.heads},
                                                               {"seq", &row.model.sequence},
                                                               {"vocab", &row.model.vocabulary},
                                                               {"t", &row.way.tensor},
                                                               {"p", &row.way.pipeline},
                                                               {"v", &row.way.chunks},
                                                               {"d", &row.way.replicas},
                                                               {"b", &row.way.samples},
                                                               {"samples", &samples}})) {
            const auto found = of.find(key);
            const bool optional = key == "seq" || key == "vocab" || key == "v";
            if (found == of.end() && optional) continue;
            if (found == of.end() || !readNumber(found->second, *place) || *place < 1)
                return wrong(key, found == of.end() ? "is missing" : "is not a whole number of 1 or more");
        }
        double ms = 0;
        if (!readNumber(of["ms"], ms) || ms <= 0) return wrong("ms", "is not a time");
        row.seconds = ms / 1e3;
        if (const auto kept = of.find("recompute"); kept != of.end()) {
            const auto named = keptNamed(kept->second);
            if (!named) return wrong("recompute", "is none, selective or full");
            row.way.kept = *named;
        }
        row.way.sequence = row.way.kept == KeptActivations::Selective;
        if (samples % (row.way.replicas * row.way.samples) != 0) return wrong("samples", "is not a multiple of d × b");
        row.way.microbatches = samples / (row.way.replicas * row.way.samples);
        rows.push_back(row);
    }
    if (rows.empty()) return fail(ErrorCode::Unreadable, "no measured steps", "a title line, then a line for each");
    return rows;
}

Calibration residualsOf(const std::vector<MeasuredStep>& rows, const Cluster& cluster, const StepConstants& constants)
{
    Calibration out;
    out.constants = constants;
    for (const MeasuredStep& row : rows) {
        out.errors.push_back(predicted(row, cluster, constants) / row.seconds - 1);
        out.mean += std::abs(out.errors.back()) / static_cast<double>(rows.size());
        out.largest = std::max(out.largest, std::abs(out.errors.back()));
    }
    return out;
}

Result<Calibration> calibrate(const std::vector<MeasuredStep>& rows, const Cluster& cluster, const Progress& progress,
                              const StepConstants& start)
{
    if (rows.empty()) return fail(ErrorCode::Usage, "no measured steps", "give some, of different t, p, d and b");
    const Point given = pointOf(start);
    const std::size_t fitted = std::min(rows.size(), constantKeys.size());
    const auto only = [&](Point point) { // what is fitted moves
        std::copy(given.begin() + static_cast<std::ptrdiff_t>(fitted), given.end(),
                  point.begin() + static_cast<std::ptrdiff_t>(fitted));
        return point;
    };
    const auto loss = [&](const Point& point) {
        const StepConstants constants = constantsAt(only(point));
        return std::accumulate(rows.begin(), rows.end(), 0.0, [&](double sum, const MeasuredStep& row) {
            return sum + std::abs(predicted(row, cluster, constants) / row.seconds - 1);
        });
    };
    const Point found = only(minimum(given, loss, progress));
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
    Calibration out = residualsOf(rows, cluster, constantsAt(found));
    out.fitted = fitted;
    return out;
}

std::vector<std::pair<std::string, double>> namedConstants(const StepConstants& constants)
{
    std::vector<std::pair<std::string, double>> out;
    for (const auto& [key, place] : constantKeys) out.emplace_back(key, constants.*place);
    return out;
}

std::string toJson(const StepConstants& constants)
{
    nlohmann::ordered_json out;
    for (const auto& [key, value] : namedConstants(constants)) out[key] = value;
    return out.dump(2) + "\n";
}

Result<StepConstants> parseStepConstants(const std::string& text)
{
    const auto json = readForeignJson(text);
    if (!json.is_object())
        return fail(ErrorCode::Unreadable, "it is not a JSON object", "choose --calibrate writes one");
    StepConstants out;
    for (const auto& [key, place] : constantKeys) {
        const auto found = json.find(key);
        if (found == json.end() || !found->is_number() || !(found->get<double>() > 0))
            return fail(ErrorCode::Unreadable, fmt::format("{}: a number above 0 is expected", key),
                        "choose --calibrate writes all");
        out.*place = found->get<double>();
    }
    return out;
}

} // namespace stagewright
