#include "widgets/explore/explore_view.h"

#include <algorithm>

#include <QComboBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

#include "schedules/survey/memory.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

std::size_t surveyOf(ExploreChart chart)
{
    return static_cast<std::size_t>(chart) - static_cast<std::size_t>(ExploreChart::Levels);
}

QComboBox* parameterBox(QWidget* parent, ExploreParameter chosen, const QString& name)
{
    auto* box = new QComboBox(parent);
    for (int i = 0; i < exploreParameterCount; ++i) box->addItem(titleOf(static_cast<ExploreParameter>(i)), i);
    box->setCurrentIndex(static_cast<int>(chosen));
    box->setAccessibleName(name);
    box->setToolTip(name);
    return box;
}

} // namespace

ExploreView::ExploreView(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"explorer"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_columns = new QSplitter(Qt::Horizontal, this);
    m_columns->setHandleWidth(1);
    m_columns->setChildrenCollapsible(false);
    m_columns->addWidget(buildLeft());
    m_columns->addWidget(buildCentre());
    auto* right = new QWidget;
    auto* table = new QVBoxLayout(right);
    table->setContentsMargins(0, 0, 0, 0);
    m_table = new ExploreTable(right);
    m_table->setMinimumWidth(260);
    table->addWidget(m_table);
    m_columns->addWidget(right);
    m_columns->setStretchFactor(0, 0);
    m_columns->setStretchFactor(1, 1);
    m_columns->setStretchFactor(2, 0);
    connect(m_columns, &QSplitter::splitterMoved, this, [this] { m_columnsChosen = true; });
    layout->addWidget(m_columns);

    connect(m_form, &ExploreForm::questionChanged, this, &ExploreView::questionChanged);
    connect(m_measure, &QComboBox::currentIndexChanged, this, [this] {
        showPoints();
        showCharts();
    });
    for (QComboBox* box : {m_lineParameter, m_heatAcross, m_heatUp})
        connect(box, &QComboBox::currentIndexChanged, this, &ExploreView::surveyChanged);
    connect(m_heatShows, &QComboBox::currentIndexChanged, this, &ExploreView::showCharts);
    connect(m_charts, &QTabWidget::currentChanged, this, &ExploreView::surveyChanged);
    connect(m_table->rows(), &ExploreModel::tickedChanged, this, &ExploreView::surveyChanged);
    const auto open = [this](int row) {
        if (const SweepRow* at = rowAt(row); at != nullptr && at->good()) emit openAsked(at->point);
    };
    connect(m_pareto, &PlotWidget::itemChosen, this, [this](int item) { select(m_pareto->idOf(item)); });
    connect(m_pareto, &PlotWidget::itemActivated, this, [this, open](int item) { open(m_pareto->idOf(item)); });
    connect(m_pareto, &PlotWidget::itemHovered, this,
            [this](int item) { emit previewAsked(item >= 0 ? m_pareto->idOf(item) : selected()); });
    connect(m_table, &ExploreTable::rowChosen, this, &ExploreView::select);
    connect(m_table, &ExploreTable::rowActivated, this, open);
    connect(m_lines, &PlotWidget::itemActivated, this, [this](int item) {
        emit openAsked(m_linesPicture->rows[static_cast<std::size_t>(m_lines->idOf(item))].point);
    });
    connect(m_heat, &PlotWidget::itemActivated, this, [this](int item) {
        m_form->setQuestion(m_heatPicture->questionOf(static_cast<std::size_t>(m_heat->idOf(item))));
    });
    connect(m_open, &QPushButton::clicked, this, [this, open] { open(selected()); });
    connect(m_save, &QPushButton::clicked, this, [this] {
        if (const SweepRow* at = rowAt(selected()); at != nullptr && at->good()) emit saveAsked(at->point);
    });
    connect(m_cancel, &QPushButton::clicked, this, &ExploreView::cancelAsked);
    setWork({}, false);
    showRow(-1);
}

