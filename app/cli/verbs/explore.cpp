#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/costs/survey_runs.h"
#include "schedules/survey/survey.h"
#include "traces/fit/measured_step.h"
#include "traces/format/atomic_file.h"
#include "traces/plot/plot_files.h"
#include "traces/report/table_document.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

struct ExploreChoice {
    std::string survey;
    SurveyValues fields; // on the command line
    bool csv = false;
    std::string svg, plot;
};

std::string quoted(const std::string& text)
{
    return text.empty() || text.find(' ') != std::string::npos ? "'" + text + "'" : text;
}

// A number where the field has one, else null.
Json numberJson(const SurveyField& field, double value)
{
    if (field.kind == FieldKind::Whole) return Json(static_cast<std::int64_t>(value));
    return field.kind == FieldKind::Real ? Json(value) : Json(nullptr);
}

// A line for each survey, and below it its fields with their defaults.
Result<int> listSurveys(Session& session)
{
    Json all = Json::array();
    for (const SurveyInfo* survey : allSurveys()) {
        session.out(fmt::format("{:8} {}\n", survey->name, survey->summary));
        Json fields = Json::array();
        std::string line;
        for (const SurveyField& field : survey->fields()) {
            const std::string part = fmt::format("--{} {}", field.name, quoted(field.fallback));
            if (line.size() + part.size() + 12 > static_cast<std::size_t>(session.columns())) {
                session.out("         " + line + "\n");
                line.clear();
            }
            line += (line.empty() ? "" : "  ") + part;
            Json choices = Json::array();
            for (const FieldChoice& choice : field.choices) choices.push_back(choice.value);
            fields.push_back({{"name", field.name},
                              {"title", field.title},
                              {"help", field.help},
                              {"default", field.fallback},
                              {"unit", textOrNull(field.unit)},
                              {"least", numberJson(field, field.least)},
                              {"most", numberJson(field, field.most)},
                              {"choices", field.choices.empty() ? Json(nullptr) : std::move(choices)}});
        }
        session.out("         " + line + "\n");
        all.push_back({{"name", std::string(survey->name)},
                       {"title", std::string(survey->title)},
                       {"summary", std::string(survey->summary)},
                       {"fields", std::move(fields)}});
    }
    if (session.json) session.answer({{"surveys", std::move(all)}});
    return ExitDone;
}

// Where measured steps are a run file: the steps of its runs, and its shape and costs where they are not given.
Result<SurveyValues> withRuns(SurveyValues fields, Session& session)
{
    const auto named = fields.find("measured");
    if (named == fields.end() || !named->second.ends_with(".stagewright")) return fields;
    STAGEWRIGHT_TRY(const auto file, RunFile::open(named->second, OpenMode::Read, session.stop()));
    STAGEWRIGHT_TRY(const auto infos, file->runs());
    std::string steps;
    std::optional<MeasuredWindow> first;
    for (const RunInfo& info : infos) {
        STAGEWRIGHT_TRY(const auto run, file->read(info.id));
        const auto window = measuredWindowOf(run);
        if (!window) continue;
        if (!first) first = *window;
        if (window->ranks != first->ranks || window->microbatches != first->microbatches) {
            session.note(fmt::format("left out: run {} has another shape", info.name));
            continue;
        }
        steps += fmt::format("{}{}={}", steps.empty() ? "" : ",", window->schedule, textOf(window->step));
    }
    if (!first) return fail(ErrorCode::Usage, named->second + ": no run has passes", "record some");
    fields.insert_or_assign("measured", steps);
    fields.try_emplace("ranks", std::to_string(first->ranks));
    fields.try_emplace("microbatches", std::to_string(first->microbatches));
    const auto rounded = [](double value) { return textOf(std::round(value * 100) / 100); };
    fields.try_emplace("input-grad", rounded(first->inputGrad));
    fields.try_emplace("weight-grad", rounded(first->weightGrad));
    return fields;
}

