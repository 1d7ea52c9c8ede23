// Rows of a run, read over several views of a file that grows.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

// Rows of a run in the order of their keys, which are the first columns of `columns`; between them the view may be
// renewed.
struct RowsInParts {
    std::string_view columns;
    std::string_view table;
    std::string where; // " AND …", besides the run
    std::string_view keys;
    std::function<Result<void>()> load = {}; // the steps again that are needed, in a new view
};
// Calls row(statement) for every row until it gives an error.
Result<void> eachRowInParts(RunStore& store, const RowsInParts& rows, std::int64_t run,
                            const std::function<Result<void>(const Statement&)>& row);

} // namespace stagewright
