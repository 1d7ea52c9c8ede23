// A field of a survey as a control with its label. GUI thread only.
#pragma once

#include <functional>
#include <string>

#include "schedules/survey/survey.h"

class QLabel;
class QString;
class QWidget;

namespace stagewright {

struct SurveyControl {
    SurveyField field;
    QLabel* label = nullptr;
    QWidget* widget = nullptr;
    std::function<std::string()> value;
    std::function<void(const QString&)> set; // a value that it can't have is left out
};
// Both are children of the parent; the control is found there by the field's name. `changed` is called with every change.
SurveyControl makeSurveyControl(const SurveyField& field, QWidget* parent, const std::function<void()>& changed);

} // namespace stagewright
