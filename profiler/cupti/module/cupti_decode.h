// Decoding: CUPTI's structs → GpuRecord. Built where CUPTI's headers are; the structs are those of CUPTI_API_VERSION,
// and a dump or a library of another version is refused. No driver is needed: buffers are walked by
// cuptiActivityGetNextRecord.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cupti.h>

#include "profiler/cupti/cupti_dump.h"
#include "profiler/cupti/gpu_record.h"

namespace stagewright::cupti {

inline constexpr std::uint32_t headerVersion = CUPTI_API_VERSION;

// Bytes that a record of this kind takes in a buffer; 0: a kind that is not read. Of the newest struct of each kind.
std::size_t recordBytes(CUpti_ActivityKind kind);

// Appends the records of a buffer that CUPTI filled; names are copied. What is not read is counted into trace. The
// buffer's pointers must be valid: they are for as long as CUPTI's names live, that is to the end of the process.
void decodeBuffer(std::uint8_t* buffer, std::size_t validBytes, GpuTrace& trace);

// Appends a copy of the buffer, pointers replaced (cupti_dump.h), to a dump of this version. Records of kinds that are
// not read end the copy. Returns the bytes taken.
std::size_t dumpBuffer(const std::uint8_t* buffer, std::size_t validBytes, CuptiDump& dump);

// All records of a dump. Unreadable where the version is another, a record does not fit in its buffer, its kind is not
// one of those that dumpBuffer() writes, or a name points outside of the strings.
Result<GpuTrace> decodeDump(const CuptiDump& dump);

// Refuses another version of the library than of the headers: the structs differ.
Result<void> checkVersion(std::uint32_t libraryVersion);

} // namespace stagewright::cupti
