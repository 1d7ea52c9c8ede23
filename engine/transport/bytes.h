// Values as bytes between processes of one program on machines of one kind. A reader of too few bytes gives zeros and
// is no longer good().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stagewright {

class ByteWriter {
public:
    template <typename T>
    void put(const T& value)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        append(&value, sizeof value);
    }
    template <typename T>
    void list(std::span<const T> values)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        put<std::uint64_t>(values.size());
        append(values.data(), values.size_bytes());
    }
    void text(std::string_view value) { list(std::span<const char>(value)); }
    std::vector<std::byte> take() { return std::move(m_bytes); }

private:
    void append(const void* data, std::size_t bytes)
    {
        if (bytes == 0) return;
        const std::size_t at = m_bytes.size();
        m_bytes.resize(at + bytes);
        std::memcpy(m_bytes.data() + at, data, bytes);
    }
    std::vector<std::byte> m_bytes;
};

class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : m_bytes(bytes) {}

    template <typename T>
    T get()
    {
        T value{};
        copy(&value, sizeof value);
        return value;
    }
    template <typename T>
    std::vector<T> list()
    {
        const auto count = get<std::uint64_t>();
        if (!m_good || count > m_bytes.size() / sizeof(T)) {
            m_good = false;
            return {};
        }
        std::vector<T> values(static_cast<std::size_t>(count));
        copy(values.data(), values.size() * sizeof(T));
        return values;
    }
    std::string text()
    {
        const std::vector<char> characters = list<char>();
        return {characters.begin(), characters.end()};
    }
    bool good() const { return m_good; }

private:
    void copy(void* to, std::size_t bytes)
    {
        if (!m_good || bytes > m_bytes.size()) {
            m_good = false;
            return;
        }
        if (bytes > 0) std::memcpy(to, m_bytes.data(), bytes);
        m_bytes = m_bytes.subspan(bytes);
    }
    std::span<const std::byte> m_bytes;
    bool m_good = true;
};

} // namespace stagewright
