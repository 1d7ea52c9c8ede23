#include "traces/foreign/archive.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#ifdef STAGEWRIGHT_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>

#include "schedules/base/folder.h"
#include "schedules/base/own_names.h"
#endif

namespace stagewright {

namespace fs = std::filesystem;

namespace {

struct Compression {
    std::string_view magic;
    std::string_view name;
    std::string_view command;
};
constexpr Compression compressions[] = {{"\x28\xb5\x2f\xfd", "zstd", "zstd -d"},
                                        {std::string_view("\xfd\x37zXZ\0", 6), "xz", "xz -dk"},
                                        {"BZh", "bzip2", "bzip2 -dk"},
                                        {"\x04\x22\x4d\x18", "lz4", "lz4 -d"}};

std::string firstBytes(const std::string& path)
{
    std::array<char, 8> bytes{};
    std::error_code failed;
    if (!std::filesystem::is_regular_file(path, failed)) return {}; // a pipe would wait for its writer
    std::ifstream in(path, std::ios::binary);
    in.read(bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount()))};
}

const Compression* compressionOf(std::string_view head)
{
    for (const Compression& one : compressions)
        if (head.starts_with(one.magic)) return &one;
    return nullptr;
}

constexpr std::string_view openFiles = "/proc/self/fd/";

bool isZip(const std::string& path)
{
    const std::string head = firstBytes(path);
    return head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06");
}

} // namespace

bool isArchive(const std::string& path)
{
    if (isZip(path)) return true;
    const std::string head = headOf(path, 512);
    if (head.size() == 512 && std::string_view(head).substr(257, 5) == "ustar") return true;
    // compressed: read by name alone
    return head.starts_with("SQLite format 3") && !firstBytes(path).starts_with("SQLite");
}

bool isInMemory(const std::string& path)
{
    std::error_code failed;
    return fs::read_symlink(path, failed).string().starts_with(openFiles);
}

ArchiveLimits archiveLimits()
{
    ArchiveLimits limits;
    if (const char* text = std::getenv("STAGEWRIGHT_UNPACK_LIMIT"); text != nullptr)
        if (const long long bytes = std::atoll(text); bytes > 0) limits.bytes = bytes;
    return limits;
}

#ifndef STAGEWRIGHT_LIBARCHIVE

Result<std::unique_ptr<Archive>> Archive::open(const std::string& path, const ArchiveLimits&)
{
    return fail(ErrorCode::Unreadable,
                fmt::format("file {}: archives can't be read: this build has no libarchive", path),
                isZip(path) ? fmt::format("unpack it (unzip {}) and import the folder", path)
                            : fmt::format("unpack it (tar -xf {}) and import the folder", path));
}

Result<std::unique_ptr<ByteSource>> openCompressed(const std::string& path, std::string_view head)
{
    const Compression* of = compressionOf(head);
    if (of == nullptr) return std::unique_ptr<ByteSource>();
    return fail(
        ErrorCode::Unreadable,
        fmt::format("file {}: compressed with {}, which this build can't read: it has no libarchive", path, of->name),
        fmt::format("unpack it: {} {}", of->command, path));
}

Result<std::string> unpackedZstd(std::string_view, std::size_t)
{
    return fail(ErrorCode::Unavailable, "it is compressed with zstd, which this build can't unpack",
                "build with libarchive-dev installed");
}

#else

namespace {

struct Free {
    void operator()(archive* of) const { archive_read_free(of); }
};
using Reading = std::unique_ptr<archive, Free>;

constexpr std::size_t blockSize = 1 << 18;

std::string reasonOf(archive* of)
{
    const char* said = archive_error_string(of);
    return said == nullptr ? "it is damaged" : said;
}

// The file's own compression and no other. libarchive would also undo one within another, where a small file may be
// terabytes of nothing, and start programs for some.
void setCompression(archive* of, const std::string& path)
{
    constexpr std::pair<std::string_view, int> filters[] = {{"zstd", ARCHIVE_FILTER_ZSTD},
                                                            {"xz", ARCHIVE_FILTER_XZ},
                                                            {"bzip2", ARCHIVE_FILTER_BZIP2},
                                                            {"lz4", ARCHIVE_FILTER_LZ4}};
    const std::string head = firstBytes(path);
    if (head.starts_with("\x1f\x8b")) archive_read_append_filter(of, ARCHIVE_FILTER_GZIP);
    const Compression* compression = compressionOf(head);
    for (const auto& [name, filter] : filters)
        if (compression != nullptr && compression->name == name) archive_read_append_filter(of, filter);
}

class Compressed final : public ByteSource {
public:
    explicit Compressed(std::string path) : m_path(std::move(path))
    {
        std::error_code failed;
        m_size = static_cast<std::int64_t>(fs::file_size(m_path, failed));
    }

