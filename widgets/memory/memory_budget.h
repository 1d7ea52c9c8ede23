// MemoryBudget: how much activation memory a rank may use. Runs count bytes, or units if their work is unit-cost; each
// kind has its own budget.
#pragma once

#include <optional>

#include <QString>

#include "schedules/base/result.h"
#include "widgets/numbers.h"

namespace stagewright {

struct MemoryBudget {
    std::optional<Bytes> bytes;  // of runs that count bytes
    std::optional<double> units; // of runs in units (one: a microbatch's activations on a rank's share of the model)

    // The budget of a run with these units, in the run's bytes.
    std::optional<Bytes> of(const Units& units) const;
    // As typed: "6 MiB", "2 GB", "4096 B" (a number alone: MiB), "3" or "3 microbatches" in runs that count them.
    // Empty: none.
    Result<void> set(const QString& text, const Units& units);
    QString text(const Units& units) const; // empty: none
    bool operator==(const MemoryBudget&) const = default;
};

} // namespace stagewright
