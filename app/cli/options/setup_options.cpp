#include "app/cli/options/setup_options.h"

#include <algorithm>

#include "app/cli/option_set.h"
#include "schedules/setup/prepare.h"

namespace stagewright {

namespace {

// Where the parser puts a key's values: in the setup itself, or through setKey() where they have words of their own.
Option::Place placeOf(Setup& setup, const SetupKey& key)
{
    if (!key.zero.empty())
        return [&setup, &key](const std::string& text) { static_cast<void>(setKey(setup, key, text)); }; // checked
    return std::visit([&setup](auto place) { return Option::Place(&(setup.*place)); }, key.place);
}

} // namespace

void addSetupOptions(OptionSet& verb, Setup& setup, SetupUse use, std::initializer_list<OwnHelp> own)
{
    for (const SetupKey& key : setupKeys()) {
        if ((key.users & use) == 0) continue;
        const std::string option = key.option();
        const auto other =
            std::find_if(own.begin(), own.end(), [&](const OwnHelp& one) { return one.option == option; });
        const std::string help(other == own.end() ? key.help : other->help);
        const std::string form(other == own.end() || other->form.empty() ? key.form : other->form);
        if (const auto* flag = std::get_if<bool Setup::*>(&key.place)) {
            verb.flag(std::string(key.options), setup.**flag, help);
            continue;
        }
        Option& one = verb.value(std::string(key.options), placeOf(setup, key), help).form(form);
        if (key.check) one.check(key.check);
        if (!key.excludes.empty()) one.excludes(std::string(key.excludes));
        if (key.users & SetupWritesFile) one.replaces();
        if (!key.list()) continue;
        if (key.commas()) one.commas();
        if (option != "--device") one.each(); // which takes all numbers that follow
    }
    verb.watch(setup.given);
    verb.then([&setup]() -> Result<void> {
        STAGEWRIGHT_TRY(setup, withLayout(setup));
        return {};
    });
}

void addWhatIfOption(OptionSet& verb, std::vector<std::string>& questions)
{
    verb.value("--what-if", &questions,
               "Simulate it with a change: F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, jitter*0, UNSHARD*2, "
               "lower=pytorch, sends=rendezvous, receives=posted, channels=1, channels=one, m=16, m+8; repeat the "
               "option for several")
        .form("CHANGE,…")
        .each();
}

} // namespace stagewright
