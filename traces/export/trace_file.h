// What the formats of one trace file share: written completely or not at all, and what their descriptors say of it.
#pragma once

#include <functional>
#include <string>

#include "traces/export/trace_walk.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"

namespace stagewright {

inline Result<TraceCounts> writeTraceFile(const std::string& path,
                                          const std::function<Result<TraceCounts>(const Sink&)>& write)
{
    TraceCounts counts;
    STAGEWRIGHT_CHECK(writeFileAtomically(path, [&](const Sink& out) -> Result<void> {
        STAGEWRIGHT_TRY(counts, write(out));
        return {};
    }));
    return counts;
}

inline WrittenFile writtenOf(const TraceCounts& counts)
{
    return {{{"spans", counts.spans},
             {"bubbles", counts.bubbles},
             {"flows", counts.flows},
             {"counter_samples", counts.counterSamples}},
            toText(counts)};
}

} // namespace stagewright
