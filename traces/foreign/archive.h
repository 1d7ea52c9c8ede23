// Traces in archives: .zip, .tar and compressed .tar (.tar.gz, .tar.zst, .tar.xz …). Members are unpacked one after the
// other. One of up to 100 MiB is kept in memory, under a link in a folder in TMPDIR; a larger one is a file there. Both
// are removed before the next one, and what a killed program left there the next one removes. Single compressed files
// are read without (byte_source.h). Without libarchive at build time each is refused with the command that unpacks it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"

namespace stagewright {

// The ends of names of archives and of single compressed files.
inline constexpr std::array<std::string_view, 8> packedSuffixes{".gz",  ".zst", ".xz",  ".bz2",
                                                                ".lz4", ".tgz", ".tar", ".zip"};
// By its first bytes, uncompressed; false for what can't be read. A compressed SQLite file is one, too: it has to be a
// file to be read.
bool isArchive(const std::string& path);

struct ArchiveLimits {
    std::int64_t bytes = std::int64_t{64} << 30; // unpacked, of all members together
    int members = 10'000;
    // of what is unpacked, by all archives of the program together; 0: everything is a file
    std::int64_t inMemory = std::int64_t{100} << 20;
};
// STAGEWRIGHT_UNPACK_LIMIT (bytes) instead of the above where it is set.
ArchiveLimits archiveLimits();

struct UnpackedMember {
    std::string name; // in the archive: "job/rank0.json"
    std::string path; // of its temporary file or of the link to it, with the same suffix; valid until the next call
};

// Whether a member's path is a link to a file in memory: nothing can be beside that, such as a log of SQLite.
bool isInMemory(const std::string& path);

class Archive {
public:
    static Result<std::unique_ptr<Archive>> open(const std::string& path,
                                                 const ArchiveLimits& limits = archiveLimits());
    virtual ~Archive() = default; // removes the temporary file
    // The next regular file; none: the end. Folders, links and hidden files are passed over. Errors: a name that leads
    // out of the archive ("..", a leading "/") and a damaged member (Unreadable; the next call goes on behind it), the
    // limits (Unreadable), a full disk (Failed), Cancelled; after the last three the archive is at its end.
    virtual Result<std::optional<UnpackedMember>> next(const Progress& progress) = 0;
    virtual std::int64_t consumed() const = 0; // bytes of the archive
};

// A file compressed with zstd, xz, bzip2 or lz4, by its first bytes, as what is in it; nullptr: it is not.
Result<std::unique_ptr<ByteSource>> openCompressed(const std::string& path, std::string_view head);

// What a frame compressed with zstd holds, of at most so many bytes. Unreadable: damaged or more; Unavailable: without
// libarchive.
Result<std::string> unpackedZstd(std::string_view frame, std::size_t most);

} // namespace stagewright
