// Checkpoint files of a recording: beside its run file, written on a thread of their own while training goes on, the
// newest ones kept.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/saved/saved_training.h"
#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class Checkpoints {
public:
    struct Ended {
        int step = 0; // that the training had done
        std::string file;
        Nanos pause = 0;            // that training waited for it: for the one before, and for the copy
        Nanos written = 0;          // time of writing, beside training
        std::optional<Error> error; // nothing of it is there then
    };

    // of "demo.stagewright": demo.step40.safetensors
    Checkpoints(const std::string& runFile, int keep);
    ~Checkpoints(); // waits for the one under way
    Checkpoints(const Checkpoints&) = delete;
    Checkpoints& operator=(const Checkpoints&) = delete;

    // Before the first: removes what a killed recording left half written. Usage where checkpoints of another training
    // are there, which this one does not go on from.
    Result<void> begin(bool resumes) const;
    // Writes what take() gives, a copy; waits for the one before. An error is take()'s.
    template <typename Take>
    Result<void> save(Take&& take)
    {
        const Nanos begin = now();
        wait();
        Result<SavedTraining> saved = take();
        if (!saved) return tl::unexpected(std::move(saved.error()));
        write(std::move(*saved), begin);
        return {};
    }
    void wait();
    std::vector<Ended> ended(); // since the last call

private:
    static Nanos now();
    void write(SavedTraining saved, Nanos begin);
    std::vector<std::pair<int, std::string>> present() const; // step and name in the folder, newest first
    void removeOld(int step) const;

    std::string m_folder, m_stem; // "demo.step"
    std::size_t m_keep;
    std::thread m_writer;
    std::mutex m_mutex;
    std::vector<Ended> m_ended;
};

// With the lists that were trained, by content.
SavedTraining withLists(SavedTraining saved, const Schedule& lists);

// What a training that goes on from a checkpoint is to the one that wrote it, as a sentence. lists: that it trains;
// facts: its own, as a checkpoint would have them.
std::string resumeText(const SavedFile& from, const Schedule& lists, const SavedFacts& facts);

} // namespace stagewright
