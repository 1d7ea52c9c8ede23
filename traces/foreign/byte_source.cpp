#include "traces/foreign/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

#include "schedules/base/open_files.h"
#include "traces/foreign/archive.h"

namespace stagewright {

namespace {

class PlainFile final : public ByteSource {
public:
    PlainFile(int file, std::int64_t size) : m_file(file) { m_size = size; }
    ~PlainFile() override { close(m_file); }
    PlainFile(const PlainFile&) = delete;
    PlainFile& operator=(const PlainFile&) = delete;

    std::size_t read(char* to, std::size_t size) override
    {
        ssize_t got = -1;
        do got = ::read(m_file, to, size);
        while (got < 0 && errno == EINTR);
        if (got < 0) m_damage = fmt::format("reading stopped at byte {}: {}", m_read, std::strerror(errno));
        if (got <= 0) return 0;
        m_read += got;
        return static_cast<std::size_t>(got);
    }
    std::int64_t consumed() const override { return m_read; }
    bool restart() override
    {
        m_damage.clear();
        m_read = 0;
        return lseek(m_file, 0, SEEK_SET) == 0;
    }

private:
    int m_file;
    std::int64_t m_read = 0;
};

class GzipFile final : public ByteSource {
public:
    GzipFile(gzFile file, std::int64_t size) : m_file(file)
    {
        m_size = size;
        gzbuffer(m_file, 1u << 18);
    }
    ~GzipFile() override { gzclose_r(m_file); }
    GzipFile(const GzipFile&) = delete;
    GzipFile& operator=(const GzipFile&) = delete;

    std::size_t read(char* to, std::size_t size) override
    {
        if (!m_damage.empty()) return 0;
        // One part at a time: a call that hits damage loses the data it had unpacked before.
        constexpr std::size_t part = 1 << 16;
        std::size_t filled = 0;
        int got = 0;
        do {
            got = gzread(m_file, to + filled, static_cast<unsigned>(std::min(size - filled, part)));
            filled += static_cast<std::size_t>(std::max(0, got));
        } while (got > 0 && filled < size);
        int code = Z_OK;
        const char* why = gzerror(m_file, &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
            const std::string_view said(why); // behind a name that zlib gives the file
            const std::size_t name = said.starts_with('<') ? said.find(": ") : std::string_view::npos;
            m_damage = fmt::format("the compressed data is damaged: {}",
                                   name == std::string_view::npos ? said : said.substr(name + 2));
        }
        return filled;
    }
    std::int64_t consumed() const override
    {
        return std::min<std::int64_t>(m_size, std::max<std::int64_t>(0, gzoffset(m_file)));
    }
    bool restart() override
    {
        m_damage.clear();
        return gzrewind(m_file) == 0;
    }

private:
    gzFile m_file;
};

class Memory final : public ByteSource {
public:
    explicit Memory(std::string bytes) : m_bytes(std::move(bytes))
    {
        m_size = static_cast<std::int64_t>(m_bytes.size());
    }
    std::size_t read(char* to, std::size_t size) override
    {
        const std::size_t part = std::min(size, m_bytes.size() - m_at);
        std::memcpy(to, m_bytes.data() + m_at, part);
        m_at += part;
        return part;
    }
    std::int64_t consumed() const override { return static_cast<std::int64_t>(m_at); }
    bool restart() override
    {
        m_at = 0;
        return true;
    }

private:
    std::string m_bytes;
    std::size_t m_at = 0;
};

tl::unexpected<Error> unreadable(const std::string& path, const char* why)
{
    return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, why));
}

} // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path)
{
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        if (auto full = tooManyOpenFiles(errno, "file " + path)) return tl::unexpected(std::move(*full));
        return unreadable(path, std::strerror(errno));
    }
    struct stat about = {};
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(file);
        return fail(ErrorCode::Unreadable, fmt::format("file {}: not a regular file", path),
                    S_ISDIR(about.st_mode) ? "name the files in the folder" : "write its contents to a file first");
    }
    std::array<char, 8> first{};
    const std::string_view head(
        first.data(), static_cast<std::size_t>(std::max<ssize_t>(0, pread(file, first.data(), first.size(), 0))));
    if (auto packed = openCompressed(path, head); !packed || *packed) {
        close(file);
        return packed;
    }
    if (head.starts_with("\x1f\x8b")) {
        gzFile packed = gzdopen(file, "rb");
        if (packed == nullptr) {
            close(file);
            return unreadable(path, "out of memory");
        }
        return std::make_unique<GzipFile>(packed, about.st_size);
    }
    return std::make_unique<PlainFile>(file, about.st_size);
}

std::string headOf(const std::string& path, std::size_t bytes)
{
    auto source = ByteSource::open(path);
    return source ? headOf(**source, bytes) : std::string();
}

std::string headOf(ByteSource& source, std::size_t bytes)
{
    std::string head(bytes, '\0');
    std::size_t filled = 0;
    while (filled < bytes) {
        const std::size_t got = source.read(head.data() + filled, bytes - filled);
        if (got == 0) break;
        filled += got;
    }
    head.resize(filled);
    return head;
}

std::unique_ptr<ByteSource> byteSourceOf(std::string bytes) { return std::make_unique<Memory>(std::move(bytes)); }

Result<std::string> unpackedDeflate(std::string_view bytes, std::size_t most)
{
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 32) != Z_OK) return fail(ErrorCode::Failed, "out of memory"); // zlib or gzip
    std::string out;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    int code = Z_OK;
    while (code == Z_OK) {
        const std::size_t before = out.size();
        if (before >= most) break;
        out.resize(std::min(most, std::max<std::size_t>(before * 2, bytes.size() * 4 + 4096)));
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
        stream.avail_out = static_cast<uInt>(out.size() - before);
        code = inflate(&stream, Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
        if (code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) break; // it has no end
    }
    inflateEnd(&stream);
    if (code == Z_STREAM_END) return out;
    if (out.size() >= most) return fail(ErrorCode::Failed, "it is larger than what is unpacked");
    return fail(ErrorCode::Unreadable, "it is damaged");
}

} // namespace stagewright
