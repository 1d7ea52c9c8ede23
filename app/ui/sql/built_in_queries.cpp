#include "app/ui/sql/built_in_queries.h"

#include <cctype>

namespace stagewright {

std::vector<SavedQuery> builtInQueries()
{
    return {
        {"Longest ops",
         "SELECT rank, name, duration_ns, start_ns, span\nFROM spans WHERE run = :run AND step = :step AND lane = "
         "'compute'\nORDER BY duration_ns DESC LIMIT 50",
         "The 50 longest ops of the step shown"},
        {"Busy time by rank and kind",
         "SELECT rank, kind, count(*) AS ops, sum(duration_ns) / 1e6 AS busy_ms, avg(duration_ns) / 1e6 AS mean_ms\n"
         "FROM spans WHERE run = :run AND step = :step AND lane = 'compute'\nGROUP BY rank, kind ORDER BY rank, "
         "busy_ms DESC",
         "How long each rank spends in each kind of op, in the step shown"},
        {"Longest gaps",
         "WITH ops AS (SELECT rank, name, start_ns, span, lag(end_ns) OVER (PARTITION BY rank ORDER BY start_ns) AS "
         "before_ns\n"
         "  FROM spans WHERE run = :run AND step = :step AND lane = 'compute')\n"
         "SELECT rank, name AS name_after, start_ns - before_ns AS gap_ns, before_ns AS begin_ns, span\nFROM ops WHERE "
         "gap_ns > 0 ORDER BY gap_ns DESC LIMIT 50",
         "Idle time between two ops of a rank, with the op that ends it"},
        {"Slowest transfers",
         "SELECT a.name AS from_op, b.name AS name, b.rank AS rank, e.arrival_ns - a.end_ns AS transfer_ns, "
         "e.from_span AS span\n"
         "FROM edges e JOIN spans a ON a.run = e.run AND a.span = e.from_span JOIN spans b ON b.run = e.run AND b.span "
         "= e.to_span\n"
         "WHERE e.run = :run AND a.rank <> b.rank ORDER BY transfer_ns DESC LIMIT 50",
         "From the end of an op to the arrival of its result on another rank"},
        {"Same op across steps",
         "SELECT rank, name, count(*) AS steps, min(duration_ns) AS least_ns, avg(duration_ns) AS mean_ns, "
         "max(duration_ns) AS most_ns\n"
         "FROM spans WHERE run = :run AND lane = 'compute'\nGROUP BY rank, name ORDER BY max(duration_ns) - "
         "min(duration_ns) DESC LIMIT 100",
         "Which ops vary most from step to step"},
        {"Steps", "SELECT step, begin_ns, duration_ns, spans FROM steps WHERE run = :run ORDER BY step",
         "Start and length of every step"},
        {"Loss and other metrics", "SELECT step, name, value, unit FROM metrics WHERE run = :run ORDER BY name, step",
         "One value per step"},
        {"Largest allocations",
         "SELECT rank, stage, microbatch, category, time_ns, delta_bytes\nFROM memory WHERE run = :run AND step = "
         ":step AND delta_bytes > 0 ORDER BY delta_bytes DESC LIMIT 50",
         "What takes memory in the step shown, and when"},
        {"Notes", "SELECT run, step, rank, op AS name, text, begin_ns, end_ns FROM notes ORDER BY run, step, rank",
         "Every note in the file"},
        {"Runs",
         "SELECT run, name, schedule, provenance, ranks, microbatches, steps, span_count, state, note FROM runs",
         "Every run in the file"},
    };
}

std::string withShown(const std::string& sql, std::int64_t run, int step)
{
    std::string text;
    for (std::size_t i = 0; i < sql.size();) {
        if (sql[i] == '\'' || sql[i] == '"') { // quoted
            const std::size_t end = std::min(
                sql.size(), sql.find(sql[i], i + 1) == std::string::npos ? sql.size() : sql.find(sql[i], i + 1) + 1);
            text.append(sql, i, end - i);
            i = end;
            continue;
        }
        if (sql.compare(i, 2, "--") == 0) {
            const std::size_t end = std::min(sql.find('\n', i), sql.size());
            text.append(sql, i, end - i);
            i = end;
            continue;
        }
        const auto is = [&](const char* name, std::size_t length) {
            return sql.compare(i, length, name) == 0 &&
                   (i + length == sql.size() ||
                    (std::isalnum(static_cast<unsigned char>(sql[i + length])) == 0 && sql[i + length] != '_'));
        };
        if (is(":run", 4)) {
            text += std::to_string(run);
            i += 4;
        } else if (is(":step", 5)) {
            text += std::to_string(step);
            i += 5;
        } else {
            text += sql[i++];
        }
    }
    return text;
}

} // namespace stagewright
