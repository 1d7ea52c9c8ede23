// Questions of surveys that name recorded runs: the layers of a model (choose), the cost lines of ranks (uneven).
#pragma once

#include "schedules/survey/choose.h"
#include "schedules/survey/uneven.h"

namespace stagewright {

// With what the named runs say; as it was where it names none. Reads their files. Usage: it is not a run, or a
// run does not say it.
Result<WaysQuestion> withRecordedLayers(WaysQuestion question);
Result<MixedQuestion> withRecordedLines(MixedQuestion question);

// The survey's answer, with those runs.
Result<SurveyAnswer> answerOf(const SurveyInfo& survey, const SurveyQuestion& question, const Progress& progress);

} // namespace stagewright
