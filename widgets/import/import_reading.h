// ImportReading: traces of other tools read for the import dialog, the runs they make, and what there is to say of each. Pure
// functions, any thread; GUI texts are made here, so that showing them costs nothing.
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
    QString rulesFile; // which names stand for which ops (traces/import/label_rules.h); empty: those that are built in
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
    QString schedule;      // as a table has room for it: "1F1B", "an order of its own", "no ops"
    std::vector<ImportFact> facts;
    QStringList notes;     // sentences on what is odd
};

struct ImportReading {
    ImportResult result;
    std::vector<ImportDescription> descriptions; // by run
    QStringList refused;                         // files that could not be read, with the reason and the remedy
    QString target;                              // where to store it: beside the source, else among the documents
};

struct ImportAnswer {
    std::shared_ptr<const ImportReading> reading; // null: error
    std::optional<Error> error;
    bool ofRules = false; // the error is the rules file's
};

// Reads all of it. Runs without a time of their own get that of now. Progress: "bytes", then what assemble() tells.
ImportAnswer readTraces(const ImportQuestion& question, const Progress& progress = {});

// Whether the window brings it in as a trace: a folder, or a file by its suffix (.json, .gz, .sqlite).
bool isTrace(const QString& path);

} // namespace stagewright
