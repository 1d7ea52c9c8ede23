// Numbers as the window prints them, on top of traces/run/quantity.h: true minus sign, a small set of units, unit-cost work with the
// word "units", never elided.
#pragma once

#include <QString>

#include "traces/run/quantity.h"

namespace stagewright {

// The unit of durations and moments throughout the program; Automatic chooses by size. Unit-cost work stays in units.
enum class TimeUnit {
    Automatic,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
};
void setTimeUnit(TimeUnit unit); // GUI thread; existing texts keep theirs
TimeUnit timeUnit();
double fixedTimeScale(); // ns of the chosen unit; 0: Automatic

QString withTrueMinus(QString text);             // "-" → U+2212
QString fixed(double value, int decimals);       // "−1.50"
QString signedFixed(double value, int decimals); // "+1.50", "−1.50", "0.00"

// Duration with a unit that leaves one to three digits before the point: "32.2 ms", "1.20 s", "253.4 µs", "3 units".
QString durationText(Nanos duration, const Units& units = {}, int decimals = -1); // −1: two places under 10, else one
QString signedDurationText(Nanos duration, const Units& units = {});
// A moment, with the resolution that one pixel has: "146.74 ms".
QString momentText(Nanos time, double nanosPerPixel, const Units& units = {});
QString bytesText(Bytes bytes, const Units& units = {}); // "6.5 GiB", "512 KiB", "3 units"
QString percentText(double fraction, int decimals = 1);  // "15.0 %"
// The relative change of a figure: "−16.6 %", "+2.0 %", "0.0 %"; every change that is printed as a share is
// printed by it. From ten times upwards "× 12"; from zero "new"; zero to zero "0.0 %".
QString changeText(double before, double now);
// "1 op", "32 ops", "1,024 ops": the count replaces %L1 in the second text; the first text is for exactly one.
QString countText(qint64 count, const QString& one, const QString& many);

} // namespace stagewright
