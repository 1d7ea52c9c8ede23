#include "app/cli/mcp/sources.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schedules/base/text.h"
#include "schedules/base/units.h"

namespace stagewright {

namespace {

using ReportJson = nlohmann::ordered_json;

// * stands for a key or a position; in the SQL {r}, {s}: run and step, {u}: divided by the unit, {k}: the last key,
// {i}: the position.
struct Source {
    std::string_view key;
    std::string_view sql;
};
constexpr std::array sources{
    Source{"bubble_fraction",
           "SELECT 1.0 * sum(idle_ns) / sum(busy_ns + apart_ns + idle_ns) FROM report_bubbles({r}, {s})"},
    Source{"makespan", "SELECT max(busy_ns + apart_ns + idle_ns){u} FROM report_bubbles({r}, {s})"},
    Source{"makespan_ns", "SELECT max(busy_ns + apart_ns + idle_ns) FROM report_bubbles({r}, {s})"},
    Source{"busy", "SELECT sum(busy_ns){u} FROM report_bubbles({r}, {s})"},
    Source{"idle", "SELECT sum(idle_ns){u} FROM report_bubbles({r}, {s})"},
    Source{"idle_by_cause", "SELECT * FROM report_bubbles({r}, {s})"},
    Source{"idle_by_cause.*", "SELECT sum({k}_ns){u} FROM report_bubbles({r}, {s})"},
    Source{"by_rank", "SELECT * FROM report_bubbles({r}, {s})"},
    Source{"by_rank[*].busy", "SELECT busy_ns{u} FROM report_bubbles({r}, {s}) WHERE rank = {i}"},
    Source{"by_rank[*].idle", "SELECT idle_ns{u} FROM report_bubbles({r}, {s}) WHERE rank = {i}"},
    Source{"by_rank[*].idle_by_cause.*", "SELECT {k}_ns{u} FROM report_bubbles({r}, {s}) WHERE rank = {i}"},
    Source{"by_rank[*].peak_activation",
           "SELECT peak_activations_bytes{u} FROM report_memory({r}, {s}) WHERE rank = {i}"},
    Source{"busy_by_kind.*",
           "SELECT sum(duration_ns){u} FROM spans WHERE run = {r} AND step = {s} AND lane = 'compute' AND "
           "kind = '{k}'"},
    Source{"peak_activation", "SELECT rank, peak_activations_bytes{u} FROM report_memory({r}, {s})"},
    Source{"peak_activation[*]", "SELECT peak_activations_bytes{u} FROM report_memory({r}, {s}) WHERE rank = {i}"},
    Source{"peak_activation_bytes[*]", "SELECT peak_activations_bytes FROM report_memory({r}, {s}) WHERE rank = {i}"},
    Source{"critical_path", "SELECT op, rank, start_ns, duration_ns FROM report_critical_path({r}, {s})"},
    Source{"step_time_ns", "SELECT step, value FROM metrics WHERE run = {r} AND name = 'step_time_ns'"},
    Source{"step_time_ns[*]", "SELECT value FROM metrics WHERE run = {r} AND name = 'step_time_ns' AND step = {i}"},
    Source{"loss", "SELECT step, value FROM metrics WHERE run = {r} AND name = 'loss'"},
    Source{"loss[*]", "SELECT value FROM metrics WHERE run = {r} AND name = 'loss' AND step = {i}"},
    Source{"device_time", "SELECT * FROM report_device_time({r}, {s})"},
    Source{"device_idle", "SELECT * FROM report_device_idle({r}, {s})"},
    Source{"exposed_communication", "SELECT * FROM report_exposed_communication({r}, {s})"},
    Source{"stragglers", "SELECT * FROM report_stragglers({r}, {s})"},
    Source{"kernel_classes", "SELECT * FROM report_kernel_classes({r}, {s})"},
    Source{"tables.*", "SELECT * FROM report_{k}({r}, {s})"},
};

struct Part {
    std::string name;                          // of a member
    std::optional<std::int64_t> position = {}; // of a list's value; negative: from its end
};

std::optional<std::vector<Part>> partsOf(std::string_view key)
{
    std::vector<Part> parts;
    while (!key.empty()) {
        if (key.front() == '[') {
            std::int64_t position = 0;
            const std::size_t end = key.find(']');
            if (end == std::string_view::npos) return std::nullopt;
            const char* const last = key.data() + end;
            if (const auto read = std::from_chars(key.data() + 1, last, position);
                read.ec != std::errc() || read.ptr != last)
                return std::nullopt;
            parts.push_back({{}, position});
            key.remove_prefix(end + 1);
        } else {
            if (key.front() == '.' && !parts.empty()) key.remove_prefix(1);
            const std::size_t end = std::min(key.find_first_of(".["), key.size());
            if (end == 0) return std::nullopt;
            parts.push_back({std::string(key.substr(0, end))});
            key.remove_prefix(end);
        }
    }
    return parts.empty() ? std::nullopt : std::optional(std::move(parts));
}

std::string replaced(std::string text, std::string_view mark, const std::string& by)
{
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size())
        text.replace(at, mark.size(), by);
    return text;
}

std::string sqlText(std::string_view sql, const ReportJson& report, const std::string& name, std::int64_t position)
{
    const bool units = report.value("time_unit", "ns") != "ns";
    std::string text = replaced(std::string(sql), "{r}", report["run"].dump());
    text = replaced(std::move(text), "{s}", report["step"].dump());
    text = replaced(std::move(text), "{u}", units ? fmt::format(" / {}.0", rankShare) : "");
    text = replaced(std::move(text), "{k}", name);
    return replaced(std::move(text), "{i}", std::to_string(position));
}

bool hasSource(const ReportJson& report)
{
    return report.contains("run") && report["run"].is_number_integer() && report.contains("step") &&
           report["step"].is_number_integer();
}

bool namesTime(const std::string& name)
{
    constexpr std::array<std::string_view, 11> names{"whole_step",    "makespan",     "span",         "busy",
                                                     "apart",         "idle",         "gain",         "idle_by_cause",
                                                     "gain_by_cause", "busy_by_kind", "busy_by_cause"};
    return std::find(names.begin(), names.end(), name) != names.end() || name.ends_with("_time");
}

// "" where the figure is a number or a name.
std::string unitOf(const std::vector<Part>& parts, const ReportJson& report)
{
    const std::string time = report.value("time_unit", "ns");
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        const std::string& name = part->name;
        if (name == "steps" || name == "rank" || name == "stage" || name == "microbatch") return {};
        if (name.ends_with("_ns")) return "ns";
        if (name.ends_with("_bytes")) return "bytes";
        if (name.ends_with("_fraction") || name.ends_with("_rate_span") || name.ends_with("_share") ||
            name.starts_with("contention"))
            return "fraction";
        if (name.starts_with("peak_activation") || name == "amount" || name == "memory_cap")
            return time == "ns" ? "bytes" : "activations of a microbatch on a rank";
        if (namesTime(name)) return time;
    }
    return {};
}