    bool restart() override
    {
        m_damage.clear();
        m_archive.reset(archive_read_new());
        setCompression(m_archive.get(), m_path);
        archive_read_support_format_raw(m_archive.get());
        archive_entry* entry = nullptr;
        if (archive_read_open_filename(m_archive.get(), m_path.c_str(), blockSize) == ARCHIVE_OK &&
            archive_read_next_header(m_archive.get(), &entry) == ARCHIVE_OK)
            return true;
        m_damage = fmt::format("the compressed data is damaged: {}", reasonOf(m_archive.get()));
        return true; // damage() says so
    }

    std::size_t read(char* to, std::size_t size) override
    {
        if (!m_damage.empty()) return 0;
        const la_ssize_t got = archive_read_data(m_archive.get(), to, size);
        if (got < 0) m_damage = fmt::format("the compressed data is damaged: {}", reasonOf(m_archive.get()));
        return static_cast<std::size_t>(std::max<la_ssize_t>(0, got));
    }
    std::int64_t consumed() const override
    {
        return m_archive ? std::min<std::int64_t>(m_size, archive_filter_bytes(m_archive.get(), -1)) : 0;
    }

private:
    std::string m_path;
    Reading m_archive;
};

constexpr std::string_view unpackedIn = "stagewright-unpack-"; // folders in TMPDIR

// A folder is locked by the program that unpacks into it. Those that nobody holds were left by one that was killed; a
// fresh one may not be locked yet.
void removeAbandoned(const fs::path& temporary)
{
    constexpr auto fresh = std::chrono::minutes(1);
    std::error_code ignored;
    for (const std::string& name : namesIn(temporary)) {
        if (!isOwnName(name, unpackedIn)) continue;
        const fs::path path = temporary / name;
        const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0) continue;
        struct stat status {};
        const bool own = ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid();
        const bool old =
            std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime) > fresh;
        if (own && old && ::flock(folder, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, ignored);
        ::close(folder);
    }
}

// A file in memory, whose pages go once it is closed.
class MemoryFile {
public:
    explicit MemoryFile(std::int64_t mostOfAll)
        : m_file(::memfd_create("stagewright-unpack", MFD_CLOEXEC)), m_mostOfAll(mostOfAll)
    {
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile()
    {
        if (m_file >= 0) ::close(m_file);
        allBytes -= m_bytes;
    }

    bool append(std::string_view bytes) // false: it stays as it was, as there is no room
    {
        if (m_file < 0) return false;
        const auto size = static_cast<std::int64_t>(bytes.size());
        if ((allBytes += size) > m_mostOfAll || ::pwrite(m_file, bytes.data(), bytes.size(), m_bytes) != size) {
            allBytes -= size;
            return false;
        }
        m_bytes += size;
        return true;
    }

    void copyTo(std::ostream& out) const
    {
        std::string block(blockSize, '\0');
        for (std::int64_t at = 0; at < m_bytes;) {
            const ssize_t got =
                ::pread(m_file, block.data(), std::min(block.size(), static_cast<std::size_t>(m_bytes - at)), at);
            if (got <= 0) return out.setstate(std::ios::badbit);
            out.write(block.data(), got);
            at += got;
        }
    }

    bool linkAs(const std::string& path) const // false: there is no /proc
    {
        const std::string own = fmt::format("{}{}", openFiles, m_file);
        return m_file >= 0 && ::access(own.c_str(), R_OK) == 0 && ::symlink(own.c_str(), path.c_str()) == 0;
    }

private:
    static inline std::atomic<std::int64_t> allBytes = 0; // of all such files
    int m_file;
    std::int64_t m_mostOfAll;
    std::int64_t m_bytes = 0;
};

class Members final : public Archive {
public:
    Members(std::string path, const ArchiveLimits& limits) : m_path(std::move(path)), m_limits(limits) {}
    ~Members() override { end(); }

