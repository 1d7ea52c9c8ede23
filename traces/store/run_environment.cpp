#include "traces/store/run_environment.h"

#include <fmt/format.h>

#include "traces/store/database.h"
#include "traces/store/run_digest.h"

namespace stagewright {

Result<void> addEnvironment(const std::string& path, std::int64_t run, const TextPairs& pairs)
{
    auto database = Database::open(path, SQLITE_OPEN_READWRITE);
    if (!database) return tl::unexpected(std::move(database.error()));
    const auto digests = (*database)->integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'");
    if (!digests) return tl::unexpected(digests.error());
    if (*digests > 0) (*database)->keepDigests();
    auto transaction = Transaction::begin(**database);
    if (!transaction) return tl::unexpected(std::move(transaction.error()));
    auto known = (*database)->integer(fmt::format("SELECT count(*) FROM run WHERE id={}", run));
    if (!known) return tl::unexpected(std::move(known.error()));
    if (*known == 0) return fail(ErrorCode::Usage, fmt::format("file {}: there is no run {}", path, run));
    const auto intact = digestHolds(**database, run);
    if (!intact) return tl::unexpected(intact.error());
    for (const auto& [key, value] : pairs) {
        auto insert = (*database)->cached(
            "INSERT INTO main.run_text SELECT ?1, 'environment', coalesce(max(ordinal) + 1, 0), ?2, ?3 FROM run_text "
            "WHERE run=?1 AND section='environment'");
        if (!insert) return tl::unexpected(std::move(insert.error()));
        (*insert)->bind(run).bind(std::string_view(key)).bind(std::string_view(value));
        if (auto done = (*database)->run(**insert); !done) return done;
    }
    if (*intact == true) // a run that was damaged before stays so
        if (auto done = storeDigest(**database, run); !done) return done;
    return transaction->commit();
}

} // namespace stagewright
