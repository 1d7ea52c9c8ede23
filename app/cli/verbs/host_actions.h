// The actions of `hosts`: what each takes and does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

class Session;

struct HostOptions {
    std::string action;
    std::vector<std::string> words; // what follows it
    std::string folder;             // add: where the program goes; "": the default
    std::string scratch;            // add and serve
    std::vector<std::string> setup; // add
    bool ask = false;               // jobs: ask each host
    bool here = false;              // forget: only what is kept here
    std::string file;               // attach and fetch: the run file of a folder's runs; "": named after it
    std::string olderThan;          // forget: "7d"
    std::string keepSize;           // forget: "2GB"
};

struct HostAction {
    std::string_view name;
    std::string_view form; // of its words, for help and errors
    std::string_view about;
    int least = 0, most = 0;
    Result<int> (*run)(const HostOptions&, Session&);
    bool hidden = false;
};
std::span<const HostAction> hostActions();

} // namespace stagewright
