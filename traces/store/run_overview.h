// A run as shares of time, of any number of spans.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

inline constexpr std::int64_t summarySegment = -1;
Result<RunFile::Overview> readOverview(RunStore& store, std::int64_t id, int atLeastBuckets, std::optional<Lane> only);

// Sums the pyramids of a recording's many segments into those of summarySegment, if that saves reading.
Result<void> summarisePyramids(RunStore& store, std::int64_t id, const Progress& progress = {});

} // namespace stagewright
