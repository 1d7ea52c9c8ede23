// ImportReading: reads other tools' traces for the import dialog, builds their runs, and describes each. Pure
// functions, any thread; GUI texts are built here, so that showing them costs nothing.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QString>
#include <QStringList>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/import/import.h"

namespace stagewright {

struct ImportQuestion {
    QStringList words; // files, folders, patterns with * and ?
    QString rulesFile; // which names are which ops (traces/foreign/label_rules.h); empty: the built-in ones
    bool hostOps = false;
    bool operator==(const ImportQuestion&) const = default;
};

struct ImportFact {
    QString label; // "Clocks"
    QString value; // "agree, ± 12.0 µs"
    QString tooltip;
    bool wrong = false; // something is missing or could not be read
};

struct ImportDescription { // of a run
    QString schedule;      // short, for a table: "1F1B", "custom order", "no ops"
    std::vector<ImportFact> facts;
    QStringList notes; // sentences about oddities
};

struct ImportReading {
    ImportResult result;
    std::vector<ImportDescription> descriptions; // by run
    QStringList refused;                         // files that could not be read, with the reason and the remedy
    QString target;                              // where to store it: beside the source, else in the documents folder
};

struct ImportAnswer {
    std::shared_ptr<const ImportReading> reading; // null: error
    std::optional<Error> error;
    bool ofRules = false; // the error is in the rules file
};

// Reads everything. Runs without a recording time get the current one. Progress: "bytes", then the progress of
// assemble().
ImportAnswer readTraces(const ImportQuestion& question, const Progress& progress = {});

// Whether the window imports it as a trace: a folder, or a file with the suffix of a format or of packed files.
bool isTrace(const QString& path);
// What dialogs offer of traces and schedules: "*.pftrace", "*.json", … "*.zip".
QStringList readPatterns();

} // namespace stagewright
