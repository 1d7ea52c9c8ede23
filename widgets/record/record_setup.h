// A Setup (schedules/setup) as the record dialog shows it: its faults by field, its words, its command.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>

#include "schedules/setup/setup.h"
#include "traces/run/run.h"

namespace stagewright {

// The numbers of Setup::model.
struct ModelNumbers {
    int layers = 8;
    int hidden = 128;
    int heads = 4;
    int sequence = 128;
    int vocabulary = 0; // 0: the model's own

    static ModelNumbers of(const Setup& setup); // what the text does not name is as above
    std::string text() const;                   // "layers=8,hidden=128,heads=4,seq=128"
};

Setup usualRecording(); // two schedules, few steps

// Without what has no use for its device, engine or number of replicas, such as --clock on GPUs.
Setup applying(const Setup& setup);

struct SetupFault {
    QString field;   // the key's name, or one of layers, heads, sequence
    QString message; // with the remedy
};
// The first invalid key of what applies, or nullopt. Checks each schedule's constraints in the library, and files.
std::optional<SetupFault> firstFault(const Setup& setup);
SetupFault faultOf(const Error& error,
                   const QString& field); // at the key that its message starts with, else at the field

// Arguments after the program name, writing to `output`, with machine-readable progress and standard-input control.
QStringList recordArguments(const Setup& setup, const QString& output);
// The same as a line to paste into a terminal (without the progress options).
QString commandLine(const Setup& setup, const QString& output);
// In words: "Trains 1F1B and ZB-H1 on 4 ranks × 8 microbatches, a model of …, 1 warm-up and 8 measured steps each".
QString inWords(const Setup& setup);

// What the setup trains under beside schedule, model and device, "disturbance rank=2:1.5, link 50us"; empty: nothing.
QString conditionsOf(const Setup& setup);

// What a run was recorded with, its conditions included, to run an edited schedule the same way; unknown keys leave the usual.
Setup setupOf(const Run& run);

} // namespace stagewright
