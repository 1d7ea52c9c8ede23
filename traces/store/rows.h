// Rows of a statement that has the run as its one parameter.
#pragma once

#include <cstdint>
#include <string_view>

#include "schedules/base/result.h"
#include "traces/store/database.h"

namespace stagewright {

template <typename Bind>
Result<Statement> bound(Database& database, std::string_view sql, Bind bind)
{
    auto statement = database.prepare(sql);
    if (statement) bind(*statement);
    return statement;
}

// Calls row(statement) for every row until it gives an error.
template <typename Row>
Result<void> forEachRow(Database& database, std::string_view sql, std::int64_t run, Row row)
{
    STAGEWRIGHT_TRY(auto statement, bound(database, sql, [&](Statement& s) { s.bind(run); }));
    for (;;) {
        STAGEWRIGHT_TRY(const auto more, database.step(statement));
        if (!more) return {};
        if (Result<void> done = row(statement); !done) return done;
    }
}

} // namespace stagewright
