// A recording as a stream that only grows: every complete step as the rows it added to the run file, in blocks with
// length and checksum (docs/hosts.md, "The stream of steps"). It is written beside the run file, can be fetched from
// any offset, over a network's file system too, and replayed into a run file elsewhere. What is read is checked like
// any foreign file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/store/run_file.h"

namespace stagewright {

class StepStreamWriter {
public:
    // Failed where the file is there already or can't be written.
    static Result<std::unique_ptr<StepStreamWriter>> create(const std::string& path);
    // Goes on after the last whole step of a stream whose writer was killed, with other runs; creates it where there is
    // none. Unreadable where the file is not a stream of this version.
    static Result<std::unique_ptr<StepStreamWriter>> reopen(const std::string& path);
    ~StepStreamWriter();

    // What is new in the run since the last call, as one step; the first call starts the run. A full disk is an Error
    // (Failed): the file then ends with the last whole step, and the next call tries what is missing again.
    Result<void> append(const RunFile& file, std::int64_t run);
    Result<void> end(const RunFile& file, std::int64_t run); // the same, and its final state, costs and texts
    Result<void> remove(std::int64_t run);                   // it was not kept; nothing if it never began

private:
    struct State;
    explicit StepStreamWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

// A run of the stream and where it is replayed.
struct ReplayedRun {
    std::int64_t there = 0;         // its id in the recorder's file
    std::int64_t here = 0;          // in the file that it is replayed into; 0: the stream removed it
    std::int64_t createdUnixMs = 0; // distinguishes it from another run that got the same id here
    int steps = 0;                  // complete ones, warm-up included
    bool ended = false;             // its final state has been replayed
};

class StreamReplay {
public:
    // Opens or creates the run file and holds it as its writer. known: what an earlier replay of the same stream has
    // put there; runs that were removed since begin again. began: a run has got its place here and no step yet; what is
    // kept of runs() then survives a crash.
    static Result<std::unique_ptr<StreamReplay>>
    open(const std::string& runFile, const std::vector<ReplayedRun>& known = {},
         std::function<Result<void>(const std::vector<ReplayedRun>&)> began = {});
    // Runs that have not ended become interrupted, as those of a killed writer.
    ~StreamReplay();

    // The bytes that follow; cut anywhere. Each complete step is one transaction; steps that are in the file already
    // are skipped. Unreadable where the stream is damaged or of another version: steps before it stay.
    Result<void> take(std::span<const std::byte> bytes);
    // Bytes of whole steps so far: where fetching goes on after a cut.
    std::int64_t taken() const;
    void rewind(); // what came after them is forgotten, and comes again
    const std::vector<ReplayedRun>& runs() const;
    const std::string& file() const;

private:
    struct State;
    explicit StreamReplay(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
