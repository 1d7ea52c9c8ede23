// OptionSet: the options and arguments of a verb as data: a verb lists them, each with the place its value goes to,
// which must outlive the set. Only call.cpp knows the parser that reads them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/value_check.h"

namespace stagewright {

// An option as it is on the command line: its long name, and its value as typed; of a flag none.
struct TypedOption {
    std::string name; // "--ranks"
    std::optional<std::string> value;
};

class Option {
public:
    using Receiver = std::function<void(const std::string& text)>; // of a flag: of ""
    using Place = std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::vector<int>*,
                               std::vector<std::string>*, Receiver>;

    Option(std::string names, Place place, std::string help, bool flag);

    Option& form(std::string text);  // how --help shows the value: "FILE"
    Option& check(ValueCheck check); // of each value
    Option& required();
    Option& each();                      // a list takes one value each time it is given, else all that follow
    Option& commas();                    // a list's values may be separated by commas
    Option& values(int least, int most); // how many values a list takes each time
    Option& given(bool& given);          // set where it is on the command line
    Option& excludes(std::string name);  // not both; the other one's long name, "--costs"
    Option& replaces();                  // names a file that is replaced: none that the call also reads

private:
    friend class CallReader;
    std::string m_names; // "-p,--ranks"; of an argument "FILE"
    Place m_place;
    std::string m_help;
    std::string m_form;
    ValueCheck m_check;
    bool* m_given = nullptr;
    std::string m_excluded;
    int m_least = 0, m_most = 0; // 0: as the place's type takes
    bool m_flag;
    bool m_required = false;
    bool m_each = false;
    bool m_commas = false;
    bool m_replaces = false;
};

class OptionSet {
public:
    Option& flag(std::string names, bool& place, std::string help);
    Option& flag(std::string names, Option::Receiver receiver, std::string help);
    // an option, or an argument where the name has no dash
    Option& value(std::string names, Option::Place place, std::string help);
    // What is on the command line is written there, by the option's long name: its last value as typed; of a flag
    // "true".
    void watch(std::map<std::string, std::string>& given) { m_watch = &given; }
    // All of them, in the order of the options; each value of a list by itself.
    void typed(std::vector<TypedOption>& words) { m_typed = &words; }
    // What follows from the options together, once all are read.
    void then(std::function<Result<void>()> completion) { m_then = std::move(completion); }
    void notes(std::string text) { m_notes = std::move(text); } // examples and exit codes, after the options

private:
    friend class CallReader;
    std::deque<Option> m_options; // in the order of --help
    std::string m_notes;
    std::map<std::string, std::string>* m_watch = nullptr;
    std::vector<TypedOption>* m_typed = nullptr;
    std::function<Result<void>()> m_then;
};

} // namespace stagewright