    Result<void> start()
    {
        m_archive.reset(archive_read_new());
        setCompression(m_archive.get(), m_path);
        archive_read_support_format_zip(m_archive.get());
        archive_read_support_format_tar(m_archive.get());
        archive_read_support_format_raw(m_archive.get()); // a single compressed file
        if (archive_read_open_filename(m_archive.get(), m_path.c_str(), blockSize) != ARCHIVE_OK)
            return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", m_path, reasonOf(m_archive.get())),
                        "copy it again from its source");
        return {};
    }

    Result<std::optional<UnpackedMember>> next(const Progress& progress) override
    {
        clear();
        while (!m_ended) {
            if (progress.cancelled()) return stop(ErrorCode::Cancelled, "importing was cancelled", {});
            archive_entry* entry = nullptr;
            const int code = archive_read_next_header(m_archive.get(), &entry);
            if (code == ARCHIVE_EOF) break;
            if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
                return stop(ErrorCode::Unreadable, fmt::format("archive {}: {}", m_path, reasonOf(m_archive.get())),
                            "copy it again from its source");
            if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
            const char* given = archive_entry_pathname(entry);
            std::string name = given == nullptr ? "" : given;
            if (archive_format(m_archive.get()) == ARCHIVE_FORMAT_RAW) name = fs::path(m_path).stem().string();
            if (const fs::path inside(name);
                name.starts_with('/') ||
                std::any_of(inside.begin(), inside.end(), [](const fs::path& part) { return part == ".."; }))
                return fail(ErrorCode::Unreadable,
                            fmt::format("archive {}: member {} leads out of the archive", m_path, name),
                            "pack the files again with names that are below one folder");
            const std::string base = fs::path(name).filename().string();
            if (base.empty() || base.starts_with('.') || name.starts_with("__MACOSX/")) continue;
            if (++m_members > m_limits.members)
                return stop(ErrorCode::Unreadable,
                            fmt::format("archive {}: more than {} members", m_path, m_limits.members),
                            "unpack it and import the folder");
            STAGEWRIGHT_CHECK(unpack(name, base, progress));
            return std::optional(UnpackedMember{name, m_file});
        }
        end();
        return std::optional<UnpackedMember>();
    }

    std::int64_t consumed() const override { return archive_filter_bytes(m_archive.get(), -1); }

private:
    tl::unexpected<Error> stop(ErrorCode code, std::string message, std::string remedy)
    {
        end();
        return fail(code, std::move(message), std::move(remedy));
    }

