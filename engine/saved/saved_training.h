// A training between two steps, as a checkpoint file keeps it: tensors under the names of their parameters, optimizer
// state and stored weights with a prefix, and facts as text. Who held what is not in it, so that other ranks can go on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/layers/state_part.h"
#include "engine/saved/safetensors.h"
#include "schedules/base/result.h"

namespace stagewright {

using SavedFacts = std::vector<std::pair<std::string, std::string>>; // by key, each once

// "layer3.mlp.fc1.weight", "moment1.layer3.mlp.fc1.weight" …
std::string savedName(StateKind kind, std::string_view parameter);

// The state of one training, put together from what its ranks hold.
struct SavedTraining {
    struct Tensor {
        std::vector<int> shape;
        std::vector<float> numbers;
    };
    SavedFacts facts;
    std::map<std::string, Tensor> tensors; // by savedName()

    void add(const StatePart& part, std::span<const float> numbers);
    const std::string* fact(std::string_view key) const;
    // The file's bytes from its start to its end, by `out`, which says whether there was room.
    bool write(const std::function<bool(std::string_view bytes)>& out) const;
};

// A checkpoint in a file, read when it is asked for; any thread.
class SavedFile {
public:
    // Unreadable, naming the file: it is missing, damaged, or a safetensors file of something else.
    static Result<SavedFile> open(const std::string& path);

    const std::string& path() const { return m_tensors.path(); }
    int step() const { return m_step; }       // how many the training had done
    int updates() const { return m_updates; } // of the optimizer; more than steps where each microbatch has one
    const std::string* fact(std::string_view key) const;
    // False: it has no such tensor. Throws std::runtime_error, naming the file, where its shape is another one or the
    // file can't be read any more.
    bool read(const StatePart& part, std::span<float> numbers) const;
    bool has(StateKind kind) const;

private:
    explicit SavedFile(SafetensorsFile tensors) : m_tensors(std::move(tensors)) {}
    SafetensorsFile m_tensors;
    int m_step = 0;
    int m_updates = 0;
};

} // namespace stagewright
