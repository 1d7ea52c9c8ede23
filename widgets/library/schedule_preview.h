// SchedulePreview: what a library schedule comes to at a shape and at unit costs, and its picture. Made by a pure
// function that may run on any thread; searched schedules and big shapes take seconds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/registry.h"
#include "schedules/simulate.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct PreviewRequest {
    std::string name; // with parameters: "chimera:f=2"
    Shape shape;      // its costs are taken from `costs`
    CostModel::UnitCosts costs;
};

struct SchedulePreview {
    std::optional<Error> fault;   // it can't be made: everything below is empty
    std::optional<Shape> nearest; // the nearest shape that it can be made for, where one was found

    std::shared_ptr<const Timeline> timeline;    // null where there are too many ops to draw
    std::shared_ptr<const TimelinePanel> panel; // likewise
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

SchedulePreview previewOf(const PreviewRequest& request, const Progress& progress = {});

// The nearest shape that makes the schedule: fewest changes first (the schedule's own chunks, then microbatches, then
// ranks), small distances before large ones. None within 64 microbatches and 16 ranks: nothing.
std::optional<Shape> nearestShape(const std::string& name, const Shape& shape, const Progress& progress = {});

Shape withCosts(Shape shape, const CostModel::UnitCosts& costs); // what the generator may plan with

} // namespace stagewright
