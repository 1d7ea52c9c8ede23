// RunLink: a place in a run as text, for notes, issues and chats; the desktop opens it in the window.
//
//     stagewright:/runs/job.stagewright#run=2&step=9&op=3B1&range=1200-5300
//
// The file is a path, the rest optional: a run by number or name, a step from 1, an op of it, and a range of time in ns
// from the start of what is shown. Everything but letters, digits and "-._~/" is written as %XX, in UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

struct RunLink {
    std::string file;
    std::string run;                              // "": the first
    int step = 0;                                 // from 1; 0: the one that reports show
    std::string op;                               // "3B1"; "": none
    std::optional<std::pair<Nanos, Nanos>> range; // from < to
    bool operator==(const RunLink&) const = default;
};

inline constexpr std::string_view runLinkScheme = "stagewright:";

std::string toText(const RunLink& link);
// parseRunLink(toText(x)) == x. "stagewright://" before an absolute path is taken as well. Usage error: no file, a part that is
// not known or twice there, a number or %XX that is none.
Result<RunLink> parseRunLink(std::string_view text);

} // namespace stagewright
