// RowPlan: which rows the timeline draws and in which order: pinned ranks, ranks, groups of ranks. Pure values;
// geometry (layoutRows) places them in pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <QString>

namespace stagewright {

struct PanelLane;
struct TimelinePanel;

// How many ranks are grouped into few rows. Automatic: as Replica if a panel has several replicas of up to 32 ranks, as
// Count if it has more than 64 ranks, else none.
enum class Grouping : std::uint8_t {
    Automatic,
    None,
    Count,
    Stage,
    Busy,
    Host,
    Pipeline, // ranks with the same place in a dimension of parallelism, as the trace's process groups say
    Data,
    Tensor,
    Expert,
    Context,
    Replica, // replicas under their pipeline rank: the first replica's row, the others' in a group below it
};
// What a group's row shows: the mean time of each kind, or the mean, minimum and maximum busy share.
enum class GroupLook : std::uint8_t {
    Kinds,
    Range,
};

// The user's settings. Ranks apply to every panel that has them.
struct RowSettings {
    Grouping grouping = Grouping::Automatic;
    int groupSize = 0; // ranks per group, for Count; 0: the smallest of 8, 32, 128 … that gives at most 32 groups
    GroupLook look = GroupLook::Kinds;
    std::set<int> pinned;                              // kept at the top, above the scrolling rows
    std::set<int> collapsed;                           // a thin row of utilisation, without a track
    std::set<int> trackless;                           // without their communication track
    std::set<std::pair<int, std::string>> thinStreams; // by rank and streamName(): folded to a thin line
    std::set<int> expanded;                            // groups shown rank by rank, by the first rank of each
    bool lanes = true;                                 // kernels, copies and other work in thin rows under their rank
    bool waits = false;                                // and what the rank waited for
    bool operator==(const RowSettings&) const = default;
};

struct RankGroup {
    std::vector<int> ranks; // ascending indices into TimelinePanel::ranks, two or more; of other replicas one or more
    QString title;          // "0–31", "stage 3", "80–84 %": short enough for the gutter
    QString detail;         // "32 ranks"
    double busyMean = 0;
    double busyLeast = 0;
    double busyMost = 0;
    bool expanded = false;
    QString name() const; // "Ranks 0–31", "stage 3"
};

enum class RowKind : std::uint8_t {
    Rank,
    Collapsed,
    Group,
};

// A row to place. Every (panel, rank) has a position: its number when all ranks are counted in drawing order, panel
// by panel, as if nothing were pinned or folded. Areas are intervals of positions, so that folding moves none of them.
struct RowItem {
    RowKind kind = RowKind::Rank;
    int panel = 0;
    int rankIndex = 0; // index into TimelinePanel::ranks; of a group the first of its ranks
    int group = -1;    // index into RowPlan::groups[panel]: the group itself, or the rank's group; −1: none
    bool pinned = false;
    bool track = true;        // with its communication track
    bool device = false;      // no ops are known: its lanes are what it shows, the bar above sums them up
    int firstLane = 0;        // of PanelRank::lanes …
    int lanes = 0;            // … number of lanes below it
    std::vector<bool> thin;   // which of them are of folded streams; empty: none
    std::vector<bool> joined; // which of them show the stream of the lane before; as long as thin
    bool joins(int lane) const { return joined[static_cast<std::size_t>(lane)]; }
    int firstPosition = 0;
    int lastPosition = 0; // inclusive; of a group: all of its ranks
};

struct RowPlan {
    std::vector<RowItem> items;                 // the pinned ones first, then panel by panel
    int pinned = 0;                             // how many of them
    std::vector<std::vector<RankGroup>> groups; // by panel
    std::vector<std::vector<int>> itemOf;       // [panel][rankIndex]: the item that shows it, or its folded group
    std::vector<std::vector<int>> positionOf;   // [panel][rankIndex]
    std::vector<std::pair<int, int>> rankAt;    // position → panel, rankIndex
};

// Whether the ranks of a panel differ in it, so that groups by it say something: hosts and dimensions that the run
// knows.
bool canGroup(const TimelinePanel& panel, Grouping grouping);

// O(ranks log ranks).
RowPlan planRows(const std::vector<std::shared_ptr<const TimelinePanel>>& panels, const RowSettings& settings);
// One row per rank, without settings.
RowPlan plainPlan(const std::vector<int>& ranksByPanel);
// By which the stream of a lane differs from others of its rank; several lanes, each below the other, may show one.
std::string streamName(const PanelLane& lane);
// The default group size of Count for this number of ranks.
int suitableGroupSize(int ranks);

} // namespace stagewright
