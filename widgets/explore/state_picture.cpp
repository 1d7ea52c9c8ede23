#include "widgets/explore/state_picture.h"

#include <algorithm>

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int levels = 4, rowHeight = 22, aroundRows = 50;

} // namespace

StatePicture::StatePicture(QWidget* parent)
    : QWidget(parent), m_bars(new PlotWidget(u"stateBars"_s, u"Memory by what replicas share"_s, this)),
      m_grid(new PlotWidget(u"statePicture"_s, u"Memory and time by what replicas share"_s)),
      m_scroll(new QScrollArea(this))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setWidget(m_grid);
    m_bars->setUsualSize({760, 260});
    m_grid->setUsualSize({760, 260});
    m_bars->setFocusPolicy(Qt::NoFocus); // the grid's keys choose
    m_why = makeLabel({}, "secondary", this, true);
    m_why->setWordWrap(true);
    m_why->setContentsMargins(12, 2, 12, 6);
    column->addWidget(m_bars, 1);
    column->addWidget(m_why);
    column->addWidget(m_scroll, 1);
    connect(m_grid, &PlotWidget::itemChosen, this,
            [this](int item) { choose(m_grid->idOf(item) / levels, m_grid->idOf(item) % levels); });
    connect(m_bars, &PlotWidget::itemChosen, this, [this](int level) { choose(m_row, level); });
    connect(m_grid, &PlotWidget::itemActivated, this, [this](int item) {
        emit activated(
            QString::fromStdString((*m_rows)[static_cast<std::size_t>(m_grid->idOf(item) / levels)].schedule));
    });
}

void StatePicture::setRows(StateRows rows, const StateQuestion& question)
{
    m_rows = std::move(rows);
    m_question = question;
    const int count = m_rows ? static_cast<int>(m_rows->size()) : 0;
    for (int i = 0; !m_chosen && i < count; ++i)
        if ((*m_rows)[static_cast<std::size_t>(i)].schedule == "1f1b") m_row = i;
    m_row = std::clamp(m_row, 0, std::max(0, count - 1));
    m_grid->setPlot(stateGrid(m_rows ? *m_rows : std::vector<StateRow>(), m_question));
    m_grid->setMinimumHeight(aroundRows + rowHeight * count);
    showChoice();
}

void StatePicture::choose(int row, int level)
{
    if (!m_rows || row < 0 || row >= static_cast<int>(m_rows->size())) return;
    m_chosen = true;
    m_row = row;
    m_level = std::clamp(level, 0, levels - 1);
    showChoice();
    const QRectF cell = m_grid->itemRect(m_grid->chosen());
    m_scroll->ensureVisible(static_cast<int>(cell.center().x()), static_cast<int>(cell.center().y()), 0, rowHeight * 2);
}

void StatePicture::showChoice()
{
    const bool any = m_rows && !m_rows->empty();
    m_bars->setPlot(any ? stateBars((*m_rows)[static_cast<std::size_t>(m_row)], m_question)
                        : stateGrid({}, m_question));
    const std::string why = any ? whyMoreIsHeld((*m_rows)[static_cast<std::size_t>(m_row)], m_question) : std::string();
    m_why->setText(wholeQuantities(sentence(why)));
    m_why->setVisible(!why.empty());
    m_bars->setChosen(any ? m_level : -1);
    m_grid->setChosen(m_grid->itemOf(m_row * levels + m_level));
}

SurveyTable StatePicture::answer() const { return m_rows ? stateTable(*m_rows, m_question) : SurveyTable(); }

void StatePicture::setTheme(const Theme& theme)
{
    m_bars->setTheme(theme);
    m_grid->setTheme(theme);
}

} // namespace stagewright
