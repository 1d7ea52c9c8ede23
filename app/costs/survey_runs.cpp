#include "app/costs/survey_runs.h"

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/planner/problem.h"
#include "traces/fit/measured_layers.h"
#include "traces/fit/measured_step.h"
#include "traces/fit/recorded_lines.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

Result<Run> namedRun(std::string_view name)
{
    const auto at = name.rfind('#');
    const auto id = at == std::string_view::npos ? std::nullopt : wholeOf<std::int64_t>(name.substr(at + 1));
    if (!id)
        return fail(ErrorCode::Usage, fmt::format("'{}' does not name a run", name),
                    "write FILE.stagewright#RUN, such as demo.stagewright#3, or the name of a file, FILE.json");
    STAGEWRIGHT_TRY(const auto file, RunFile::open(std::string(name.substr(0, at)), OpenMode::Read));
    return file->read(*id);
}

} // namespace

Result<WaysQuestion> withRecordedLayers(WaysQuestion question)
{
    if (!question.fromRun()) return question;
    STAGEWRIGHT_TRY(const Run run, namedRun(question.layersFrom));
    LayoutQuestion& layout = question.layout;
    if (!question.ownModel) {
        STAGEWRIGHT_TRY(layout.model, trainedModelOf(run));
        question.model =
            fmt::format("layers={},hidden={},heads={},seq={},vocab={}", layout.model.layers, layout.model.hidden,
                        layout.model.heads, layout.model.sequence, layout.model.vocabulary);
    }
    STAGEWRIGHT_TRY(auto measured, measuredConstants(run, layout.model, layout.cluster, layout.constants));
    layout.constants = std::move(measured.constants);
    question.measured = std::move(measured.words);
    return question;
}

Result<MixedQuestion> withRecordedLines(MixedQuestion question)
{
    if (question.problem || !areRecordedLines(question.lines)) return question;
    std::vector<Run> runs;
    for (const std::string_view name : split(question.lines, ",")) {
        auto run = namedRun(trimmed(name));
        if (!run) return tl::unexpected(std::move(run.error()).with("lines"));
        runs.push_back(std::move(*run));
    }
    auto read = cephaloProblem(runs);
    if (!read) return tl::unexpected(std::move(read.error()).with("lines"));
    STAGEWRIGHT_TRY(question.problem, unevenProblem(read->problem));
    question.lines = std::move(read->words);
    return question;
}

Result<SurveyAnswer> answerOf(const SurveyInfo& survey, const SurveyQuestion& question, const Progress& progress)
{
    if (survey.name == "choose") {
        STAGEWRIGHT_TRY(auto asked, WaysQuestion::of(question));
        if (asked.fromRun()) {
            STAGEWRIGHT_TRY(asked, withRecordedLayers(std::move(asked)));
            STAGEWRIGHT_TRY(const auto answer, waysSurvey(asked, progress));
            SurveyAnswer out = toSurveyAnswer(answer);
            out.complete = !progress.cancelled();
            return out;
        }
    }
    if (survey.name == "uneven") {
        STAGEWRIGHT_TRY(auto asked, MixedQuestion::of(question));
        if (areRecordedLines(asked.lines)) {
            STAGEWRIGHT_TRY(asked, withRecordedLines(std::move(asked)));
            const MixedAnswer answer = mixedSurvey(asked, progress);
            if (!answer.error.empty()) return fail(ErrorCode::Usage, answer.error);
            SurveyAnswer out = toSurveyAnswer(answer, asked);
            out.complete = !progress.cancelled();
            return out;
        }
    }
    return survey.answer(question, progress);
}

} // namespace stagewright