QWidget* ExploreView::buildLeft()
{
    auto* scroll = new QScrollArea;
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setMinimumWidth(250);
    auto* left = new QWidget;
    left->setObjectName(u"panel"_s);
    left->setAttribute(Qt::WA_StyledBackground);
    auto* column = new QVBoxLayout(left);
    column->setContentsMargins(14, 14, 14, 12);
    column->setSpacing(10);
    auto* head = new QHBoxLayout;
    head->addWidget(makeLabel(u"Explore"_s, "title", left));
    head->addStretch();
    auto* close = new QPushButton(u"Close"_s, left);
    close->setToolTip(u"Back to the timeline"_s);
    connect(close, &QPushButton::clicked, this, &ExploreView::closeAsked);
    head->addWidget(close);
    column->addLayout(head);
    m_form = new ExploreForm(left);
    column->addWidget(m_form);
    m_ways = new ChooseView; // its fields are here, itself in the centre
    column->addWidget(m_ways->form());
    m_ways->form()->hide();
    m_planner = new PlannerView;
    column->addWidget(m_planner->form());
    m_planner->form()->hide();
    m_miniature = new Miniature(left);
    column->addWidget(m_miniature);
    m_open = new QPushButton(u"Open on the timeline"_s, left);
    m_open->setObjectName(u"primary"_s);
    m_open->setToolTip(
        u"Opens the selected schedule as a simulated run. Enter in the plot or the table does the same."_s);
    m_save = new QPushButton(u"Save as run…"_s, left);
    m_save->setToolTip(u"Adds the selected schedule, simulated, to a run file that you choose."_s);
    m_over = makeLabel({}, "worse", left);
    m_over->setWordWrap(true);
    m_over->hide();
    m_plan = new QPushButton(u"Plan an order…"_s, left);
    m_plan->setToolTip(u"Searches for a shorter order in place of the selected schedule, within the memory cap"_s);
    m_plan->setObjectName(u"planOrder"_s); // its owner has the planner
    column->addWidget(m_over);
    column->addWidget(m_open);
    column->addWidget(m_save);
    column->addWidget(m_plan);
    column->addStretch(1);
    auto* foot = new QHBoxLayout;
    m_work = makeLabel({}, "secondary", left);
    m_work->setWordWrap(true);
    m_running = new QProgressBar(left);
    m_running->setRange(0, 0);
    m_running->setTextVisible(false);
    m_running->setFixedSize(40, 6);
    m_cancel = new QPushButton(u"Cancel"_s, left);
    m_cancel->setToolTip(u"Stops simulating; finished points stay"_s);
    foot->addWidget(m_work, 1);
    foot->addWidget(m_running);
    foot->addWidget(m_cancel);
    column->addLayout(foot);
    scroll->setWidget(left);
    return scroll;
}

