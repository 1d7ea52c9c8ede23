#include "widgets/timeline/device_bar.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <QCoreApplication>

#include "traces/analysis/kernel_spans.h"
#include "widgets/literals.h"

namespace stagewright {

namespace {

// Pieces of disjoint intervals, by start.
struct Piece {
    Nanos begin;
    Nanos end;
    std::uint8_t ink;
};

// The rest of `below` that nothing of `above` covers, and `above`, in order. Both are disjoint and sorted.
std::vector<Piece> laidOver(const std::vector<Piece>& above, const std::vector<Piece>& below)
{
    std::vector<Piece> out;
    out.reserve(above.size() + below.size());
    std::size_t next = 0;
    for (const Piece& piece : below) {
        Nanos from = piece.begin;
        while (next < above.size() && above[next].begin < piece.end) {
            if (above[next].begin > from) out.push_back({from, above[next].begin, piece.ink});
            from = std::max(from, above[next].end);
            if (above[next].end > piece.end) break; // reaches into the next one
            out.push_back(above[next++]);
        }
        if (from < piece.end) out.push_back({from, piece.end, piece.ink});
    }
    out.insert(out.end(), above.begin() + static_cast<std::ptrdiff_t>(next), above.end());
    std::stable_sort(out.begin(), out.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    return out;
}

int gpuOfLane(const PanelRank& row, const PanelLane& lane) { return gpuOf(Track{row.rank, lane.lane, lane.track}); }

// What these lanes do, one class at a time; returns how long any of them does something.
Nanos fillBar(LaneData& bar, const std::vector<const PanelLane*>& lanes)
{
    std::array<std::vector<Piece>, 3> parts; // computing, communication, copy engines
    for (const PanelLane* one : lanes) {
        const PanelLane& lane = *one;
        for (const Slice& slice : lane.data.slices()) {
            const std::size_t part = lane.lane == Lane::Copy                                 ? 2
                                     : isCommunication(static_cast<KernelClass>(slice.kind)) ? 1
                                                                                             : 0;
            parts[part].push_back({slice.begin(), slice.end(), static_cast<std::uint8_t>(slice.kind)});
        }
    }
    for (std::vector<Piece>& part : parts) { // what started first is shown
        std::stable_sort(part.begin(), part.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
        Nanos free = 0;
        for (Piece& piece : part) {
            piece.begin = std::max(piece.begin, free);
            free = std::max(free, piece.end);
        }
        std::erase_if(part, [](const Piece& piece) { return piece.end <= piece.begin; });
    }
    Nanos busy = 0;
    bar.setLook(LaneLook::Classes);
    for (const Piece& piece : laidOver(laidOver(parts[0], parts[1]), parts[2])) {
        Span span;
        span.start = piece.begin;
        span.end = piece.end;
        bar.appendLoose(span, 0, 0, piece.ink);
        busy += piece.end - piece.begin;
    }
    return busy;
}

} // namespace

void fillDevice(PanelRank& row, Nanos extent)
{
    std::vector<const PanelLane*> all;
    std::map<int, std::vector<const PanelLane*>> byGpu;
    for (const PanelLane& lane : row.lanes) {
        if (!isDeviceLane(lane.lane)) continue;
        all.push_back(&lane);
        if (lane.data.size() > 0) byGpu[gpuOfLane(row, lane)].push_back(&lane);
    }
    const Nanos busy = fillBar(row.device, all);
    if (row.device.size() == 0 || extent <= 0) return;
    const auto share = [extent](Nanos time) { return static_cast<double>(time) / static_cast<double>(extent); };
    row.deviceBusy = share(busy);
    if (byGpu.size() < 2) return;
    double sum = 0;
    for (const auto& [gpu, lanes] : byGpu) {
        PanelRank::Gpu& one = row.gpus.emplace_back();
        one.gpu = gpu;
        one.busy = share(fillBar(one.device, lanes));
        sum += one.busy;
    }
    row.deviceBusy = sum / static_cast<double>(row.gpus.size());
}

QString gpusText(const PanelRank& rank)
{
    return rank.gpus.empty() ? QString() : u"mean of %1 GPUs"_s.arg(rank.gpus.size());
}

std::optional<double> gpuBusyAt(const PanelRank& rank, std::size_t lane)
{
    if (rank.gpus.empty() || !isDeviceLane(rank.lanes[lane].lane)) return std::nullopt;
    const int gpu = gpuOfLane(rank, rank.lanes[lane]);
    for (std::size_t before = 0; before < lane; ++before)
        if (isDeviceLane(rank.lanes[before].lane) && gpuOfLane(rank, rank.lanes[before]) == gpu) return std::nullopt;
    for (const PanelRank::Gpu& one : rank.gpus)
        if (one.gpu == gpu) return one.busy;
    return std::nullopt;
}

} // namespace stagewright
