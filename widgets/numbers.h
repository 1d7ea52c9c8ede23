// The numbers of schedules/base/quantity.h as the window prints them: the same texts, in the unit of time that the
// reader chose; never elided.
#pragma once

#include <QString>

#include "schedules/base/quantity.h"

namespace stagewright {

// The unit of durations and moments throughout the program.
void setTimeUnit(TimeUnit unit); // GUI thread; existing texts keep theirs
TimeUnit timeUnit();
double fixedTimeScale(); // ns of the chosen unit; 0: Automatic

QString withTrueMinus(QString text);             // "-" → U+2212
QString fixed(double value, int decimals);       // "−1.50"
QString shortText(double value, int most = 3);   // "27", "28.5": up to `most` decimals
QString signedFixed(double value, int decimals); // "+1.50", "−1.50", "0.00"

QString durationText(Nanos duration, const Units& units = {}); // "32.2 ms", "1.20 s", "253.4 µs", "3 units"
QString signedDurationText(Nanos duration, const Units& units = {});
// A moment, with the resolution that one pixel has: "146.74 ms".
QString momentText(Nanos time, double nanosPerPixel, const Units& units = {});
QString unitsText(double value, int most = 3);           // of unit-cost work: "1 unit", "2.5 units"
QString bytesText(Bytes bytes, const Units& units = {}); // "6.50 GiB", "512.0 KiB", "3 microbatches"
QString percentText(double fraction, int decimals = 1);  // "15.0 %"
// The relative change of a figure: "−16.6 %", "+2.0 %", "0.0 %"; every change that is printed as a share is
// printed by it. From ten times upwards "× 12"; from zero "new"; zero to zero "0.0 %".
QString changeText(double before, double now);
// "1 op", "32 ops", "1,024 ops": the count replaces %L1 in the second text; the first text is for exactly one.
QString countText(qint64 count, const QString& one, const QString& many);

} // namespace stagewright
