// The figures of a library schedule at a shape and at unit costs, its timeline, and the nearest possible shape. Pure;
// any thread; searched schedules and large shapes take seconds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/library/registry.h"
#include "schedules/model/cost_model.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct PreviewRequest {
    std::string name; // with parameters: "chimera:f=2"
    Shape shape;      // its costs are taken from `costs`
    CostModel::UnitCosts costs;
};

struct PreviewFigures {
    std::optional<Error> fault;   // impossible: everything below is empty
    std::optional<Shape> nearest; // the nearest possible shape, if one was found

    std::shared_ptr<const Timeline> timeline; // null if there are too many ops to draw
    std::size_t ops = 0;
    int stages = 0;
    WeightRule weights = WeightRule::Synchronous;
    Nanos makespan = 0;
    Nanos span = 0;
    double bubbleFraction = 0;
    double bubbleRateSpan = 0;
    std::vector<Bytes> peaks; // by rank
    ClosedForm closed;        // without link latency only
};

PreviewFigures previewFigures(const PreviewRequest& request, const Progress& progress = {});

// The nearest shape that the schedule supports: fewest changes first (default chunks, then microbatches, then
// ranks), small distances before large ones. None within 64 microbatches and 16 ranks: nothing.
std::optional<Shape> nearestShape(const std::string& name, const Shape& shape, const Progress& progress = {});

Shape withCosts(Shape shape, const CostModel::UnitCosts& costs); // costs that the generator may plan with

} // namespace stagewright
