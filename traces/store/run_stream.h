// A run block by block, in the order of the file.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

Result<RunFile::Content> readContent(RunStore& store, std::int64_t id);
Result<std::vector<RunFile::BlockBounds>> readBlockBounds(RunStore& store, std::int64_t id);
Result<std::vector<RunFile::StepBounds>> readStepBounds(RunStore& store, std::int64_t id);
Result<std::int64_t> streamSpans(RunStore& store, std::int64_t id, const RunFile::SpanSink& sink,
                                 const Progress& progress);
Result<std::int64_t> streamMemory(RunStore& store, std::int64_t id, const RunFile::MemorySink& sink,
                                  const Progress& progress);

} // namespace stagewright
