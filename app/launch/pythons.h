// Python interpreters and the PyTorch that each has.
#pragma once

#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/torch/torch_version.h"
#include "schedules/base/result.h"

namespace stagewright {

struct PythonFound {
    std::string path;   // absolute
    std::string origin; // "--python", "VIRTUAL_ENV", "PATH"
    std::string python; // "3.13.5"; "" where it did not answer
    std::string torch;  // "2.6.0+debian"; "" where it has none
    std::optional<TorchVersion> version;
    bool gloo = false;
    bool nccl = false;
    int gpus = 0;
    // How its TorchTitan takes a job's configuration: "functions" (since 2026), "toml" (before). None: it has no
    // TorchTitan.
    std::optional<std::set<std::string>> titan;
    bool usable() const { return reason.empty(); }
    std::string reason; // why not
    std::string remedy;
};

// Where to look: what the user named, else $VIRTUAL_ENV/bin/python3 and the python3 of each folder of PATH; relative
// folders of PATH, the current one too, are skipped. Each file once; symbolic links to one are one.
struct PythonPlace {
    std::string path;
    std::string origin;
};
// Usage where `named` is not an executable file, or a bare name that PATH does not have.
Result<std::vector<PythonPlace>> pythonPlaces(const std::string& named = {});

// Starts it once and asks; a minute at most. It runs in an empty folder, so that nothing of the current one is
// imported. `under`: the words of a program that starts it elsewhere, such as srun; that folder is then in the current
// one, which is there as well.
PythonFound askPython(const PythonPlace& place, const std::stop_token& stop = {},
                      const std::vector<std::string>& under = {});

// The first place's interpreter, whether named or found. Unavailable, with the reason and what to do, where it has no
// usable PyTorch: another one is never taken silently. `under`: as askPython(); `named` is then the path there, and is
// not looked for here.
Result<PythonFound> choosePython(const std::string& named, bool cuda, const std::stop_token& stop = {},
                                 const std::vector<std::string>& under = {});

} // namespace stagewright
