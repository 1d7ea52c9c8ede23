#include "widgets/explore/state_view.h"

#include <algorithm>

#include <QGridLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "schedules/base/text.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

constexpr StateTopic everyTopic[] = {StateTopic::Stages, StateTopic::Mixed, StateTopic::Cuts};

const SurveyInfo& surveyOf(StateTopic topic)
{
    constexpr const char* names[] = {"state", "uneven", "partial"};
    return **findSurvey(names[static_cast<std::size_t>(topic)]);
}

} // namespace

StateView::StateView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 2, 8, 6);
    column->setSpacing(6);
    m_topics = new QTabBar(this);
    m_topics->setObjectName(u"stateTopics"_s);
    m_topics->setDrawBase(false);
    m_topics->setExpanding(false);
    m_topics->setAccessibleName(u"What the page State shows"_s);
    for (const StateTopic topic : everyTopic) {
        const int tab = m_topics->addTab(qtText(surveyOf(topic).title));
        m_topics->setTabToolTip(tab, sentence(surveyOf(topic).summary));
    }
    column->addWidget(m_topics);
    m_form = new QGridLayout;
    m_form->setHorizontalSpacing(8);
    m_form->setVerticalSpacing(2);
    for (const int of : {0, 1, 2}) m_form->setColumnStretch(of, of == 1 ? 6 : 5); // the device has the longest name
    for (const StateTopic topic : everyTopic) addFields(topic);
    column->addLayout(m_form);
    m_pictures = new QStackedWidget(this);
    m_picture = new StatePicture(m_pictures);
    makeCopyable(m_picture, [this] { return tableTextOf(m_picture->answer()); });
    m_mixed = new PlotWidget(u"mixedPicture"_s, u"Shares of batch and state by rank"_s, m_pictures);
    m_cuts = new PlotWidget(u"cutPicture"_s, u"Contributors by layer"_s, m_pictures);
    for (PlotWidget* picture : {m_mixed, m_cuts}) {
        picture->setUsualSize({760, 520});
        makeCopyable(picture, [this] { return tableTextOf(answer()); });
    }
    setMixed(nullptr, {});
    for (QWidget* picture :
         {static_cast<QWidget*>(m_picture), static_cast<QWidget*>(m_mixed), static_cast<QWidget*>(m_cuts)})
        m_pictures->addWidget(picture);
    column->addWidget(m_pictures, 1);
    arrange();
    showCuts();
    connect(m_topics, &QTabBar::currentChanged, this, &StateView::arrange);
    connect(m_topics, &QTabBar::currentChanged, this, &StateView::questionChanged);
    connect(this, &StateView::questionChanged, this, &StateView::showCuts);
}

// What the explorer's form asks, and the rows of the picture, have no field here.
void StateView::addFields(StateTopic topic)
{
    for (const SurveyField& field : surveyOf(topic).fields()) {
        if (parameterOf(field.name) || field.name == "schedules") continue;
        const auto same = std::find_if(m_fields.begin(), m_fields.end(), [&field](const Field& one) {
            return one.control.field.name == field.name && one.control.field.kind == field.kind;
        });
        Field& at = same != m_fields.end()
                        ? *same
                        : m_fields.emplace_back(makeSurveyControl(field, this, [this] { emit questionChanged(); }),
                                                std::vector<StateTopic>());
        at.topics.push_back(topic);
    }
}

Result<SurveyQuestion> StateView::asked(StateTopic topic, const ExploreQuestion& shape) const
{
    SurveyValues values;
    for (const SurveyField& field : surveyOf(topic).fields())
        if (const auto parameter = parameterOf(field.name))
            values[field.name] = stagewright::textOf(std::clamp(shape.value(*parameter), field.least, field.most));
    for (const Field& field : m_fields)
        if (std::find(field.topics.begin(), field.topics.end(), topic) != field.topics.end())
            values[field.control.field.name] = field.control.value();
    return SurveyQuestion::read(surveyOf(topic), values);
}

StateTopic StateView::topic() const { return static_cast<StateTopic>(m_topics->currentIndex()); }
void StateView::setTopic(StateTopic topic) { m_topics->setCurrentIndex(static_cast<int>(topic)); }

void StateView::arrange()
{
    int at = 0;
    for (const Field& field : m_fields) {
        m_form->removeWidget(field.control.label);
        m_form->removeWidget(field.control.widget);
        const bool shown = std::find(field.topics.begin(), field.topics.end(), topic()) != field.topics.end();
        field.control.label->setVisible(shown);
        field.control.widget->setVisible(shown);
        if (!shown) continue;
        m_form->addWidget(field.control.label, at / 3 * 2, at % 3);
        m_form->addWidget(field.control.widget, at / 3 * 2 + 1, at % 3);
        ++at;
    }
    m_pictures->setCurrentIndex(static_cast<int>(topic()));
}

void StateView::showCuts()
{
    if (topic() != StateTopic::Cuts) return;
    m_cutAnswer = cutSurvey(cutQuestion());
    m_cuts->setPlot(partialPlot(m_cutAnswer, cutQuestion()));
}

CutQuestion StateView::cutQuestion() const { return CutQuestion::of(*asked(StateTopic::Cuts)); }

Result<MixedQuestion> StateView::mixedQuestion() const
{
    STAGEWRIGHT_TRY(const SurveyQuestion question, asked(StateTopic::Mixed));
    return MixedQuestion::of(question);
}

StateQuestion StateView::question(const ExploreQuestion& shape) const
{
    return StateQuestion::of(*asked(StateTopic::Stages, shape));
}

void StateView::setRows(StateRows rows, const StateQuestion& question)
{
    m_picture->setRows(std::move(rows), question);
}

void StateView::setMixed(std::shared_ptr<const MixedAnswer> answer, const MixedQuestion& question)
{
    m_mixedAnswer = std::move(answer);
    m_mixedQuestion = question;
    if (!m_mixedAnswer) return setMixedError(u"simulating…"_s);
    m_mixed->setPlot(unevenPlot(*m_mixedAnswer, m_mixedQuestion));
}

void StateView::setMixedError(const QString& text)
{
    m_mixedAnswer.reset();
    Plot plot;
    plot.nothing = text.toStdString();
    m_mixed->setPlot(std::move(plot));
}

void StateView::setTheme(const Theme& theme)
{
    m_picture->setTheme(theme);
    m_mixed->setTheme(theme);
    m_cuts->setTheme(theme);
}

SurveyTable StateView::answer() const
{
    switch (topic()) {
    case StateTopic::Stages: return m_picture->answer();
    case StateTopic::Mixed: return m_mixed->items() > 0 ? unevenTable(*m_mixedAnswer, m_mixedQuestion) : SurveyTable();
    case StateTopic::Cuts: return contributorTable(m_cutAnswer, cutQuestion());
    }
    return {};
}

QString StateView::caption() const
{
    switch (topic()) {
    case StateTopic::Stages: return u"Memory and step time by what replicas share"_s;
    case StateTopic::Mixed: return u"Batch and state by rank of a mixed cluster"_s;
    case StateTopic::Cuts: return u"Partial backward: contributors by layer"_s;
    }
    return {};
}

Plot StateView::plot() const
{
    switch (topic()) {
    case StateTopic::Stages: return stateWhole(m_picture->bars()->plot(), m_picture->grid()->plot());
    case StateTopic::Mixed: return m_mixed->plot();
    case StateTopic::Cuts: return m_cuts->plot();
    }
    return {};
}

} // namespace stagewright