QWidget* ExploreView::buildCentre()
{
    m_rowsSplit = new QSplitter(Qt::Vertical);
    m_rowsSplit->setHandleWidth(1);
    m_rowsSplit->setChildrenCollapsible(false);
    auto* top = new QWidget;
    auto* upper = new QVBoxLayout(top);
    upper->setContentsMargins(8, 6, 8, 4);
    upper->setSpacing(4);
    auto* tools = new QHBoxLayout;
    m_measure = new QComboBox(top);
    const SurveyField shown = measureField();
    for (const FieldChoice& choice : shown.choices) m_measure->addItem(qtText(choice.title));
    m_measure->setAccessibleName(qtText(shown.title));
    m_measure->setToolTip(qtText(shown.help));
    tools->addWidget(m_measure);
    tools->addStretch();
    auto* csv = new QPushButton(u"Table as CSV…"_s, top);
    csv->setToolTip(u"The points in the format of stagewright sweep"_s);
    connect(csv, &QPushButton::clicked, this, &ExploreView::csvAsked);
    auto* picture = new QPushButton(u"Export plot"_s, top);
    picture->setToolTip(u"As SVG, PDF, PNG, CSV or TikZ, with the simulated setup"_s);
    auto* menu = new QMenu(picture);
    for (const auto& [plot, title] :
         {std::pair(ExplorePlot::Pareto, u"Memory against time…"_s),
          std::pair(ExplorePlot::Lines, u"Over one parameter…"_s),
          std::pair(ExplorePlot::Heat, u"Over two parameters…"_s), std::pair(ExplorePlot::State, u"State…"_s),
          std::pair(ExplorePlot::Levels, u"How much is counted…"_s),
          std::pair(ExplorePlot::Keeping, u"Kept, recomputed or offloaded…"_s),
          std::pair(ExplorePlot::Readiness, u"Order by readiness…"_s),
          std::pair(ExplorePlot::Choose, u"Which parallelism…"_s),
          std::pair(ExplorePlot::Planner, u"Plan of a planner…"_s)})
        menu->addAction(title, this, [this, plot = plot] { emit pictureAsked(plot); });
    picture->setMenu(menu);
    tools->addWidget(csv);
    tools->addWidget(picture);
    for (QPushButton* button : {csv, picture}) button->setMinimumWidth(button->sizeHint().width()); // its text is whole
    upper->addLayout(tools);
    m_pareto = new PlotWidget(u"paretoPlot"_s, u"Schedules by peak memory and step time"_s, top);
    m_pareto->setUsualSize({640, 420});
    upper->addWidget(m_pareto, 1);
    m_rowsSplit->addWidget(top);

    m_charts = new QTabWidget;
    m_charts->setDocumentMode(true);
    auto* linePage = new QWidget;
    auto* lineLayout = new QVBoxLayout(linePage);
    lineLayout->setContentsMargins(8, 4, 8, 6);
    m_lineParameter = parameterBox(linePage, ExploreParameter::Microbatches, u"Parameter across"_s);
    m_lines = new PlotWidget(u"linePlot"_s, u"Ticked schedules over one parameter"_s, linePage);
    auto* lineTools = new QHBoxLayout;
    lineTools->addWidget(makeLabel(u"Across"_s, "secondary", linePage));
    lineTools->addWidget(m_lineParameter);
    lineTools->addStretch();
    lineLayout->addLayout(lineTools);
    lineLayout->addWidget(m_lines, 1);
    m_charts->addTab(linePage, u"Over one parameter"_s);
    auto* heatPage = new QWidget;
    auto* heatLayout = new QVBoxLayout(heatPage);
    heatLayout->setContentsMargins(8, 4, 8, 6);
    m_heatAcross = parameterBox(heatPage, ExploreParameter::Microbatches, u"Parameter across"_s);
    m_heatUp = parameterBox(heatPage, ExploreParameter::Latency, u"Parameter up"_s);
    m_heatShows = new QComboBox(heatPage);
    m_heatShows->addItems({u"Best schedule"_s, u"Value of the best"_s});
    m_heatShows->setAccessibleName(u"What the cells show"_s);
    m_heatShows->setToolTip(u"The ticked schedule with the shortest step within the cap, or its value. Schedules "
                            "with stale weights are excluded."_s);
    m_heat = new PlotWidget(u"heatMap"_s, u"Ticked schedules over two parameters"_s, heatPage);
    auto* heatTools = new QHBoxLayout;
    heatTools->addWidget(makeLabel(u"Across"_s, "secondary", heatPage));
    heatTools->addWidget(m_heatAcross);
    heatTools->addWidget(makeLabel(u"up"_s, "secondary", heatPage));
    heatTools->addWidget(m_heatUp);
    heatTools->addWidget(m_heatShows);
    heatTools->addStretch();
    heatLayout->addLayout(heatTools);
    heatLayout->addWidget(m_heat, 1);
    m_charts->addTab(heatPage, u"Over two parameters"_s);
    for (const char* name : {"levels", "keeping", "readiness"}) {
        const SurveyInfo& survey = **findSurvey(name);
        m_surveys.push_back(new SurveyChart(survey));
        const int tab = m_charts->addTab(m_surveys.back(), sentence(survey.title));
        m_charts->setTabToolTip(tab, sentence(survey.summary));
    }
    m_rowsSplit->addWidget(m_charts);
    m_rowsSplit->setStretchFactor(0, 3);
    m_rowsSplit->setStretchFactor(1, 2);
    m_rowsSplit->setSizes({520, 340});
    m_pages = new QTabWidget;
    m_pages->setDocumentMode(true);
    m_pages->addTab(m_rowsSplit, u"Schedules"_s);
    m_state = new StateView;
    m_pages->addTab(m_state, u"State"_s);
    m_pages->setTabToolTip(1, u"What replicas that share a model's state need and take"_s);
    m_pages->addTab(m_ways, u"Choose"_s);
    m_pages->setTabToolTip(2, sentence((*findSurvey("choose"))->summary));
    m_pages->addTab(m_planner, u"Planners"_s);
    m_pages->setTabToolTip(3, u"Problems of other systems' planners, their plans as pictures"_s);
    // its rows are the first page's
    connect(m_pages, &QTabWidget::currentChanged, this,
            [this] { m_table->parentWidget()->setVisible(page() == ExplorePage::Schedules); });
    // of one pipeline's shape
    const auto showForm = [this] {
        const bool own = page() == ExplorePage::Choose || page() == ExplorePage::Planners;
        m_ways->form()->setVisible(page() == ExplorePage::Choose);
        m_planner->form()->setVisible(page() == ExplorePage::Planners);
        m_form->setVisible(page() == ExplorePage::Schedules ||
                           (page() == ExplorePage::State && m_state->topic() == StateTopic::Stages));
        for (QWidget* of :
             {static_cast<QWidget*>(m_miniature), static_cast<QWidget*>(m_open), static_cast<QWidget*>(m_save)})
            of->setVisible(!own);
        m_plan->setVisible(page() == ExplorePage::Schedules);
    };
    connect(m_pages, &QTabWidget::currentChanged, this, showForm);
    connect(m_state, &StateView::questionChanged, this, showForm);
    connect(m_ways, &ChooseView::questionChanged, this, &ExploreView::stateChanged);
    connect(m_pages, &QTabWidget::currentChanged, this, &ExploreView::stateChanged);
    connect(m_state, &StateView::questionChanged, this, &ExploreView::stateChanged);
    return m_pages;
}

