// Payloads of NVTX ranges as exports of Nsight Systems hold them: a blob that names its schema, and the tables with the
// schemas (NVTX_PAYLOAD_SCHEMAS, NVTX_PAYLOAD_SCHEMA_ENTRIES). Entry types are those of nvToolsExtPayload.h (NVTX 3).
//
//   bytes    blob, little-endian
//   0 … 3    domain
//   8 … 11   schema
//   16 … 23  size of the payload
//   24 … 31  size of it all, 32 + the payload's
//   32 …     the payload: entries at their offsets
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stagewright {

// whole numbers by the entry's name; others are ignored
using NvtxPayload = std::map<std::string, std::int64_t, std::less<>>;

class NvtxPayloadSchemas {
public:
    // Entries of a schema come in their order. offset −1: after the previous entry, aligned to its own size. A second
    // entry with that index is ignored, because each process stores its schemas; so is one that lies megabytes into the
    // payload.
    void add(std::int64_t domain, std::int64_t schema, std::int64_t index, std::int64_t type, std::string name,
             std::int64_t offset);
    bool empty() const { return m_schemas.empty(); }
    // Empty if the blob has an unknown schema or is damaged. Blobs written as hexadecimal text are read too.
    NvtxPayload read(std::span<const std::byte> blob) const;

private:
    struct Entry {
        std::int64_t index;
        std::int64_t type;
        std::string name;
        std::int64_t offset;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Entry>> m_schemas; // by domain, schema
};

} // namespace stagewright
