// The document of a comparison: what `compare` prints and writes as JSON, and the HTML page shows. The first pair's JSON
// is at the top, that of further runs in the list `more`; the keys are those of docs/cli.md.
#pragma once

#include <cstddef>
#include <span>

#include "traces/compare/compare.h"
#include "traces/report/document/document.h"

namespace stagewright {

// runs: A, then those that it is compared with in the order of `comparisons`, one at least; all have timelines. People
// are shown the `ops` that moved most; JSON has all.
document::Document comparisonDocument(std::span<const Run* const> runs, std::span<const Comparison> comparisons,
                                      std::size_t ops);

// Parts of it, for panels: the figures of A and the others, the first of which is run number `firstOther`; those of one
// other run, whose letter is b. units: of A's times and sizes.
document::Table metricsTable(std::span<const Comparison* const> comparisons, std::size_t firstOther);
document::Section differencesSection(const Comparison& comparison, const Units& units, char b);
document::Section changeSection(const Comparison& comparison, const Units& units, char b);
std::string namedFor(const std::string& text, char b); // sentences name A and B: the latter is C or D

} // namespace stagewright
