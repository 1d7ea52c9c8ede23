// The bytes of a source for a parser that takes iterators: a window of 64 KiB, whatever the file's size.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include "traces/foreign/byte_source.h"

namespace stagewright {

class ByteIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    ByteIterator() = default; // the end
    explicit ByteIterator(ByteSource& source) : m_buffer(std::make_shared<Buffer>(source)) { m_buffer->fill(); }
    reference operator*() const { return m_buffer->bytes[m_buffer->at]; }
    ByteIterator& operator++()
    {
        if (++m_buffer->at == m_buffer->size) m_buffer->fill();
        return *this;
    }
    bool operator==(const ByteIterator& other) const { return ended() == other.ended(); }
    bool operator!=(const ByteIterator& other) const { return !(*this == other); }

private:
    struct Buffer {
        explicit Buffer(ByteSource& from) : source(from), bytes(1 << 16) {}
        void fill()
        {
            at = 0;
            size = source.read(bytes.data(), bytes.size());
        }
        ByteSource& source;
        std::vector<char> bytes;
        std::size_t at = 0;
        std::size_t size = 0;
    };
    bool ended() const { return !m_buffer || m_buffer->size == 0; }
    std::shared_ptr<Buffer> m_buffer; // shared by copies, as an input stream is
};

} // namespace stagewright
