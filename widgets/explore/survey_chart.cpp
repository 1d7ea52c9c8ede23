#include "widgets/explore/survey_chart.h"

#include <QLabel>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

SurveyChart::SurveyChart(const SurveyInfo& survey, QWidget* parent) : QWidget(parent), m_survey(survey)
{
    const QString name = QString::fromUtf8(survey.name.data(), static_cast<qsizetype>(survey.name.size()));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 4, 8, 6);
    m_plot = new PlotWidget(name + u"Plot"_s, sentence(survey.summary), this);
    m_said = makeLabel({}, "secondary", this, true);
    m_said->setObjectName(name + u"Said"_s);
    m_said->setWordWrap(true);
    column->addWidget(m_plot, 1);
    column->addWidget(m_said);
}

void SurveyChart::setAnswer(std::shared_ptr<const SurveyAnswer> answer)
{
    m_answer = std::move(answer);
    Plot waiting;
    waiting.nothing = "simulating…";
    m_plot->setPlot(m_answer ? m_answer->plot : waiting);
    m_said->setText(qtText(table().sentence));
}

SurveyTable SurveyChart::table() const
{
    return m_answer && !m_answer->tables.empty() ? m_answer->tables.front() : SurveyTable();
}

} // namespace stagewright
