// The settings of a lesson's canvas: shape, costs, memory, messages. Text form, words separated by spaces:
//
//   ranks=4 microbatches=8 chunks=2 costs=F=1,I=1,W=1 comm=0.5 cap=4
//   recompute=0-2 hoist keep=0.125          stages that recompute; the part of an activation that they keep
//   layers=3,3,3,3 head=2 share=3           layers by stage, of the head after the last; how many make one rank share
//   slow=1,1,1.5,1                          by rank: how much longer its ops take
//   link=1-2:1.0 launch=3:0.2               as parts of schedules/execute/perturb.h; link=none: none of them
//   replicas=4 shard=weights gather=batch reduce=overlapped   pipelines side by side, what they share and when, as in
//                                                             schedules/model/shard_rules.h
//   parameters=7.5                          weights of a rank, in 10⁹; costs=UNSHARD=0.5,REDUCE_GRAD=1: of a rank's
//                                           gathers and reductions
//   sends=rendezvous lower=grouped          as in schedules/messages/channels.h and schedules/messages/lower.h
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/text.h"
#include "schedules/messages/channels.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"

namespace stagewright::lessons {

// A setup of a simulation in units, whose keys have the words of the command line, and what only a canvas has.
struct Settings : Setup {
    Settings() { comm = 0; }
    std::vector<double> layers;
    double head = 0;
    double share = 1;
    std::vector<double> slow;
    double parameters = 0; // 10⁹ of a rank

    bool operator==(const Settings&) const = default;
    SetupUnits units() const;                                           // of `costs`
    std::optional<double> cap() const { return numberOf(memoryLimit); } // activations of a rank
};

bool isSetting(std::string_view name);
std::string settingList(); // "ranks, microbatches, …"
// Sets what the text names and leaves the rest unchanged. Errors (Usage) name the word.
Result<Settings> withSettings(Settings settings, std::string_view text);
// The differences from `from`, as text; parse(print) restores them.
std::string changesOf(const Settings& settings, const Settings& from = {});

// The order of a library schedule in these settings ("interleaved-1f1b", "zb-h1"), without their passes.
Result<Schedule> makeFor(const std::string& name, const Settings& settings);
// The order as executed: recomputed, offloaded, filled and lowered as the settings say. An order with such ops keeps its
// own.
Result<Schedule> passedThrough(const Schedule& schedule, const Settings& settings);
Result<CostModel> costsFor(const Schedule& schedule, const Settings& settings);
Channels channelsOf(const Settings& settings);

} // namespace stagewright::lessons