Result<int> runExplore(const ExploreChoice& options, Session& session)
{
    if (options.survey.empty()) {
        if (!options.fields.empty() || options.csv || !options.svg.empty() || !options.plot.empty())
            return fail(ErrorCode::Usage, "a survey is needed", "'stagewright explore' lists them");
        return listSurveys(session);
    }
    STAGEWRIGHT_TRY(const SurveyInfo* survey, findSurvey(options.survey));
    for (const SurveyField& field : survey->fields())
        if (const auto given = options.fields.find(field.name);
            field.alone && given != options.fields.end() && !given->second.empty())
            for (const auto& [name, value] : options.fields)
                if (name != field.name)
                    return fail(ErrorCode::Usage, fmt::format("--{} does nothing beside --{}", name, field.name),
                                "leave one of them out");
    STAGEWRIGHT_TRY(const SurveyValues fields, withRuns(options.fields, session));
    auto question = SurveyQuestion::read(*survey, fields);
    if (!question) {
        question.error().message = "--" + question.error().message;
        return tl::unexpected(std::move(question.error()));
    }
    auto answer = answerOf(*survey, *question, session.reporter("points"));
    session.progress().clear();
    if (!answer) return tl::unexpected(std::move(answer.error()));
    document::Document document{{}, {}, answer->units};
    for (const SurveyTable& table : answer->tables)
        document.sections.push_back(tableSection(table, "tables." + table.name, answer->units));
    if (session.json) {
        Json fields = Json::object();
        for (const SurveyField& field : survey->fields()) {
            const Json number = numberJson(field, question->real(field.name));
            fields[field.name] = number.isNull() ? Json(question->text(field.name)) : number;
        }
        Json object{{"survey", std::string(survey->name)},
                    {"question", std::move(fields)},
                    {"setup", answer->setup},
                    {"interrupted", !answer->complete}};
        object.update(documentJson(document));
        session.answer(object);
    }
    if (options.csv) {
        const SurveyTable& table = answer->tables.front();
        session.out(csvOf(table.columns, table.rows, answer->units));
    } else {
        session.out(answer->setup + "\n\n" + documentText(document, {session.colourOut()}));
    }
    for (const auto& [path, form] :
         {std::pair(options.svg, std::string(".svg")), std::pair(options.plot, options.plot)}) {
        if (path.empty()) continue;
        if (answer->plot.empty())
            return fail(ErrorCode::Usage, fmt::format("nothing of '{}' can be drawn", survey->name),
                        "the column note says why nothing could be simulated");
        STAGEWRIGHT_TRY(const std::string text,
                        plotText(answer->plot, std::string(survey->title), answer->setup, form));
        STAGEWRIGHT_CHECK(writeFileAtomically(path, text));
        session.note(fmt::format("the plot is written to {}", path));
    }
    if (answer->complete) return ExitDone;
    session.warn("interrupted: this is what was done before");
    return ExitInterrupted;
}

// Every field of any survey once, and which surveys have it.
struct SharedField {
    SurveyField field;
    std::string surveys;
};
std::vector<SharedField> sharedFields()
{
    std::vector<SharedField> out;
    for (const SurveyInfo* survey : allSurveys())
        for (SurveyField& field : survey->fields()) {
            const auto at = std::find_if(out.begin(), out.end(),
                                         [&](const SharedField& one) { return one.field.name == field.name; });
            if (at == out.end())
                out.push_back({std::move(field), std::string(survey->name)});
            else
                at->surveys += fmt::format(", {}", survey->name);
        }
    return out;
}

std::string formOf(const SurveyField& field)
{
    std::string choices;
    for (const FieldChoice& choice : field.choices) choices += (choices.empty() ? "" : "|") + choice.value;
    switch (field.kind) {
    case FieldKind::Whole: return "N";
    case FieldKind::Real: return "X";
    case FieldKind::Text: return "LIST";
    case FieldKind::Switch: return "yes|no";
    case FieldKind::Choice: return choices.size() > 24 ? "NAME" : choices;
    }
    return {};
}

} // namespace

Command command_explore()
{
    return {
        "explore", "Answer a question about many schedules at once, as the window's explorer does",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<ExploreChoice>();
            verb.value("SURVEY", &options->survey, "The question: memory, line, heat, …; none: lists them");
            for (const auto& [field, surveys] : sharedFields()) {
                const std::string unit = field.unit.empty() ? "" : ", " + field.unit;
                const std::string fallback = field.fallback.empty() || (field.fallback == "0" && !field.none.empty())
                                                 ? field.none
                                                 : field.fallback;
                verb.value("--" + field.name, Option::Receiver([options, name = field.name](const std::string& text) {
                               options->fields[name] = text;
                           }),
                           fmt::format("{}{} [{}]: {}", field.title, unit, fallback, surveys))
                    .form(formOf(field));
            }
            verb.value("--layers",
                       Option::Receiver([options](const std::string& text) { options->fields["layers-from"] = text; }),
                       "The same for a layer table, as choose has it: choose")
                .form("FILE.json")
                .excludes("--layers-from");
            verb.flag("--csv", options->csv, "Print the first table as CSV");
            verb.value("--svg", &options->svg, "Write the plot to this file").form("FILE").replaces();
            verb.value("--plot", &options->plot,
                       "Write the plot by the suffix of the name: .svg, its points as .csv, for papers as .tex (TikZ)")
                .form("FILE")
                .replaces();
            verb.notes("The surveys after an option's colon are those that have it. What can't be simulated is in the "
                       "column note.\n"
                       "Examples: stagewright explore memory --ranks 8 --microbatches 32 --cap 6 --svg memory.svg\n"
                       "          stagewright explore uneven --speeds 3,2,1 --memory 40,48,64 --json");
            return [options](Session& session) { return runExplore(*options, session); };
        },
        true, true};
}

} // namespace stagewright
