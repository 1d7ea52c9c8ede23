// Bytes of a file, plain, gzip (several members allowed), zstd, xz, bzip2 or lz4, recognised by its first bytes, read
// once from start to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

class ByteSource {
public:
    virtual ~ByteSource() = default;
    // A regular file only: Unreadable if it is missing, a folder, a device or without read permission.
    static Result<std::unique_ptr<ByteSource>> open(const std::string& path);

    // At most `size` bytes, at least one; 0: the end, also where the file is damaged from there on (damage()).
    virtual std::size_t read(char* to, std::size_t size) = 0;
    virtual std::int64_t consumed() const = 0; // bytes of the file
    virtual bool restart() = 0;                // from the start again; false: impossible
    std::int64_t size() const { return m_size; }
    const std::string& damage() const { return m_damage; } // "" or why the bytes ended early

protected:
    std::int64_t m_size = 0;
    std::string m_damage;
};

// The first bytes of a file, uncompressed, by which formats are recognised. Empty if unreadable.
std::string headOf(const std::string& path, std::size_t bytes = 65536);
std::string headOf(ByteSource& source, std::size_t bytes = 65536); // of one that was not read yet

// What bytes compressed by zlib or gzip hold, of at most so many bytes. Unreadable: damaged; Failed: more.
Result<std::string> unpackedDeflate(std::string_view bytes, std::size_t most);

// Reads from memory.
std::unique_ptr<ByteSource> byteSourceOf(std::string bytes);

} // namespace stagewright
