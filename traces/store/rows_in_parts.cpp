#include "traces/store/rows_in_parts.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagewright {

Result<void> eachRowInParts(RunStore& store, const RowsInParts& rows, std::int64_t run,
                            const std::function<Result<void>(const Statement&)>& row)
{
    const auto keys = static_cast<int>(std::count(rows.keys.begin(), rows.keys.end(), ',')) + 1;
    std::vector<std::int64_t> last, before;
    const auto ascends = [&](const Statement& at) { // unless the tree of pages leads back into itself
        std::vector<std::int64_t> now;
        for (int key = 0; key < keys; ++key) {
            if (sqlite3_column_type(at.handle(), key) != SQLITE_INTEGER) return true;
            now.push_back(at.integer(key));
        }
        const bool more = before.empty() || before < now;
        before = std::move(now);
        return more;
    };
    for (;;) {
        std::string sql = fmt::format("SELECT {} FROM {} WHERE run=?{}", rows.columns, rows.table, rows.where);
        if (!last.empty()) sql += fmt::format(" AND ({}) > ({})", rows.keys, fmt::join(last, ","));
        STAGEWRIGHT_TRY(auto statement, store.database->prepare(sql + fmt::format(" ORDER BY {}", rows.keys)));
        statement.bind(run);
        bool renew = false;
        while (!renew) {
            STAGEWRIGHT_TRY(const auto more, store.database->step(statement));
            if (!more) return {};
            if (!ascends(statement))
                return fail(ErrorCode::Unreadable,
                            fmt::format("file {}: damaged (rows of {} are not in order)", store.path, rows.table),
                            "restore it from a copy, or record again");
            if (auto done = row(statement); !done) return done;
            renew = store.viewIsOld();
            last.clear();
            for (int key = 0; key < keys && renew; ++key) {
                renew = sqlite3_column_type(statement.handle(), key) == SQLITE_INTEGER;
                last.push_back(statement.integer(key));
            }
        }
        statement = Statement();
        if (auto renewed = store.renewView(); !renewed) return renewed;
        if (rows.load)
            if (auto loaded = rows.load(); !loaded) return loaded;
    }
}

} // namespace stagewright
