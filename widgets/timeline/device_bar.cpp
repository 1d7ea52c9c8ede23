#include "widgets/timeline/device_bar.h"

#include <algorithm>
#include <array>
#include <vector>

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

} // namespace

void fillDevice(PanelRank& row, Nanos extent)
{
    std::array<std::vector<Piece>, 3> parts; // computing, communication, copy engines
    for (const PanelLane& lane : row.lanes) {
        if (lane.lane != Lane::Kernel && lane.lane != Lane::Copy) continue;
        for (const Slice& slice : lane.data.slices()) {
            const std::size_t part = lane.lane == Lane::Copy ? 2 : isCommunication(static_cast<KernelClass>(slice.kind)) ? 1
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
    row.device.setLook(LaneLook::Classes);
    for (const Piece& piece : laidOver(laidOver(parts[0], parts[1]), parts[2])) {
        Span span;
        span.start = piece.begin;
        span.end = piece.end;
        row.device.appendLoose(span, 0, 0, piece.ink);
        busy += piece.end - piece.begin;
    }
    if (row.device.size() > 0 && extent > 0) row.deviceBusy = static_cast<double>(busy) / static_cast<double>(extent);
}

} // namespace stagewright