ExploreMeasure ExploreView::measure() const { return static_cast<ExploreMeasure>(m_measure->currentIndex()); }
void ExploreView::setMeasure(ExploreMeasure measure) { m_measure->setCurrentIndex(static_cast<int>(measure)); }
ExploreParameter ExploreView::lineParameter() const
{
    return static_cast<ExploreParameter>(m_lineParameter->currentIndex());
}

std::pair<ExploreParameter, ExploreParameter> ExploreView::heatParameters() const
{
    return {static_cast<ExploreParameter>(m_heatAcross->currentIndex()),
            static_cast<ExploreParameter>(m_heatUp->currentIndex())};
}

ExploreChart ExploreView::chartShown() const { return static_cast<ExploreChart>(m_charts->currentIndex()); }
ExplorePage ExploreView::page() const { return static_cast<ExplorePage>(m_pages->currentIndex()); }
void ExploreView::setPage(ExplorePage page) { m_pages->setCurrentIndex(static_cast<int>(page)); }
void ExploreView::setChart(ExploreChart chart) { m_charts->setCurrentIndex(static_cast<int>(chart)); }

std::vector<std::string> ExploreView::ticked() const
{
    std::vector<std::string> names;
    const auto& ticked = m_table->rows()->ticked();
    for (const std::string& name : exploredSchedules())
        if (ticked.contains(name)) names.push_back(name);
    return names;
}

const SweepRow* ExploreView::rowAt(int row) const
{
    return m_rows && row >= 0 && row < static_cast<int>(m_rows->size()) ? &(*m_rows)[static_cast<std::size_t>(row)]
                                                                        : nullptr;
}

void ExploreView::select(int row)
{
    const SweepRow* at = rowAt(row);
    m_wanted = at == nullptr ? std::string() : at->schedule();
    showRow(row);
}

void ExploreView::selectFrontier()
{
    if (!m_rows) return;
    if (const auto frontier = memoryFrontier(*m_rows, m_asked); !frontier.empty())
        select(static_cast<int>(frontier.back()));
}

void ExploreView::showRow(int row)
{
    const SweepRow* at = rowAt(row);
    m_selected = row;
    m_pareto->setChosen(m_pareto->itemOf(row));
    m_table->setSelectedRow(row);
    const bool good = at != nullptr && at->good();
    m_open->setEnabled(good);
    m_save->setEnabled(good);
    const std::string over = at != nullptr ? overCap(*at, m_asked) : std::string();
    m_over->setText(over.empty() ? QString() : u"Over the cap: %1."_s.arg(qtText(over)));
    m_over->setVisible(!over.empty());
    emit previewAsked(row);
}

