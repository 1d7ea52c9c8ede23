// Theme: the palettes (light, dark, high contrast) and the bundled fonts. Windows, exports and documentation use the
// same colours; the fills keep a CIEDE2000 distance of at least 15 under simulated colour-vision deficiency. High
// contrast is on black: text at 7:1 or more, fills and lines at 3:1 or more.
#pragma once

#include <array>

#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>

#include "schedules/model/kinds.h"
#include "schedules/model/op.h"
#include "traces/analysis/kernel_class.h"

namespace stagewright {

// How a slice is painted. Full backward and input gradient share a colour; the letter distinguishes them.
using Paint = ColourClass;
inline constexpr std::size_t paintCount = colourClassCount;
// Tints that distinguish the chunks of one rank, or the copies of a stage: 0 is the plain colour; further chunks start
// over.
inline constexpr int tintCount = 4;
inline Paint paintOf(OpKind kind) { return ruleOf(kind).colour; }
inline constexpr std::size_t rangeFillCount = 6; // of named ranges, by name

struct Fill {
    QColor fill;
    QColor label;
    QColor edge; // 1 px, darker than the fill (lighter in the dark theme's optimizer)
    enum class Hatch : std::uint8_t {
        None,
        Falling,
        Level,
        Upright,
    };
    Hatch hatch = Hatch::None; // over the fill, for grey print
};

enum class ThemeName {
    Light,
    Dark,
    HighContrast,
};

struct Theme {
    bool dark = false;
    bool highContrast = false; // dark as well
    std::array<Fill, paintCount> fills;
    std::array<std::array<Fill, tintCount>, paintCount> tints; // [paint][0] is fills[paint]
    std::array<Fill, kernelClassCount> classes;                // of kernels and copies in runs without ops
    // of named ranges there: pale, so that the devices stand out
    std::array<Fill, rangeFillCount> ranges;
    QColor bubbleFill, bubbleHatch;
    QColor critical; // critical path and budget
    QColor canvas, panel, window;
    QColor text, secondary, faint;
    QColor separator, grid, accent, onAccent;
    QColor better, worse;              // of a difference
    QColor pill, pillText;             // duration pill in a gap
    QColor track;                      // communication track, bar grooves
    QColor hoverLabel, hoverLabelText; // ruler's time label
    QColor memoryLine, memoryFill, ghost;

    // The same colours with a hatch on every kind except forwards, as in exports for print; one per theme.
    const Theme& hatchedTwin() const;
    bool hatched() const { return of(Paint::Backward).hatch != Fill::Hatch::None; }
    const Fill& of(OpKind kind) const { return fills[static_cast<std::size_t>(paintOf(kind))]; }
    const Fill& of(Paint paint) const { return fills[static_cast<std::size_t>(paint)]; }
    const Fill& of(KernelClass kind) const { return classes[static_cast<std::size_t>(kind)]; }
    const Fill& of(Paint paint, int tint) const
    {
        return tints[static_cast<std::size_t>(paint)][static_cast<std::size_t>(tint % tintCount)];
    }
    QPalette palette() const; // for the stock widgets

    static const Theme& light();
    static const Theme& darkTheme();
    static const Theme& highContrastTheme();
    static const Theme& named(bool dark) { return dark ? darkTheme() : light(); }
    static const Theme& named(ThemeName name);
};

// `share` of the way from one colour to another, 0 to 1; opaque.
QColor mixed(const QColor& from, const QColor& to, float share);

void hatchKinds(Theme& theme); // backward falling, weight gradient level, communication upright

// Registers the bundled Inter once per process (needs a QGuiApplication) and returns its family name, or, if that
// fails, the application's default font family.
QString loadFonts();

enum class FontRole {
    Body,
    Small,
    Label,
    Strong,
    Rank,
    Headline,
    Identifier, // names of programs: kernels, ranges, files
};
// Body 12, Small 11, Label 12 semibold (slices), Strong 12 semibold, Rank 13 semibold, Headline 30 semibold,
// Identifier 11 of even width; pixels at 96 dpi, times textScale().
QFont fontOf(FontRole role);

} // namespace stagewright
