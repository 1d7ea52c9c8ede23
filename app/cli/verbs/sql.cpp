#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/run_access.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/base/csv_line.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

struct SqlChoice {
    std::string file;
    std::string query;
    bool csv = false;
    std::int64_t maxRows = 100'000;
    double seconds = 0; // 0: as the file's size says
};

bool looksNumeric(const std::string& text)
{
    return !text.empty() && text.find_first_not_of("-0123456789.e+") == std::string::npos;
}

Result<RunFile::Table> ask(const RunFile& file, const std::string& query, std::int64_t maxRows,
                           const SqlChoice& options)
{
    return file.query(query, static_cast<std::size_t>(maxRows), {},
                      options.seconds > 0 ? std::optional(options.seconds) : std::nullopt);
}

// Cells are texts; behind each the type that SQLite gives it.
Result<RunFile::Table> askTyped(const RunFile& file, std::string query, std::size_t columns, const SqlChoice& options)
{
    while (!query.empty() && (query.back() == ';' || isBlank(query.back()))) query.pop_back();
    std::string names, values;
    for (std::size_t i = 0; i < columns; ++i) {
        names += fmt::format("{}c{}", i ? "," : "", i);
        values += fmt::format("{}c{},typeof(c{})", i ? "," : "", i, i);
    }
    return ask(file, fmt::format("WITH q({}) AS ({}\n) SELECT {} FROM q", names, query, values), options.maxRows,
               options);
}

Json typedRow(const std::vector<std::string>& cells)
{
    Json row = Json::array();
    for (std::size_t i = 0; i + 1 < cells.size(); i += 2) {
        const std::string& type = cells[i + 1];
        if (type == "null")
            row.push_back(nullptr);
        else if (type == "integer")
            row.push_back(std::strtoll(cells[i].c_str(), nullptr, 10));
        else if (type == "real")
            row.push_back(std::strtod(cells[i].c_str(), nullptr)); // one that is not finite is null in JSON
        else
            row.push_back(cells[i]);
    }
    return row;
}

Result<int> runSql(const SqlChoice& options, Session& session)
{
    if (options.csv && session.json)
        return fail(ErrorCode::Usage, "--csv and --json can't be combined", "choose one of them");
    STAGEWRIGHT_TRY(auto file, openRunFile(options.file));
    auto table = ask(*file, options.query, session.json ? 0 : options.maxRows, options); // of JSON the columns
    if (!table) return tl::unexpected(std::move(table.error()));
    if (session.json) {
        STAGEWRIGHT_TRY(auto typed, askTyped(*file, options.query, table->columns.size(), options));
        table->rows = std::move(typed.rows);
        table->truncated = typed.truncated;
        auto written =
            session.answer({{"columns", table->columns}}, "rows", [&](const Session::ItemSink& item) -> Result<void> {
                for (const auto& cells : table->rows) item(typedRow(cells));
                return {};
            });
        if (!written) return tl::unexpected(std::move(written.error()));
    } else if (options.csv) {
        session.out(csvLine(table->columns));
        for (const auto& row : table->rows) session.out(csvLine(row));
    } else {
        std::vector<Table::Column> columns;
        for (std::size_t i = 0; i < table->columns.size(); ++i) {
            bool numeric = !table->rows.empty();
            for (const auto& row : table->rows) numeric = numeric && (row[i].empty() || looksNumeric(row[i]));
            columns.push_back({table->columns[i], numeric ? Table::Align::Right : Table::Align::Left});
        }
        Table text(std::move(columns)); // line by line: all of it at once may be more than the rows are
        for (const auto& row : table->rows) text.measure(row);
        session.out(text.titles(session.colourOut()));
        for (const auto& row : table->rows) session.out(text.line(row, Tint::None, session.colourOut()));
    }
    if (table->truncated && table->rows.size() < static_cast<std::size_t>(options.maxRows))
        session.warn(fmt::format("stopped after {} rows, which have more than 256 MiB; ask for less of each",
                                 table->rows.size()));
    else if (table->rows.size() == static_cast<std::size_t>(options.maxRows))
        session.warn(fmt::format("stopped after {} rows; --max-rows takes more", options.maxRows));
    return ExitDone;
}

} // namespace

Command command_sql()
{
    return {"sql", "Query a run file", [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<SqlChoice>();
                verb.value("FILE", &options->file, "A run file").required();
                verb.value("QUERY", &options->query, "A SELECT").required();
                verb.flag("--csv", options->csv, "Print CSV");
                verb.value("--max-rows", &options->maxRows, "Stop after this many rows [100000]")
                    .form("N")
                    .check(wholeNumber(1, 100'000'000));
                verb.value("--time-limit", &options->seconds,
                           "End it once it has computed so long, in seconds [60, and 1 for each MB of the file]")
                    .form("S")
                    .check(realNumber(0.1, 1e9));
                verb.notes(
                    "Tables: spans(run, step, rank, lane, stage, kind, microbatch, start_ns, end_ns, cpu_ns, name,\n"
                    "duration_ns, span, step_number, replica, pipeline_rank, graph, graph_node), runs, steps, memory, "
                    "edges,\n"
                    "metrics, notes. The file is opened for reading only.\n"
                    "Example: stagewright sql demo.stagewright \"SELECT kind, count(*), avg(end_ns - start_ns) FROM "
                    "spans WHERE run = 1 GROUP BY kind\"");
                return [options](Session& session) { return runSql(*options, session); };
            }};
}

} // namespace stagewright
