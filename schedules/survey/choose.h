// ChooseSurvey: which parallelism for a model on a cluster. Every way in closed form, the best of them simulated; time and
// memory of the first ways, and the best way of each number of tensor-parallel devices and stages. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/layout/choose.h"
#include "schedules/survey/survey.h"

namespace stagewright {

struct WaysQuestion {
    std::string model, cluster, pinned; // as they were asked
    LayoutQuestion layout;
    // A table, FILE.json, whose layers are in the layout's constants, and that in words; or a recorded run, FILE#RUN,
    // whose layers and model withRecordedLayers() (app/costs) takes. Empty: none.
    std::string layersFrom, measured;
    bool ownModel = false; // sizes are given: else those of the layers
    bool fromRun() const { return !layersFrom.empty() && !layersFrom.ends_with(".json"); }
    int shown = 12; // ways
    int tried = 6;  // of them are simulated
    // Usage names the field. Reads the files that the question names, but for runs.
    static Result<WaysQuestion> of(const SurveyQuestion& question);
};

struct WaysAnswer {
    WaysQuestion question;
    LayoutAnswer all;
    std::vector<LayoutCandidate> shown;               // the first that fit; where none does, those that need least
    std::vector<std::optional<LayoutStep>> simulated; // of each, as far as it was tried and fits
    std::optional<LayoutCandidate> fewer;             // of fewer devices, that is faster
    bool fits() const { return all.fitting > 0; }
    std::string setup() const;                  // in sentences: what was asked, how many ways fit, whose constants
    std::string sentence() const;               // what it comes to
    std::string text(std::size_t way) const;    // a way in sentences, with the reason why it loses
    std::string command(std::size_t way) const; // that asks for this way alone, and writes its costs
};
// Usage: no way divides them.
Result<WaysAnswer> waysSurvey(const WaysQuestion& question, const Progress& progress = {});

SurveyAnswer toSurveyAnswer(const WaysAnswer& answer);
SurveyTable waysTable(const WaysAnswer& answer);
SurveyTable degreesTable(const WaysAnswer& answer);
// Stacked bars of the ways, in their order: what the step is made of, and the memory against the cap. The ids of their
// items are the ways.
Plot waysTime(const WaysAnswer& answer);
Plot waysMemory(const WaysAnswer& answer);
// The best way of each t (up) and p (across); the ids of its items are places in the answer's `all`.
Plot waysDegrees(const WaysAnswer& answer);
Plot waysWhole(Plot time, Plot memory, Plot degrees); // all of them in one, below each other

} // namespace stagewright
