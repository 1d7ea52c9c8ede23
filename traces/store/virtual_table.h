// Tables of SQLite that are there without CREATE, as functions of this program give their rows.
#pragma once

#include <string>

#include <sqlite3.h>

#include "traces/store/database.h"

namespace stagewright {

// The functions of such a table; those that may allocate return SQLITE_NOMEM where there is no memory.
template <auto connect, auto disconnect, auto bestIndex, auto open, auto close, auto filter, auto next, auto atEnd,
          auto column, auto rowId>
const sqlite3_module& virtualTable()
{
    static const sqlite3_module module = [] {
        sqlite3_module m{};
        m.iVersion = 1;
        m.xConnect = CalledBySqlite<connect>::call; // no xCreate: they are simply there
        m.xDisconnect = disconnect;
        m.xBestIndex = CalledBySqlite<bestIndex>::call;
        m.xOpen = CalledBySqlite<open>::call;
        m.xClose = close;
        m.xFilter = CalledBySqlite<filter>::call;
        m.xNext = CalledBySqlite<next>::call;
        m.xEof = atEnd;
        m.xColumn = CalledBySqlite<column>::call;
        m.xRowid = rowId;
        return m;
    }();
    return module;
}

// Registers one that owns `about`, and connects it with `FROM from` now: later, under the authorizer of a query,
// declaring its columns would be refused.
template <typename About>
Result<void> registerVirtualTable(Database& database, const std::string& name, const std::string& from,
                                  const sqlite3_module& module, About* about)
{
    const int code = sqlite3_create_module_v2(database.handle(), name.c_str(), &module, about,
                                              [](void* owned) { delete static_cast<About*>(owned); });
    if (code != SQLITE_OK) return tl::unexpected(database.error(code));
    STAGEWRIGHT_CHECK(database.prepare("SELECT 1 FROM " + from + " WHERE 0"));
    return {};
}

} // namespace stagewright
