// What a recording is to be: the options of `record`, which `script` takes as well.
#pragma once

#include <string>
#include <vector>

#include "app/cli/option_set.h"
#include "app/cli/verbs/recording.h"
#include "schedules/base/result.h"
#include "schedules/setup/setup.h"

namespace stagewright {

class Session;

struct RecordChoice {
    Setup setup;
    std::vector<TypedOption> typed; // the call as it was given
    std::string output;
};

void addRecordOptions(OptionSet& verb, RecordChoice& options); // all but --output

// Checked: the schedules, the model and what each rank needs. Nothing is started or written.
Result<RecordSettings> recordSettingsOf(const RecordChoice& options, Session& session);
// Usage: the model of a recording elsewhere has fewer layers than stages, which would be found there only.
Result<void> haveLayers(const RecordSettings& settings, const Setup& setup);

} // namespace stagewright
