// Tensors in a safetensors file: eight bytes with the length of a JSON header, the header, then the numbers, little
// endian. Only F32 is written and read. https://github.com/huggingface/safetensors
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct TensorShape {
    std::string name;
    std::vector<int> shape; // empty: one number
    bool operator==(const TensorShape&) const = default;
};

using SafetensorsTexts = std::vector<std::pair<std::string, std::string>>; // the header's "__metadata__"

// The file's bytes before the first number. The numbers follow in the order of the tensors.
std::string safetensorsHeader(const std::vector<TensorShape>& tensors, const SafetensorsTexts& texts = {});

// Writes under a temporary name, which finish() renames; without it nothing is left.
class SafetensorsWriter {
public:
    // The tensors in the order in which their numbers will come. Unreadable where the file can't be created.
    static Result<SafetensorsWriter> create(const std::string& path, const std::vector<TensorShape>& tensors);
    SafetensorsWriter(SafetensorsWriter&& other) noexcept;
    SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
    ~SafetensorsWriter();

    // The next numbers, of any number of tensors or parts of them. Failed on a full disk.
    Result<void> append(std::span<const float> numbers);
    // Invalid where the numbers are not as many as announced.
    Result<void> finish();

private:
    SafetensorsWriter() = default;
    std::string m_path; // "": finished
    std::ofstream m_file;
    std::uint64_t m_missing = 0; // numbers
};

class SafetensorsFile {
public:
    // Unreadable, naming the file and what is wrong, where it is missing or damaged: offsets outside of it, shapes of
    // another size.
    static Result<SafetensorsFile> open(const std::string& path);

    const std::string& path() const { return m_path; }
    const std::vector<TensorShape>& tensors() const { return m_tensors; } // in the order of their numbers
    const SafetensorsTexts& texts() const { return m_texts; }
    const TensorShape* find(std::string_view name) const; // null: it has none
    // Usage where there is no such tensor, Unreadable where it can't be read.
    Result<std::vector<float>> read(const std::string& name) const;
    // Those of one of tensors() from its number `first` on. Unreadable likewise, and where it has fewer.
    Result<void> read(const TensorShape& tensor, std::uint64_t first, std::span<float> numbers) const;

private:
    std::string m_path;
    std::vector<TensorShape> m_tensors;
    std::vector<std::uint64_t> m_begins; // bytes from the file's start, by tensor
    std::vector<std::size_t> m_byName;   // numbers of tensors, sorted by their names
    SafetensorsTexts m_texts;
};

} // namespace stagewright