Result<const ReportJson*> valueAt(const ReportJson& report, std::vector<Part>& parts, const std::string& key)
{
    const ReportJson* at = &report;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Part& part = parts[i];
        if (at->is_null()) return at; // unknown, with all that it would have
        if (part.position) {
            const auto size = at->is_array() ? static_cast<std::int64_t>(at->size()) : 0;
            if (*part.position < 0) *part.position += size;
            if (*part.position < 0 || *part.position >= size)
                return fail(ErrorCode::Usage, fmt::format("there is no {}: its list has {} values", key, size),
                            "count from 0, or from -1 backwards");
            at = &(*at)[static_cast<std::size_t>(*part.position)];
            continue;
        }
        if (!at->is_object())
            return fail(ErrorCode::Usage, fmt::format("there is no {}: what is there has no '{}'", key, part.name),
                        at->is_array() ? "name a value of the list, such as [0]" : "leave it out");
        // Some keys have dots: over_steps.idle_by_cause.order.
        auto found = at->find(part.name);
        while (found == at->end() && i + 1 < parts.size() && !parts[i + 1].position) {
            part.name += "." + parts[i + 1].name;
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            found = at->find(part.name);
        }
        if (found == at->end()) {
            std::vector<std::string> names;
            std::string listed;
            for (const auto& [name, value] : at->items()) {
                names.push_back(name);
                listed += (listed.empty() ? "" : ", ") + name;
            }
            const std::string near = nearestName(part.name, names);
            return fail(ErrorCode::Usage, fmt::format("there is no {} in the report", key),
                        (near.empty() ? std::string() : fmt::format("did you mean {}? ", near)) + "keys are " + listed);
        }
        at = &*found;
    }
    return at;
}

