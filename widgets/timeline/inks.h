// Inks: what colour a slice is drawn in, by what its lane shows. Columns of crowded slices are summed ink by ink; a
// pyramid keeps sums by families of inks only, so a draft of a lane of kernels is coloured by family.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <QRgb>

#include "traces/analysis/kernel_class.h"
#include "widgets/theme.h"

namespace stagewright {

enum class LaneLook : std::uint8_t {
    Ops,     // Slice::kind is an OpKind
    Classes, // … a KernelClass: kernels and copies of runs without ops
    Ranges,  // … 0 … rangeFillCount − 1, by the range's name
};
inline constexpr std::size_t inkCount = kernelClassCount;
static_assert(inkCount >= paintCount && inkCount >= rangeFillCount && inkCount <= 32);

inline std::size_t inkOf(LaneLook look, unsigned kind)
{
    return look == LaneLook::Ops ? static_cast<std::size_t>(paintOf(static_cast<OpKind>(kind))) : kind;
}
// Matrix products, attention and everything else that computes are the first three, communication, optimizer and copies
// the others.
Paint familyOf(LaneLook look, unsigned kind);
const Fill& fillOf(const Theme& theme, LaneLook look, unsigned kind, int tint = 0);
unsigned rangeInkOf(std::string_view name); // the same for ranges whose names differ only in digits

// The colours of a lane's columns.
struct Inks {
    std::array<QRgb, inkCount> exact{};
    std::array<QRgb, paintCount> families{};
    std::size_t count = paintCount; // of `exact`
    bool rareTicks = true;          // inks from Communication on get a tick where they are too rare for a pixel

    Inks() = default;
    Inks(const std::array<QRgb, paintCount>& paints); // of ops
};
Inks inksOf(const Theme& theme, LaneLook look);

} // namespace stagewright
