#include "traces/store/run_environment.h"

#include <fmt/format.h>

#include "traces/store/database.h"
#include "traces/store/run_digest.h"

namespace stagewright {

Result<void> addEnvironment(const std::string& path, std::int64_t run, const TextPairs& pairs)
{
    STAGEWRIGHT_TRY(auto database, Database::open(path, SQLITE_OPEN_READWRITE));
    STAGEWRIGHT_TRY(const auto digests,
                    database->integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'"));
    if (digests > 0) database->keepDigests();
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*database));
    STAGEWRIGHT_TRY(auto known, database->integer(fmt::format("SELECT count(*) FROM run WHERE id={}", run)));
    if (known == 0) return fail(ErrorCode::Usage, fmt::format("file {}: there is no run {}", path, run));
    STAGEWRIGHT_TRY(const auto intact, digestHolds(*database, run));
    for (const auto& [key, value] : pairs) {
        STAGEWRIGHT_TRY(auto insert, database->cached("INSERT INTO main.run_text SELECT ?1, 'environment', "
                                                      "coalesce(max(ordinal) + 1, 0), ?2, ?3 FROM run_text "
                                                      "WHERE run=?1 AND section='environment'"));
        insert->bind(run).bind(std::string_view(key)).bind(std::string_view(value));
        if (auto done = database->run(*insert); !done) return done;
    }
    if (intact == true) // a run that was damaged before stays so
        if (auto done = storeDigest(*database, run); !done) return done;
    return transaction.commit();
}

} // namespace stagewright