void ExploreView::setRows(SweepRows rows, const ExploreQuestion& question)
{
    m_rows = std::move(rows);
    m_asked = question;
    showPoints();
    m_table->rows()->setRows(m_rows, question);
    int row = -1;
    for (int i = 0; m_rows && i < static_cast<int>(m_rows->size()); ++i)
        if (rowAt(i)->schedule() == m_wanted) row = i;
    // a cap that the chosen one does not keep to: the fastest that does, until the cap allows it again
    if (const SweepRow* at = rowAt(row); at != nullptr && !overCap(*at, m_asked).empty())
        if (const auto frontier = memoryFrontier(*m_rows, m_asked); !frontier.empty())
            row = static_cast<int>(frontier.back());
    showRow(row);
}

SurveyTable ExploreView::points() const { return m_rows ? memoryTable(*m_rows, question()) : SurveyTable(); }

SurveyChart* ExploreView::survey(ExploreChart chart) { return m_surveys[surveyOf(chart)]; }

SurveyTable ExploreView::chart() const
{
    if (chartShown() == ExploreChart::Heat) return m_heatPicture ? heatTable(*m_heatPicture) : SurveyTable();
    if (chartShown() >= ExploreChart::Levels) return m_surveys[surveyOf(chartShown())]->table();
    return m_linesPicture ? lineTable(*m_linesPicture) : SurveyTable();
}

void ExploreView::setBounds(std::vector<ExploreBound> bounds)
{
    m_bounds = std::move(bounds);
    showPoints();
}

void ExploreView::setLines(std::shared_ptr<const LinesPicture> picture)
{
    m_linesPicture = std::move(picture);
    showCharts();
}

void ExploreView::setHeat(std::shared_ptr<const HeatPicture> picture)
{
    m_heatPicture = std::move(picture);
    showCharts();
}

void ExploreView::showPoints()
{
    m_pareto->setPlot(memoryPlot(m_rows ? *m_rows : std::vector<SweepRow>(), m_bounds, m_asked, measure()));
    m_pareto->setChosen(m_pareto->itemOf(m_selected));
}

void ExploreView::showCharts()
{
    m_lines->setPlot(linePlot(m_linesPicture ? *m_linesPicture : LinesPicture(), measure()));
    m_heat->setPlot(heatPlot(m_heatPicture ? *m_heatPicture : HeatPicture(), measure(),
                             static_cast<HeatShows>(m_heatShows->currentIndex())));
}

void ExploreView::setWork(const QString& text, bool running)
{
    m_work->setText(text);
    m_running->setVisible(running);
    m_cancel->setVisible(running);
}

void ExploreView::setTheme(const Theme& theme)
{
    m_pareto->setTheme(theme);
    m_lines->setTheme(theme);
    m_heat->setTheme(theme);
    m_miniature->setTheme(theme);
    m_state->setTheme(theme);
    m_ways->setTheme(theme);
    m_planner->setTheme(theme);
    for (SurveyChart* survey : m_surveys) survey->plot()->setTheme(theme);
}

QString ExploreView::caption(ExplorePlot plot) const
{
    if (plot == ExplorePlot::State) return m_state->caption();
    if (plot == ExplorePlot::Planner) return m_planner->caption();
    if (const int survey = static_cast<int>(plot) - static_cast<int>(ExplorePlot::Levels);
        survey >= 0 && survey < static_cast<int>(m_surveys.size()))
        return m_surveys[static_cast<std::size_t>(survey)]->plot()->accessibleName();
    if (plot == ExplorePlot::Choose) return u"Ways to divide a model: step, memory, and the best by t and p"_s;
    QString what = plot == ExplorePlot::Pareto
                       ? u"Schedules by activation peak and %1"_s.arg(qtText(titleOf(measure())).toLower())
                   : plot == ExplorePlot::Lines
                       ? u"%1 over %2"_s.arg(qtText(titleOf(measure())), titleOf(lineParameter()).toLower())
                       : u"Shortest step over %1 and %2"_s.arg(titleOf(heatParameters().first).toLower(),
                                                               titleOf(heatParameters().second).toLower());
    return what;
}

