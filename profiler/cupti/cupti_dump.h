// CuptiDump: activity buffers exactly as CUPTI filled them, for replay without a GPU. Pointers in records are replaced:
// names by their offset in one table of strings plus 1, all others by 0. Only CUPTI's headers of one
// version say which bytes of a record are which, so a dump names that version and a decoder of another refuses it.
// docs/formats.md describes the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct CuptiDump {
    std::uint32_t cuptiVersion = 0;                 // CUPTI_API_VERSION
    std::string strings{'\0'};                      // each ends with a zero byte; the first is ""
    std::vector<std::vector<std::uint8_t>> buffers; // multiples of 8 bytes

    bool operator==(const CuptiDump&) const = default;
};

inline constexpr std::string_view cuptiDumpMagic = "SWCUPTI1"; // first 8 bytes of a file
inline constexpr std::size_t largestDumpBuffer = std::size_t{64} << 20;

std::string writeCuptiDump(const CuptiDump& dump); // the file's bytes; same dump, same bytes
// Unreadable, with the byte, where the bytes are not a dump, end too early or too late, or hold impossible sizes.
Result<CuptiDump> readCuptiDump(std::string_view bytes);

// The string at a name field's value (offset + 1; 0 is ""). Unreadable where it points outside of the table.
Result<std::string_view> nameInDump(const CuptiDump& dump, std::uint64_t field);

} // namespace stagewright
