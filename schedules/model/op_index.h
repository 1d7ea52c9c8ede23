// OpIndex: which op makes what another op needs. Cells number (stage, microbatch, slice, half); an op covers one cell
// or, where it has a count or is whole while others are cut, several. Ops are numbered rank-major, as in SimResult.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/kinds.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct CellSpace {
    int stages = 0;
    int microbatches = 0;
    int slices = 1;
    int halves = 1;
    bool plain = true; // every op covers exactly one cell

    std::size_t perMicrobatch() const { return static_cast<std::size_t>(slices) * static_cast<std::size_t>(halves); }
    std::size_t size() const
    {
        return static_cast<std::size_t>(stages) * static_cast<std::size_t>(microbatches) * perMicrobatch();
    }
    std::size_t cell(int stage, int microbatch) const
    {
        return (static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches) +
                static_cast<std::size_t>(microbatch)) *
               perMicrobatch();
    }
    // Calls visit(cell) for what `op` covers at `stage`, until it returns false. False if it did.
    template <typename Visit>
    bool each(const Op& op, int stage, Visit&& visit) const
    {
        if (plain) return visit(cell(stage, op.microbatch));
        const int firstSlice = op.slice < 0 ? 0 : op.slice;
        const int lastSlice = op.slice < 0 ? slices - 1 : op.slice;
        const int firstHalf = op.half == 0 ? 0 : op.half - 1;
        const int lastHalf = op.half == 0 ? halves - 1 : op.half - 1;
        for (int k = 0; k < op.count; ++k) {
            const std::size_t base = cell(stage, op.microbatch + k);
            for (int slice = firstSlice; slice <= lastSlice; ++slice)
                for (int half = firstHalf; half <= lastHalf; ++half) {
                    const auto sub = static_cast<std::size_t>(slice * halves + half);
                    if (!visit(base + sub)) return false;
                }
        }
        return true;
    }
};

// The cells of a schedule. Fails (Invalid) where ops or the placement point outside the schedule's shape.
Result<CellSpace> cellsOf(const Schedule& schedule);
// "" or what is wrong with this op against the schedule's shape.
std::string opFault(const Schedule& schedule, const Op& op);
// "" or what is wrong with the shape itself (numbers of ranks, rows, stages; pairs).
std::string shapeFault(const Schedule& schedule);

inline constexpr std::uint32_t noOp = 0xffffffffu;

struct OpPlace {
    int rank = 0;
    std::size_t position = 0;
};

class OpIndex {
public:
    OpIndex(const Schedule& schedule, const CellSpace& cells); // the first of two ops for one cell counts

    const CellSpace& cells() const { return m_cells; }
    std::uint32_t producer(Product product, std::size_t cell) const
    {
        const auto& table = m_producer[static_cast<std::size_t>(product)];
        return table.empty() ? noOp : table[cell];
    }
    std::uint32_t idOf(int rank, std::size_t position) const
    {
        return m_offsets[static_cast<std::size_t>(rank)] + static_cast<std::uint32_t>(position);
    }
    OpPlace placeOf(std::uint32_t id) const; // O(log ranks)
    std::size_t opCount() const { return m_offsets.back(); }

    // Calls visit(producer id, need, its stage) for each distinct producer of an op's inputs; noOp where it is missing.
    template <typename Visit>
    void eachInput(const Op& op, Visit&& visit) const
    {
        m_graph.eachNeed(op, m_cells.stages, [&](const Need& need, int stage) {
            const Product product = productOf(need.kind);
            std::uint32_t last = noOp;
            bool first = true;
            m_cells.each(op, stage, [&](std::size_t cell) {
                const std::uint32_t id = producer(product, cell);
                if (id == noOp && need.ifThere) return true;
                if (first || id != last) visit(id, need, stage);
                first = false;
                last = id;
                return true;
            });
        });
    }

private:
    CellSpace m_cells;
    StageGraph m_graph;
    std::vector<std::uint32_t> m_offsets; // ranks + 1
    std::array<std::vector<std::uint32_t>, productCount> m_producer;
};

} // namespace stagewright
