// The table of keys: one row for each member of a Setup. Command lines, their help and the settings of a window or a
// lesson are views of it; a new knob is a member, its row and the place that uses it.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/value_check.h"
#include "schedules/setup/setup.h"

namespace stagewright {

// Who sets a key; a verb, or several that set the same. Bits.
enum SetupUse : unsigned {
    SetupShape = 1,    // that only makes lists: validate, diff, schedules
    SetupMessages = 2, // that lowers them: diff
    SetupChannels = 4, // that runs their messages: validate
    SetupSimulate = 8,
    SetupPlan = 16,
    SetupSweep = 32, // beside its axes
    SetupCheck = 64,
    SetupRecord = 128,
    SetupKernels = 256,     // times of a device's kernels: devices
    SetupLesson = 512,      // a recording of a lesson
    SetupItemsApart = 1024, // not a user: a list's items are values of their own, not separated by commas
    SetupWritesFile = 2048, // neither: it names a file that is written
    SetupReadsFile = 4096,  // that is read, and sent along to where a call is sent
    SetupStaysHere = 8192,  // it says where, so a call that is sent is without it
};

struct SetupKey {
    using Place = std::variant<bool Setup::*, int Setup::*, std::int64_t Setup::*, double Setup::*,
                               std::string Setup::*, std::vector<int> Setup::*, std::vector<std::string> Setup::*>;
    // The last one, without dashes, is the key's name in texts and in a run's configuration: "replica_batch".
    std::string_view options; // "-p,--ranks"
    Place place;
    unsigned users;
    std::string_view form = {}; // of a value, as help shows it: "FILE"
    std::string_view help = {}; // with the default in brackets
    ValueCheck check = {};      // of each item of a list
    // Why the engines of other programs can't honour it, the second one beside the first; "": they can.
    std::string_view whyNotTorch = {};
    std::string_view whyNotTitan = {};
    std::string_view zero = {};     // what 0 is called: "auto"
    std::string_view excludes = {}; // an option that can't be given with it
    std::string_view only = {};     // the one value that whyNotTorch is of; "": any

    std::string option() const; // "--ranks"
    std::string name() const;   // "ranks"
    bool flag() const { return std::holds_alternative<bool Setup::*>(place); }
    bool commas() const { return (users & SetupItemsApart) == 0; }
    bool list() const { return place.index() >= 5; }
};

// --optimizer: "adamw", "sgd", "kfac" with ":refresh=N", ":damping=X", ":decay=X", ":clip=X" (engine/layers/kfac.h).
struct OptimizerChoice {
    std::string_view name = "adamw";
    int refresh = 1;
    double damping = 0.001, decay = 0.95, clip = 0.001;
};
Result<OptimizerChoice> parseOptimizer(std::string_view text); // Usage

const std::vector<SetupKey>& setupKeys(); // in the order of --help
// By its name or its option; null: there is none.
const SetupKey* findSetupKey(std::string_view name);

// The key's value as text, "yes" or "no" of a flag, and from it. A list is replaced as a whole. Usage: what the key
// does not take, as "ranks takes a whole number from 1 to 4096, not '0'".
std::vector<std::string> itemsOf(const Setup& setup, const SetupKey& key); // of a list each, else one
std::string textOf(const Setup& setup, const SetupKey& key);
Result<void> setKey(Setup& setup, const SetupKey& key, std::string_view text);

// The words of a command line that change `from` to the setup, and back: an option and its value each. Usage names the
// option, or a word that is none.
std::vector<std::string> optionsOf(const Setup& setup, const Setup& from = {});
Result<Setup> withOptions(Setup setup, const std::vector<std::string>& words);
bool operator==(const Setup& a, const Setup& b); // of all keys

// Usage: an option that was named and that the engine can't honour, with the way around.
Result<void> engineHonours(const Setup& setup);
// Without what its engine can't honour.
Setup honoured(const Setup& setup);

} // namespace stagewright
