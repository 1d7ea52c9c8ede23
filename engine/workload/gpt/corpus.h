// Corpus: text to train on. Bytes are tokens. The default is text in the repository, built into the program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

class Corpus {
public:
    // Fails (Unreadable) where the file can't be read or holds fewer than 1,024 bytes or more than 256 MiB.
    static Result<std::shared_ptr<const Corpus>> fromFile(const std::string& path);
    static std::shared_ptr<const Corpus> builtIn();
    static std::shared_ptr<const Corpus> fromBytes(std::vector<std::uint8_t> bytes, std::string name);

    const std::string& name() const { return m_name; }
    std::size_t size() const { return m_bytes.size(); }
    std::span<const std::uint8_t> bytes() const { return m_bytes; }
    // tokens and targets (targets are the tokens one further on), (batch × tokens) bytes each, of a step's samples from
    // `first` on, as they are numbered through all of its microbatches: each a pure function of (seed, step, number),
    // so that every schedule sees the same data, into whatever microbatches the batch is cut.
    void sample(std::uint64_t seed, int step, std::int64_t first, int batch, int tokens,
                std::span<std::uint8_t> tokensOut, std::span<std::uint8_t> targetsOut) const;

private:
    std::vector<std::uint8_t> m_bytes;
    std::string m_name;
};

} // namespace stagewright
