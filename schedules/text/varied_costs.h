// A cost file with one of the things that it says changed: what is simulated the same with it has no use for that
// thing.
#pragma once

#include <string>
#include <vector>

namespace stagewright {

struct VariedCosts {
    std::string what;    // "launch_ns", "duration_ns.OPT", "pairs[1]"
    std::string text;    // the document with other numbers there
    std::string without; // and with nothing there
};

// One for each key that says anything: not empty, not 0; not of format, version, source, origin and units. Of durations
// and bytes one for each kind and each size, of exceptions one for each entry. Empty where the text is not a document.
std::vector<VariedCosts> variedCosts(const std::string& text);

} // namespace stagewright
