// What surveys (schedules/survey/survey.h) say, as the window writes it.
#pragma once

#include "schedules/survey/explore_question.h"
#include "widgets/numbers.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/table_copy.h"

namespace stagewright {

inline QString titleOf(ExploreParameter parameter) { return qtText(fieldOf(parameter).title); }

// Every column and row; schedules by their titles.
TableText tableTextOf(const SurveyTable& table, const Units& units = {});

} // namespace stagewright
