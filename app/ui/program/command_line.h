// The command line of stagewright-ui.
#pragma once

#include <optional>

#include <QSize>
#include <QString>
#include <QStringList>

#include "schedules/base/units.h"

#include "widgets/theme.h"

namespace stagewright {

struct CommandLine {
    QStringList files;
    QString screenshot; // not empty: draw the window into this PNG and exit
    QString exportKind; // "png", "svg", "pdf": draw only the timeline into `output` and exit
    QString output;
    QSize size{1600, 1000};
    std::optional<ThemeName> theme;
    QString run;                                  // id or name within the first file
    QString baseline;                             // id or name within the first file
    QStringList compare;                          // two to four of them
    QString show;                                 // "edit", "record", "new": which part of the window a picture shows
    QString schedule;                             // library schedule, for --show new
    QString whatIf;                               // changes as in simulate --what-if
    QString select;                               // an op to select, in the search field's language
    int step = -1;                                // 1-based on the command line
    std::optional<std::pair<Nanos, Nanos>> range; // of time in the run, to be in view; of a link
    QString lesson;                               // id, number or file
    int lessonPage = -1;                          // 1-based on the command line
    int beat = -1;                                // 1-based on the command line; of playback
    bool hideRuns = false;
    bool hideMemory = false;
    struct { // for --export; by default as on screen
        bool paper = false;
        double millimetres = 0; // of the width; 0: not given
        double points = 0;      // of body text
        bool hatched = false;
        bool caption = true;
        bool legend = true;
        QStringList parts; // "timeline", "memory"; empty: as on screen
    } picture;
    bool help = false;
    bool version = false;
    QString fault; // wrong usage

    bool leaves() const { return !screenshot.isEmpty() || !exportKind.isEmpty(); }
};

CommandLine parseCommandLine(const QStringList& arguments); // without the program's name
QString helpText();

} // namespace stagewright
