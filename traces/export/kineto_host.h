// A rank of a run as its host saw it: the threads of its ranges, where each op was on the host, and the call that
// launched each kernel and copy.
//
// An op keeps its own time if that contains the calls of its work (or it has none). Else it is timed by its kernels, as
// imported ops are, and on the host it is the range of its name that contains the calls or, where the run does not keep
// one, from the first call to the last. Work launched from a range is launched on the range's thread, so that readers
// find the same range; work launched from no range on a thread without ranges.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/run/run.h"

namespace stagewright {

inline constexpr int kinetoHostThread = 1;   // ops
inline constexpr int kinetoStepThread = 2;   // steps that overlap: this one and the next
inline constexpr int kinetoLaunchThread = 4; // calls from no range
inline constexpr int kinetoOverlapThread = 100;

struct HostLaunch {
    SpanId work = noSpan;
    Nanos time = 0; // of the call; that of the work if unknown
    int thread = 0;
    SpanId graph = noSpan; // the run's span of the call, where it launched a whole graph: one call for all its work
};

struct HostOp {
    Nanos start = 0;
    Nanos end = 0;
    int thread = kinetoHostThread;
    bool apart = false; // its time on the host is not that of its span
};

class KinetoHost {
public:
    KinetoHost(const Timeline& timeline, int rank);

    const HostOp& opOf(SpanId compute) const { return m_ops.at(compute); } // of a span of lane Compute
    const std::vector<HostLaunch>& launches() const { return m_launches; } // by time
    SpanId graphOf(SpanId work) const;                                     // HostLaunch::graph of its launch
    bool isLaunchedGraph(SpanId range) const { return m_graphs.contains(range); }
    // Thread and name of a track with ranges (lane Other); empty: its ranges are times on the device ("… on the
    // device"), which follow from the rest.
    struct Thread {
        int number = 0;
        std::string name;
    };
    std::optional<Thread> threadOf(const Track& track) const;
    bool onDevice(const Track& track) const;
    bool shownAsOp(SpanId range) const { return m_used.contains(range); } // a range that stands for an op of opOf()
    // a number that no thread has yet; then it has
    int freeThread();
    // Device and stream of a track with kernels or copies: those of its name ("GPU 1 stream 7"), else a number of their
    // own.
    std::pair<int, int> streamOf(const Track& track) const;
    // The stream of the first work launched from a range on the device.
    std::pair<int, int> firstStreamFrom(SpanId range) const;
    // The number of each step as the source counted it ("ProfilerStep#12"), if every step has one; else from 0.
    std::map<int, long long> stepNumbers() const { return m_stepNumbers; }
    // Whether a range is an operator of the framework, which readers need not keep: by its name, unless work is listed
    // under such names.
    bool isOperator(const Span& range) const;
    int stepThread() const { return m_stepThread; }  // of the source's steps, else that of the ops
    bool marksSteps() const { return m_marksSteps; } // the source did

private:
    void nameThreads();
    void nameStreams();
    void findSteps();
    void placeOps();
    void placeLaunches();

    const Timeline& m_timeline;
    int m_rank;
    std::set<int> m_taken;
    std::map<std::string, Thread, std::less<>> m_threads;              // by name of the track
    std::map<std::string, std::pair<int, int>, std::less<>> m_streams; // the same
    std::unordered_map<SpanId, HostOp> m_ops;
    std::unordered_map<SpanId, SpanId> m_firstFrom; // by range: what it launched first
    std::set<SpanId> m_used;
    std::vector<HostLaunch> m_launches;
    std::unordered_map<SpanId, SpanId> m_graphOf; // by kernel or copy
    std::set<SpanId> m_graphs;                    // calls that launched some
    std::map<int, long long> m_stepNumbers;
    bool m_marksSteps = false;
    int m_stepThread = kinetoHostThread;
    bool m_workInOperators = false;
};

// A copy of a rank's prefix away: "thread 7 (python3)" of "rank 3 thread 7 (python3)".
std::string_view withoutRank(const Track& track);

} // namespace stagewright
