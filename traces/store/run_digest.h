// A checksum over what is told of a run beside its blocks, which have checksums of their own: its row but for name, note and state,
// texts, tracks, labels, counters, metrics, and where each block belongs. Kept as the run's text ('digest', 'crc32').
#pragma once

#include <cstdint>
#include <optional>

#include "traces/store/database.h"

namespace stagewright {

Result<void> storeDigest(Database& database, std::int64_t run); // replaces an older one
// Nothing where none is stored: the recording was interrupted, or an older program wrote it.
Result<std::optional<bool>> digestHolds(Database& database, std::int64_t run);

} // namespace stagewright