// The reason of the key, or of the nearest one that it is part of.
std::string reasonOf(const std::vector<Part>& parts, const ReportJson& report)
{
    constexpr const char* none = "this run does not have it";
    const auto unknown = report.find("unknown");
    if (unknown == report.end() || !unknown->is_object()) return none;
    std::string key;
    std::string reason = none;
    for (const Part& part : parts) {
        if (part.position) continue;
        key += (key.empty() ? "" : ".") + part.name;
        if (const auto found = unknown->find(key); found != unknown->end()) reason = found->get<std::string>();
        // peak_activation_bytes is unknown where peak_activation is
        for (const std::string_view suffix : {"_ns", "_bytes"})
            if (key.ends_with(suffix))
                if (const auto found = unknown->find(key.substr(0, key.size() - suffix.size()));
                    found != unknown->end())
                    reason = found->get<std::string>();
    }
    return reason;
}

bool matches(const std::vector<Part>& pattern, const std::vector<Part>& parts)
{
    return std::equal(pattern.begin(), pattern.end(), parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        return a.name == "[*]" ? b.position.has_value() : !b.position && (a.name == "*" || a.name == b.name);
    });
}

std::vector<Part> patternOf(std::string_view key)
{
    std::vector<Part> out;
    while (!key.empty()) {
        if (key.starts_with("[*]")) {
            out.push_back({"[*]"});
            key.remove_prefix(3);
        } else {
            if (key.front() == '.') key.remove_prefix(1);
            const std::size_t end = std::min(key.find_first_of(".["), key.size());
            out.push_back({std::string(key.substr(0, end))});
            key.remove_prefix(end);
        }
    }
    return out;
}

// "" where there is none: a simulated figure, a sentence.
std::string sourceOf(const std::vector<Part>& parts, const ReportJson& report)
{
    if (!hasSource(report)) return {};
    for (const Source& source : sources) {
        if (!matches(patternOf(source.key), parts)) continue;
        std::string name;
        std::int64_t position = 0;
        for (const Part& part : parts) {
            if (part.position)
                position = *part.position;
            else
                name = part.name;
        }
        return sqlText(source.sql, report, name, position);
    }
    return {};
}