Plot ExploreView::plotOf(ExplorePlot plot) const
{
    switch (plot) {
    case ExplorePlot::Pareto: return m_pareto->plot();
    case ExplorePlot::Lines: return m_lines->plot();
    case ExplorePlot::Heat: return m_heat->plot();
    case ExplorePlot::State: return m_state->plot();
    case ExplorePlot::Choose: return m_ways->plot();
    case ExplorePlot::Levels:
    case ExplorePlot::Keeping:
    case ExplorePlot::Readiness:
        return m_surveys[static_cast<std::size_t>(plot) - static_cast<std::size_t>(ExplorePlot::Levels)]
            ->plot()
            ->plot();
    case ExplorePlot::Planner: return m_planner->picture()->plot();
    }
    return {};
}

void ExploreView::restore()
{
    const QSettings settings;
    ExploreQuestion question;
    for (int i = 0; i < exploreParameterCount; ++i) {
        const auto parameter = static_cast<ExploreParameter>(i);
        bool number = false;
        const double value = settings.value(u"explore/parameter%1"_s.arg(i)).toDouble(&number);
        if (number && value >= fieldOf(parameter).least && value <= m_form->field(parameter)->maximum())
            question = question.with(parameter, value);
    }
    const auto choose = [&settings](QComboBox* box, const char* key) {
        const int index = settings.value(QLatin1String(key), box->currentIndex()).toInt();
        if (index >= 0 && index < box->count()) box->setCurrentIndex(index);
    };
    choose(m_measure, "explore/measure");
    choose(m_lineParameter, "explore/across");
    choose(m_heatAcross, "explore/heatAcross");
    choose(m_heatUp, "explore/heatUp");
    choose(m_heatShows, "explore/heatShows");
    std::set<std::string> ticked;
    const QStringList usual = QString::fromLatin1(usualSchedules).split(u',');
    for (const QString& name : settings.value(u"explore/ticked"_s, usual).toStringList())
        ticked.insert(name.toStdString());
    m_table->rows()->setTicked(ticked);
    if (const QByteArray columns = settings.value(u"explore/columns"_s).toByteArray(); !columns.isEmpty())
        m_columnsChosen = m_columns->restoreState(columns);
    if (const QByteArray rows = settings.value(u"explore/rows"_s).toByteArray(); !rows.isEmpty())
        m_rowsSplit->restoreState(rows);
    m_form->setQuestion(question);
    m_ways->restore();
    m_planner->restore();
    m_restored = true;
}

void ExploreView::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    if (m_columnsChosen) return;
    // The table gets half of what a large screen has beyond the plot's needs: whole names and notes.
    const int left = 262, right = std::clamp(width() * 28 / 100, 260, 560) + std::max(0, width() - 2000) / 2;
    m_columns->setSizes({left, std::max(0, width() - left - right), right});
}

void ExploreView::hideEvent(QHideEvent* event)
{
    QWidget::hideEvent(event);
    if (!m_restored) return;
    QSettings settings;
    for (int i = 0; i < exploreParameterCount; ++i)
        settings.setValue(u"explore/parameter%1"_s.arg(i), question().value(static_cast<ExploreParameter>(i)));
    settings.setValue(u"explore/measure"_s, m_measure->currentIndex());
    settings.setValue(u"explore/across"_s, m_lineParameter->currentIndex());
    settings.setValue(u"explore/heatAcross"_s, m_heatAcross->currentIndex());
    settings.setValue(u"explore/heatUp"_s, m_heatUp->currentIndex());
    settings.setValue(u"explore/heatShows"_s, m_heatShows->currentIndex());
    QStringList ticked;
    for (const std::string& name : m_table->rows()->ticked()) ticked << QString::fromStdString(name);
    settings.setValue(u"explore/ticked"_s, ticked);
    if (m_columnsChosen) settings.setValue(u"explore/columns"_s, m_columns->saveState());
    settings.setValue(u"explore/rows"_s, m_rowsSplit->saveState());
}

} // namespace stagewright
