// The keys of a Setup (schedules/setup/keys.h) as options of a verb.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/setup/keys.h"

namespace stagewright {

class OptionSet;

// Another help for a key in this verb, with its own default.
struct OwnHelp {
    std::string_view option;
    std::string_view help;
    std::string_view form = {}; // ""; the key's
};
// The keys that `use` sets, in the order of the table; the setup must outlive the call. What is named is in
// its `given`.
void addSetupOptions(OptionSet& verb, Setup& setup, SetupUse use, std::initializer_list<OwnHelp> own = {});
void addWhatIfOption(OptionSet& verb, std::vector<std::string>& questions);

} // namespace stagewright