// The spans of a gap and of the chain behind it: the one that starts at its end, and those of the named ops.
void addSpans(ReportJson& report, const AskRows& rows)
{
    const auto gaps = report.find("gaps");
    if (gaps == report.end() || !gaps->is_array() || gaps->empty() || !hasSource(report)) return;
    std::string names;
    const auto note = [&](const ReportJson& op) {
        if (op.is_string()) names += (names.empty() ? "'" : ", '") + replaced(op.get<std::string>(), "'", "''") + "'";
    };
    for (const ReportJson& gap : *gaps) {
        note(gap.value("before", ReportJson()));
        for (const ReportJson& link : gap.value("chain", ReportJson::array())) note(link.value("op", ReportJson()));
    }
    if (names.empty()) return;
    std::map<std::pair<std::string, std::int64_t>, ReportJson> spans; // the step's first of that name and rank
    for (const ReportJson& row : rows(fmt::format(
             "SELECT name, rank, span FROM spans WHERE run = {} AND step = {} AND lane = 'compute' AND name IN "
             "({}) ORDER BY start_ns",
             report["run"].dump(), report["step"].dump(), names)))
        if (row.is_array() && row.size() == 3 && row[0].is_string() && row[1].is_number_integer())
            spans.emplace(std::pair(row[0].get<std::string>(), row[1].get<std::int64_t>()), row[2]);
    const auto add = [&](ReportJson& to, const char* key, const ReportJson& op, const ReportJson& rank) {
        if (!op.is_string() || !rank.is_number_integer()) return;
        if (const auto found = spans.find({op.get<std::string>(), rank.get<std::int64_t>()}); found != spans.end())
            to[key] = found->second;
    };
    for (ReportJson& gap : *gaps) {
        add(gap, "before_span", gap.value("before", ReportJson()), gap.value("rank", ReportJson()));
        if (const auto chain = gap.find("chain"); chain != gap.end() && chain->is_array())
            for (ReportJson& link : *chain)
                add(link, "span", link.value("op", ReportJson()), link.value("rank", ReportJson()));
    }
}

} // namespace

void groupUnknown(ReportJson& report)
{
    if (!report.is_object()) return;
    ReportJson out = ReportJson::object(), reasons = ReportJson::object();
    if (const auto unknown = report.find("unknown"); unknown != report.end() && unknown->is_object())
        for (const auto& [key, reason] : unknown->items())
            if (reason.is_string() && report.contains(key.substr(0, key.find('.'))))
                reasons[reason.get<std::string>()].push_back(key);
    for (auto& [key, value] : report.items())
        if (!value.is_null() && key != "unknown") out[key] = std::move(value);
    if (!reasons.empty()) out["unknown"] = std::move(reasons);
    report = std::move(out);
}

void addSources(ReportJson& report, const AskRows& rows)
{
    addSpans(report, rows);
    ReportJson sql = ReportJson::object();
    if (hasSource(report))
        for (const Source& source : sources)
            if (const auto found = report.find(std::string(source.key));
                found != report.end() && !found->is_null() && source.key.find('*') == std::string_view::npos)
                sql[std::string(source.key)] = sqlText(source.sql, report, std::string(source.key), 0);
    groupUnknown(report);
    if (!sql.empty()) report["sources"] = std::move(sql);
}

Result<ReportJson> askedFigures(const ReportJson& report, const ReportJson& keys, const AskRows& rows)
{
    ReportJson out = ReportJson::object(), figures = ReportJson::array();
    for (const char* const key : {"file", "run", "name", "provenance", "clock", "step", "step_number"})
        if (report.contains(key)) out[key] = report[key];
    ReportJson spanned = report;
    addSpans(spanned, rows);
    for (const ReportJson& one : keys) {
        const auto key = one.get<std::string>();
        auto parts = partsOf(key);
        if (!parts)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not the key of a figure", key),
                        "write names with dots and positions in brackets: by_rank[2].idle");
        STAGEWRIGHT_TRY(const ReportJson* const value, valueAt(spanned, *parts, key));
        ReportJson figure = {{"key", key}, {"value", *value}};
        if (value->is_null()) {
            figure["unknown"] = reasonOf(*parts, report);
        } else {
            if (std::string unit = unitOf(*parts, report); !unit.empty()) figure["unit"] = std::move(unit);
            if (std::string sql = sourceOf(*parts, report); !sql.empty()) figure["sql"] = std::move(sql);
        }
        figures.push_back(std::move(figure));
    }
    out["figures"] = std::move(figures);
    return out;
}

} // namespace stagewright
