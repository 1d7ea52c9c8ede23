#include "widgets/explore/explore_form.h"

#include <cmath>

#include <QGridLayout>
#include <QLabel>

#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

ExploreForm::ExploreForm(QWidget* parent) : QWidget(parent)
{
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(3);
    grid->setColumnStretch(0, 1);
    for (int i = 0; i < exploreParameterCount; ++i) {
        const auto parameter = static_cast<ExploreParameter>(i);
        const SurveyField& range = fieldOf(parameter);
        const double end = range.slide > 0 ? range.slide : range.most;
        auto* label = makeLabel(titleOf(parameter), "secondary", this);
        auto* slider = new QSlider(Qt::Horizontal, this);
        slider->setRange(0, static_cast<int>(std::lround((end - range.least) / range.step)));
        slider->setPageStep(range.step == 1 ? 4 : 5);
        auto* field = new QDoubleSpinBox(this);
        field->setRange(range.least, range.most);
        field->setDecimals(range.kind == FieldKind::Whole ? 0 : 2);
        field->setSingleStep(range.step);
        field->setKeyboardTracking(false);
        field->setFixedWidth(70);
        field->setButtonSymbols(QAbstractSpinBox::NoButtons); // the slider is beside it, and Up and Down work
        field->setAlignment(Qt::AlignRight);
        if (!range.none.empty()) field->setSpecialValueText(qtText(range.none));
        label->setBuddy(field);
        for (QWidget* widget :
             {static_cast<QWidget*>(label), static_cast<QWidget*>(slider), static_cast<QWidget*>(field)})
            widget->setToolTip(qtText(range.help));
        slider->setAccessibleName(titleOf(parameter));
        field->setAccessibleName(titleOf(parameter));
        slider->setObjectName(u"slider%1"_s.arg(i));
        field->setObjectName(u"field%1"_s.arg(i));
        grid->addWidget(label, 2 * i, 0);
        grid->addWidget(field, 2 * i, 1, 2, 1);
        grid->addWidget(slider, 2 * i + 1, 0);
        m_sliders[static_cast<std::size_t>(i)] = slider;
        m_fields[static_cast<std::size_t>(i)] = field;
        connect(slider, &QSlider::valueChanged, this,
                [this, parameter, &range](int place) { change(parameter, range.least + place * range.step); });
        connect(field, &QDoubleSpinBox::valueChanged, this,
                [this, parameter](double value) { change(parameter, value); });
    }
    show();
}

void ExploreForm::change(ExploreParameter parameter, double value)
{
    if (m_showing) return;
    setQuestion(m_question.with(parameter, value));
}

void ExploreForm::setQuestion(const ExploreQuestion& question)
{
    if (question == m_question) return;
    m_question = question;
    show();
    emit questionChanged();
}

void ExploreForm::show()
{
    m_showing = true;
    for (int i = 0; i < exploreParameterCount; ++i) {
        const auto parameter = static_cast<ExploreParameter>(i);
        const SurveyField& range = fieldOf(parameter);
        const double value = m_question.value(parameter);
        m_sliders[static_cast<std::size_t>(i)]->setValue(
            static_cast<int>(std::lround((value - range.least) / range.step)));
        m_fields[static_cast<std::size_t>(i)]->setValue(value);
    }
    m_showing = false;
}

} // namespace stagewright