    // One for all members.
    Result<void> makeFolder()
    {
        if (!m_folder.empty()) return {};
        std::error_code failed;
        const fs::path temporary = fs::temp_directory_path(failed);
        if (!failed) removeAbandoned(temporary);
        std::string folder;
        int problem = 0;
        do {
            folder = (temporary / newOwnName(unpackedIn)).string();
            problem = failed ? failed.value() : ::mkdir(folder.c_str(), 0700) == 0 ? 0 : errno;
        } while (problem == EEXIST);
        if (problem != 0)
            return stop(ErrorCode::Failed,
                        fmt::format("archive {}: no temporary folder can be made: {}", m_path, std::strerror(problem)),
                        "set TMPDIR to a folder that is writable");
        m_folder = folder;
        m_lock = ::open(m_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (m_lock >= 0) (void)::flock(m_lock, LOCK_EX | LOCK_NB);
        return {};
    }

    Result<void> unpack(const std::string& name, const std::string& base, const Progress& progress)
    {
        if (auto made = makeFolder(); !made) return made;
        m_file = (fs::path(m_folder) / base).string();
        m_inMemory.emplace(m_limits.inMemory);
        std::ofstream out; // once it is too large for memory
        m_block.resize(blockSize);
        for (;;) {
            if (progress.cancelled()) return stop(ErrorCode::Cancelled, "importing was cancelled", {});
            const la_ssize_t got = archive_read_data(m_archive.get(), m_block.data(), m_block.size());
            if (got == 0) break;
            if (got < 0) {
                const std::string why = reasonOf(m_archive.get());
                clear();
                return fail(ErrorCode::Unreadable, fmt::format("archive {}: member {}: {}", m_path, name, why),
                            "copy it again from its source");
            }
            m_unpacked += got;
            if (m_unpacked > m_limits.bytes)
                return stop(ErrorCode::Unreadable,
                            fmt::format("archive {}: unpacks to more than {} bytes (at member {})", m_path,
                                        m_limits.bytes, name),
                            "unpack it and import the folder, or raise STAGEWRIGHT_UNPACK_LIMIT");
            if (!put({m_block.data(), static_cast<std::size_t>(got)}, out)) return stopFull(name);
        }
        if (m_inMemory && !m_inMemory->linkAs(m_file)) moveTo(out);
        if (m_inMemory) return {};
        out.close();
        if (!out) return stopFull(name);
        return {};
    }

    bool put(std::string_view bytes, std::ofstream& out)
    {
        if (m_inMemory && m_inMemory->append(bytes)) return true;
        if (m_inMemory) moveTo(out);
        return static_cast<bool>(out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())));
    }

    void moveTo(std::ofstream& out)
    {
        out.open(m_file, std::ios::binary);
        m_inMemory->copyTo(out);
        m_inMemory.reset();
    }

    tl::unexpected<Error> stopFull(const std::string& name)
    {
        const std::string folder = m_folder; // which is removed
        return stop(ErrorCode::Failed,
                    fmt::format("archive {}: member {} could not be written to {}", m_path, name, folder),
                    "free some space, or set TMPDIR to another folder");
    }

    void clear()
    {
        std::error_code ignored;
        if (m_file.empty()) return;
        // with what reading a database may leave
        for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(m_file + suffix, ignored);
        m_file.clear();
        m_inMemory.reset();
    }

    void end()
    {
        m_ended = true;
        std::error_code ignored;
        if (!m_folder.empty()) fs::remove_all(m_folder, ignored);
        m_folder.clear();
        if (m_lock >= 0) ::close(m_lock);
        m_lock = -1;
        m_inMemory.reset();
    }

    std::string m_path;
    ArchiveLimits m_limits;
    Reading m_archive;
    std::string m_folder, m_file;
    std::string m_block;                  // of the member that is unpacked
    std::optional<MemoryFile> m_inMemory; // its content; nothing: m_file has it
    int m_lock = -1;                      // of the folder
    std::int64_t m_unpacked = 0;
    int m_members = 0;
    bool m_ended = false;
};

} // namespace

Result<std::unique_ptr<Archive>> Archive::open(const std::string& path, const ArchiveLimits& limits)
{
    auto members = std::make_unique<Members>(path, limits);
    STAGEWRIGHT_CHECK(members->start());
    return std::unique_ptr<Archive>(std::move(members));
}

Result<std::unique_ptr<ByteSource>> openCompressed(const std::string& path, std::string_view head)
{
    if (compressionOf(head) == nullptr) return std::unique_ptr<ByteSource>();
    auto source = std::make_unique<Compressed>(path);
    source->restart();
    return std::unique_ptr<ByteSource>(std::move(source));
}

Result<std::string> unpackedZstd(std::string_view frame, std::size_t most)
{
    const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
    archive_read_support_filter_zstd(reader.get());
    archive_read_support_format_raw(reader.get());
    archive_entry* entry = nullptr;
    std::string out;
    bool good = archive_read_open_memory(reader.get(), frame.data(), frame.size()) == ARCHIVE_OK &&
                archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK;
    while (good) {
        const std::size_t before = out.size();
        if (before >= most) return fail(ErrorCode::Unreadable, "it is larger than what is unpacked");
        out.resize(std::min(most, std::max<std::size_t>(before * 2, frame.size() * 4 + 4096)));
        const auto got = archive_read_data(reader.get(), out.data() + before, out.size() - before);
        good = got >= 0;
        out.resize(before + static_cast<std::size_t>(std::max<la_ssize_t>(got, 0)));
        if (got == 0) return out;
    }
    return fail(ErrorCode::Unreadable, fmt::format("it is damaged: {}", reasonOf(reader.get())));
}

#endif

} // namespace stagewright
