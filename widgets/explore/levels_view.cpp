#include "widgets/explore/levels_view.h"

#include <QLabel>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

LevelsView::LevelsView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 4, 8, 6);
    m_plot = new PlotWidget(u"levelsPlot"_s, u"Places of the ticked schedules by how much is counted"_s, this);
    m_flips = makeLabel({}, "secondary", this, true);
    m_flips->setObjectName(u"levelsFlips"_s);
    m_flips->setWordWrap(true);
    column->addWidget(m_plot, 1);
    column->addWidget(m_flips);
}

void LevelsView::setAnswer(std::shared_ptr<const LevelsAnswer> answer)
{
    m_answer = std::move(answer);
    m_plot->setPlot(levelsPlot(m_answer ? *m_answer : LevelsAnswer()));
    m_flips->setText(qtText(table().sentence));
}

SurveyTable LevelsView::table() const { return m_answer ? levelsTable(*m_answer) : SurveyTable(); }

} // namespace stagewright
