#include "engine/workload/gpt/corpus.h"

#include <cassert>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/built_in_text.h"
#include "schedules/base/hashing.h"

namespace stagewright {

namespace {
constexpr std::size_t fewestBytes = 1024;
constexpr std::size_t mostBytes = std::size_t{256} << 20;
} // namespace

Result<std::shared_ptr<const Corpus>> Corpus::fromFile(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail(ErrorCode::Unreadable, path + ": " + std::strerror(errno), "give the path of a text file");
    std::vector<std::uint8_t> bytes;
    std::vector<char> chunk(std::size_t{1} << 16);
    do {
        file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())); // a folder opens, but fails here
        if (bytes.size() + static_cast<std::size_t>(file.gcount()) > mostBytes)
            return fail(ErrorCode::Unreadable,
                        path + ": more than " + std::to_string(mostBytes >> 20) + " MiB of training text",
                        "give a shorter text; it is held in memory");
        bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + file.gcount());
    } while (file);
    if (file.bad()) return fail(ErrorCode::Unreadable, path + ": reading failed", "give the path of a text file");
    if (bytes.size() < fewestBytes)
        return fail(ErrorCode::Unreadable,
                    path + ": " + std::to_string(bytes.size()) + " bytes; training text needs at least " +
                        std::to_string(fewestBytes),
                    "give a longer text");
    return fromBytes(std::move(bytes), path);
}

std::shared_ptr<const Corpus> Corpus::builtIn()
{
    static const std::shared_ptr<const Corpus> text = [] {
        const std::span<const std::uint8_t> bytes = builtInText();
        return fromBytes({bytes.begin(), bytes.end()}, "built-in");
    }();
    return text;
}

std::shared_ptr<const Corpus> Corpus::fromBytes(std::vector<std::uint8_t> bytes, std::string name)
{
    auto corpus = std::make_shared<Corpus>();
    corpus->m_bytes = std::move(bytes);
    corpus->m_name = std::move(name);
    return corpus;
}

void Corpus::sample(std::uint64_t seed, int step, std::int64_t first, int batch, int tokens,
                    std::span<std::uint8_t> tokensOut, std::span<std::uint8_t> targetsOut) const
{
    assert(!m_bytes.empty());
    const auto length = static_cast<std::size_t>(tokens);
    assert(tokensOut.size() == length * static_cast<std::size_t>(batch) && targetsOut.size() == tokensOut.size());
    // A text shorter than a sample and its last target is read again and again.
    const std::size_t starts = m_bytes.size() > length ? m_bytes.size() - length : m_bytes.size();
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch); ++row) {
        std::uint64_t hash = mixBits(seed ^ 0x636f72707573U);
        for (const std::uint64_t part : {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(first) + row})
            hash = mixBits(hash ^ part);
        const std::size_t start = hash % starts;
        for (std::size_t i = 0; i < length; ++i) {
            tokensOut[row * length + i] = m_bytes[(start + i) % m_bytes.size()];
            targetsOut[row * length + i] = m_bytes[(start + i + 1) % m_bytes.size()];
        }
    }
}

} // namespace stagewright
