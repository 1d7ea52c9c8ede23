#include "widgets/timeline/inks.h"

#include <algorithm>

namespace stagewright {

Paint familyOf(LaneLook look, unsigned kind)
{
    if (look == LaneLook::Ops) return paintOf(static_cast<OpKind>(kind));
    if (look == LaneLook::Ranges) return static_cast<Paint>(kind % paintCount);
    switch (static_cast<KernelClass>(kind)) {
    case KernelClass::MatrixProduct: return Paint::Forward;
    case KernelClass::Attention: return Paint::Backward;
    case KernelClass::Normalisation:
    case KernelClass::Elementwise:
    case KernelClass::Reduction:
    case KernelClass::Embedding: return Paint::Weight;
    case KernelClass::Collective:
    case KernelClass::SendReceive: return Paint::Communication;
    case KernelClass::Optimizer: return Paint::Optimizer;
    case KernelClass::Copy:
    case KernelClass::Fill:
    case KernelClass::Other: break;
    }
    return Paint::Other;
}

const Fill& fillOf(const Theme& theme, LaneLook look, unsigned kind, int tint)
{
    switch (look) {
    case LaneLook::Classes: return theme.classes[std::min<std::size_t>(kind, kernelClassCount - 1)];
    case LaneLook::Ranges: return theme.ranges[kind % rangeFillCount];
    case LaneLook::Ops: break;
    }
    return theme.of(paintOf(static_cast<OpKind>(kind)), tint);
}

unsigned rangeInkOf(std::string_view name)
{
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : name)
        if (c < '0' || c > '9') hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return static_cast<unsigned>(hash >> 7) % static_cast<unsigned>(rangeFillCount);
}

Inks::Inks(const std::array<QRgb, paintCount>& paints) : families(paints)
{
    std::copy(paints.begin(), paints.end(), exact.begin());
}

Inks inksOf(const Theme& theme, LaneLook look)
{
    std::array<QRgb, paintCount> paints{};
    for (std::size_t p = 0; p < paintCount; ++p) paints[p] = theme.fills[p].fill.rgb();
    Inks inks(paints);
    if (look == LaneLook::Ops) return inks;
    inks.count = inkCount;
    inks.rareTicks = false;
    for (std::size_t i = 0; i < inkCount; ++i) inks.exact[i] = fillOf(theme, look, static_cast<unsigned>(i)).fill.rgb();
    constexpr std::array<KernelClass, paintCount> first{
        KernelClass::MatrixProduct, KernelClass::Attention, KernelClass::Elementwise,
        // of each family
        KernelClass::Collective, KernelClass::Optimizer, KernelClass::Copy};
    for (std::size_t p = 0; p < paintCount; ++p)
        inks.families[p] = look == LaneLook::Classes ? theme.classes[static_cast<std::size_t>(first[p])].fill.rgb()
                                                     : theme.ranges[p % rangeFillCount].fill.rgb();
    return inks;
}

} // namespace stagewright
