// --engine and what belongs to it: which program trains, and which of record's options it can honour.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "schedules/base/result.h"
#include "schedules/messages/lower.h"

namespace stagewright {

class OptionSet;

struct EngineOptions {
    std::string engine = "own";               // "own", "torch", "torchtitan"
    std::string python;                       // an interpreter; "": $VIRTUAL_ENV's, else PATH's
    std::string job;                          // the job folder; "": under PyTorch beside the run file, else none
    std::string modelFile;                    // FILE:FUNCTION
    std::map<std::string, std::string> given; // the verb's options on the command line
    std::string config;                       // of TorchTitan: the job's TOML file
    bool torch() const { return engine == "torch"; }
    bool titan() const { return engine == "torchtitan"; }
};
void addEngineOptions(OptionSet& verb, EngineOptions& options); // both outlive the call

// Whether the engine can honour what was given to this verb: Usage, naming the option and the way around.
Result<void> engineHonours(const EngineOptions& options);

// The rule of --lower, where one was given.
Result<std::optional<Lowering>> givenLowering(const std::string& text);

} // namespace stagewright
