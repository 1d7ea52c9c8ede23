#include "profiler/cupti/cupti_dump.h"

#include <cstring>

#include <fmt/format.h>

namespace stagewright {

namespace {

// Little-endian, as every machine with CUPTI is.
template <typename T>
void put(std::string& bytes, T value)
{
    for (std::size_t i = 0; i < sizeof(T); ++i)
        bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
}

class Reader {
public:
    explicit Reader(std::string_view bytes) : m_bytes(bytes) {}

    template <typename T>
    Result<T> number(std::string_view what)
    {
        if (m_bytes.size() - m_at < sizeof(T)) return tooShort(what, sizeof(T));
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(m_bytes[m_at + i])) << (8 * i);
        m_at += sizeof(T);
        return static_cast<T>(value);
    }
    Result<std::string_view> piece(std::string_view what, std::uint64_t size)
    {
        if (m_bytes.size() - m_at < size) return tooShort(what, size);
        const std::string_view piece = m_bytes.substr(m_at, size);
        m_at += size;
        return piece;
    }
    std::size_t at() const { return m_at; }
    std::size_t left() const { return m_bytes.size() - m_at; }

private:
    tl::unexpected<Error> tooShort(std::string_view what, std::uint64_t needed) const
    {
        return fail(
            ErrorCode::Unreadable,
            fmt::format("CUPTI dump: byte {}: {} needs {} bytes, the file has {} more", m_at, what, needed, left()),
            "the file was cut short; record it again");
    }

    std::string_view m_bytes;
    std::size_t m_at = 0;
};

} // namespace

std::string writeCuptiDump(const CuptiDump& dump)
{
    std::string bytes(cuptiDumpMagic);
    put(bytes, dump.cuptiVersion);
    put(bytes, static_cast<std::uint32_t>(dump.buffers.size()));
    put(bytes, static_cast<std::uint64_t>(dump.strings.size()));
    bytes += dump.strings;
    for (const std::vector<std::uint8_t>& buffer : dump.buffers) {
        put(bytes, static_cast<std::uint64_t>(buffer.size()));
        bytes.append(buffer.begin(), buffer.end());
    }
    return bytes;
}

Result<CuptiDump> readCuptiDump(std::string_view bytes)
{
    if (!bytes.starts_with(cuptiDumpMagic))
        return fail(ErrorCode::Unreadable, "this is not a CUPTI dump: it does not start with SWCUPTI1");
    Reader reader(bytes);
    (void)reader.piece("the mark", cuptiDumpMagic.size());
    CuptiDump dump;
    STAGEWRIGHT_TRY(dump.cuptiVersion, reader.number<std::uint32_t>("CUPTI's version"));
    STAGEWRIGHT_TRY(const auto buffers, reader.number<std::uint32_t>("the number of buffers"));
    STAGEWRIGHT_TRY(const auto stringBytes, reader.number<std::uint64_t>("the size of the strings"));
    STAGEWRIGHT_TRY(const auto strings, reader.piece("the strings", stringBytes));
    if (strings.empty() || strings.front() != '\0' || strings.back() != '\0')
        return fail(ErrorCode::Unreadable,
                    fmt::format("CUPTI dump: byte {}: the strings do not start and end with a zero byte",
                                reader.at() - strings.size()));
    dump.strings = strings;
    if (buffers > reader.left() / sizeof(std::uint64_t))
        return fail(
            ErrorCode::Unreadable,
            fmt::format("CUPTI dump: {} buffers do not fit in the {} bytes that are left", buffers, reader.left()));
    for (std::uint32_t i = 0; i < buffers; ++i) {
        STAGEWRIGHT_TRY(const auto size, reader.number<std::uint64_t>("a buffer's size"));
        if (size % 8 != 0 || size > largestDumpBuffer)
            return fail(ErrorCode::Unreadable,
                        fmt::format("CUPTI dump: byte {}: buffer {} has {} bytes, not a multiple of 8 up to {}",
                                    reader.at(), i, size, largestDumpBuffer));
        STAGEWRIGHT_TRY(const auto content, reader.piece("a buffer", size));
        dump.buffers.emplace_back(content.begin(), content.end());
    }
    if (reader.left() != 0)
        return fail(ErrorCode::Unreadable, fmt::format("CUPTI dump: {} bytes follow the last buffer", reader.left()));
    return dump;
}

Result<std::string_view> nameInDump(const CuptiDump& dump, std::uint64_t field)
{
    if (field == 0) return std::string_view();
    if (field - 1 >= dump.strings.size())
        return fail(ErrorCode::Unreadable,
                    fmt::format("CUPTI dump: a name at byte {} of the strings, which have {} bytes", field - 1,
                                dump.strings.size()));
    const char* text = dump.strings.data() + (field - 1); // the table ends with a zero byte
    return std::string_view(text, std::strlen(text));
}

} // namespace stagewright
