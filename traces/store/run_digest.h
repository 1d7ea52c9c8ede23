// A checksum over the data of a run outside its blocks, which have their own checksums: its row except name, note and
// state, texts, tracks, labels, counters, metrics, and the place of each block. Stored as the run's text ('digest',
// 'crc32').
#pragma once

#include <cstdint>
#include <optional>

#include "traces/store/database.h"

namespace stagewright {

Result<void> storeDigest(Database& database, std::int64_t run); // replaces an older one
// Empty if none is stored: the recording was interrupted, or an older program wrote it.
Result<std::optional<bool>> digestHolds(Database& database, std::int64_t run);

} // namespace stagewright
