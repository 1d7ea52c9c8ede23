#include "app/cli/text/lever_text.h"

#include <cmath>

#include <fmt/core.h>

#include "app/cli/text/run_json.h"
#include "app/cli/text/run_text.h"
#include "app/cli/text/table.h"
#include "schedules/base/step_number.h"

namespace stagewright {

namespace {

using Align = Table::Align;

std::string unitOf(const std::string& key)
{
    if (key == "peak_activation") return "bytes";
    return key.starts_with("bubble_") ? "fraction" : "ns";
}

} // namespace

std::string leversText(const LeverTable& table, const Units& units, bool colour)
{
    if (!table.simulated) return fmt::format("what would help: not simulated, {}\n", table.reason);
    const auto rows = table.shown();
    Table out({{"what would help", Align::Left},
               {"step", Align::Right},
               {"gain", Align::Right},
               {"", Align::Right},
               {"largest peak", Align::Right}});
    std::string unknown;
    bool any = false;
    for (const Lever& lever : rows) {
        if (!lever.makespan) {
            unknown += fmt::format("{}: {}\n", lever.title, lever.reason);
            continue;
        }
        const Nanos before = *lever.makespan + lever.gain;
        const double share = before > 0 ? -static_cast<double>(lever.gain) / static_cast<double>(before) : 0;
        any = any || (lever.gain > 0 && !table.ofOtherStep(lever));
        out.add({lever.title, units.timeText(*lever.makespan), lever.gain == 0 ? "=" : units.timeText(-lever.gain),
                 lever.gain == 0 ? "" : formatChange(share), units.memoryText(lever.peak)});
    }
    std::string text;
    if (!out.empty()) text += out.text(colour);
    if (!any) text += "none of these makes the step shorter\n";
    text += unknown;
    text +=
        fmt::format("each is simulated with the run's costs; with these, the unchanged step takes {}{}\n",
                    formatDuration(*table.simulated, units.time),
                    table.measured > 0 ? fmt::format(" (measured: {}, {})", formatDuration(table.measured, units.time),
                                                     formatChange(table.error()))
                                       : "");
    return text;
}

void addLeversJson(Json& object, const LeverTable& table, const Units& units)
{
    Json list = Json::array();
    for (const Lever& lever : table.shown())
        list.push_back({{"lever", lever.name},
                        {"title", lever.title},
                        {"makespan", lever.makespan ? timeJson(*lever.makespan, units) : Json(nullptr)},
                        {"gain", lever.makespan ? timeJson(lever.gain, units) : Json(nullptr)},
                        {"peak_activation", lever.peak ? memoryJson(*lever.peak, units) : Json(nullptr)},
                        {"step", lever.step < 0 ? Json(nullptr) : Json(lever.step)},
                        {"step_number", lever.step < 0 ? Json(nullptr) : Json(stepNumber(lever.step))},
                        {"reason", lever.makespan ? Json(nullptr) : Json(lever.reason)}});
    object["levers"] = std::move(list);
    object["levers_baseline"] = {{"makespan", table.simulated ? timeJson(*table.simulated, units) : Json(nullptr)},
                                 {"measured", table.simulated ? timeJson(table.measured, units) : Json(nullptr)},
                                 {"error", table.simulated ? Json(table.error()) : Json(nullptr)},
                                 {"reason", table.simulated ? Json(nullptr) : Json(table.reason)}};
    Json gains = Json::object();
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto gain = table.gainOf(static_cast<IdleCause>(c));
        gains[std::string(toText(static_cast<IdleCause>(c)))] = gain ? timeJson(*gain, units) : Json(nullptr);
    }
    object["gain_by_cause"] = std::move(gains);
}

std::string sampleText(const FigureSample& sample, const std::string& unit, const Units& units)
{
    const auto value = [&](double of) { return metricText(of, unit, false, units); };
    if (sample.low == sample.high) return fmt::format("the same in {}", plural(sample.steps, "step"));
    return fmt::format("median of {} {}, {}{} to {}", plural(sample.steps, "step"), value(sample.median),
                       sample.interval() ? "95 %: " : "from ", value(sample.low), value(sample.high));
}

void addStepSamplesJson(Json& object, const StepSamples& samples, const Units& units)
{
    object["over_steps"] = nullptr;
    if (samples.figures.empty()) return;
    Json all = Json::object();
    for (const auto& [key, sample] : samples.figures) {
        const std::string unit = unitOf(key);
        const auto value = [&](double of) {
            if (unit == "fraction") return Json(of);
            return unit == "bytes" ? memoryJson(std::llround(of), units) : timeJson(std::llround(of), units);
        };
        all[key] = {{"median", value(sample.median)},
                    {"low", value(sample.low)},
                    {"high", value(sample.high)},
                    {"steps", sample.steps}};
    }
    object["over_steps"] = std::move(all);
}

} // namespace stagewright
