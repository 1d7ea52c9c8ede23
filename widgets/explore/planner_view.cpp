#include "widgets/explore/planner_view.h"

#include <algorithm>
#include <cmath>

#include <QAbstractItemView>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QSignalBlocker>
#include <QSlider>
#include <QSplitter>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

// A slider's places and the value of each: by factors around the number, or each whole number where they are few.
struct Scale {
    int least = 0, most = 0, start = 0;
    double base = 0;
    double each = 0; // places of a factor of two; 0: a step of `step` each
    double step = 1;
    bool whole = false;

    explicit Scale(const ProblemNumber& number) : base(number.value), whole(number.whole)
    {
        constexpr double few = 64;
        if (number.value <= 0 || (whole && number.value <= few)) {
            step = whole ? 1 : 0.1;
            least = number.value > 0 ? 1 : 0;
            start = static_cast<int>(std::lround(std::max(0.0, number.value) / step));
            most = std::max(whole ? 8 : 100, 4 * start);
            return;
        }
        each = whole ? 1 : 8; // whole numbers are doubled: what they are divided by still divides them
        most = static_cast<int>(3 * each);
        least = -most;
    }
    double at(int place) const
    {
        const double value = each > 0 ? base * std::exp2(place / each) : place * step;
        return whole ? std::max(1.0, std::round(value)) : value;
    }
};

// Large ones by thousands, as JSON takes them: 312e12, 31.25e9.
QString numberText(double value)
{
    int power = 0;
    while (std::isfinite(value) && (std::abs(value) >= 1e6 || (power > 0 && std::abs(value) >= 1000))) {
        value /= 1000;
        power += 3;
    }
    return QString::number(value, 'g', power > 0 ? 4 : 6) + (power > 0 ? u"e%1"_s.arg(power) : QString());
}

QPlainTextEdit* textArea(const QString& objectName, const QString& name, const QString& tip, QWidget* parent)
{
    auto* area = new QPlainTextEdit(parent);
    area->setObjectName(objectName);
    area->setAccessibleName(name);
    area->setToolTip(tip);
    area->setTabChangesFocus(true);
    return area;
}

} // namespace

PlannerView::PlannerView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    m_form = new QWidget(this);
    m_column = new QVBoxLayout(m_form);
    m_column->setContentsMargins(0, 0, 0, 0);
    m_column->setSpacing(3);
    m_programs = new QComboBox(m_form);
    m_programs->setObjectName(u"planner"_s);
    m_programs->setAccessibleName(u"Planner"_s);
    m_programs->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    for (const PlannerInfo& one : allExamples())
        m_programs->addItem(sentence(one.title),
                            QString::fromUtf8(one.program.data(), static_cast<qsizetype>(one.program.size())));
    m_programs->view()->setMinimumWidth(m_programs->view()->sizeHintForColumn(0) + 32); // whole titles
    auto* label = makeLabel(u"Planner"_s, "secondary", m_form);
    label->setBuddy(m_programs);
    m_column->addWidget(label);
    m_column->addWidget(m_programs);
    auto* open = new QPushButton(u"Open a problem…"_s, m_form);
    open->setToolTip(u"A JSON file, as stagewright solve reads it"_s);
    m_column->addWidget(open);
    m_layout = new QPushButton(u"Save layout…"_s, m_form);
    m_layout->setObjectName(u"planLayout"_s);
    m_layout->setToolTip(
        u"The plan's stages as a file for stagewright choose --layout, which times them for a model"_s);
    m_column->addWidget(m_layout);
    m_runs = new QPushButton(u"Of the shown file's runs"_s, m_form);
    m_runs->setObjectName(u"planRuns"_s);
    m_runs->setToolTip(
        u"Of the file on the timeline: runs with partial backward, each a job, or the cost lines of replicas"_s);
    m_column->addWidget(m_runs);

    m_said = makeLabel({}, "value", this, true);
    m_said->setObjectName(u"planSaid"_s);
    m_said->setWordWrap(true);
    column->addWidget(m_said);
    auto* rows = new QSplitter(Qt::Vertical, this);
    m_picture = new PlotWidget(u"planPicture"_s, u"The plan"_s);
    m_picture->setUsualSize({860, 520});
    auto* texts = new QSplitter(Qt::Horizontal, rows);
    m_text = textArea(u"planProblem"_s, u"Problem"_s, u"The problem as JSON; changes are solved as you type"_s, texts);
    m_answerText = textArea(u"planAnswer"_s, u"Answer"_s, u"The answer as JSON"_s, texts);
    m_answerText->setReadOnly(true);
    rows->addWidget(m_picture);
    rows->addWidget(texts);
    rows->setSizes({520, 130});
    rows->setStretchFactor(0, 1);
    for (QSplitter* split : {rows, texts}) {
        split->setHandleWidth(1);
        split->setChildrenCollapsible(false);
    }
    column->addWidget(rows, 1);

    // the whole name, which a narrow window cuts
    connect(m_programs, &QComboBox::currentTextChanged, m_programs, [this](const QString& name) {
        m_programs->setToolTip(u"%1\nWhat is planned. Choosing one shows a small problem to start from."_s.arg(name));
    });
    emit m_programs->currentTextChanged(m_programs->currentText());
    connect(m_programs, &QComboBox::activated, this, [this] { choose(m_programs->currentData().toString()); });
    connect(open, &QPushButton::clicked, this, &PlannerView::openAsked);
    connect(m_layout, &QPushButton::clicked, this, &PlannerView::layoutAsked);
    connect(m_runs, &QPushButton::clicked, this, &PlannerView::runsAsked);
    connect(m_text, &QPlainTextEdit::textChanged, this, [this] { take(m_text->toPlainText().toStdString(), false); });
    choose(m_programs->itemData(0).toString());
}

void PlannerView::choose(const QString& program)
{
    if (auto made = exampleProblem(program.toStdString())) take(std::move(*made), true);
}

QString PlannerView::program() const { return m_programs->currentData().toString(); }

void PlannerView::setProblem(const QString& text) { take(text.toStdString(), true); }

void PlannerView::take(std::string problem, bool writes)
{
    m_problem = std::move(problem);
    if (writes) {
        const QSignalBlocker quiet(m_text);
        m_text->setPlainText(qtText(m_problem));
    }
    if (const int at = m_programs->findData(qtText(exampleLike(m_problem))); at >= 0) m_programs->setCurrentIndex(at);
    m_layout->setVisible(hasLayout(programOf(m_problem)));
    m_runs->setVisible(takesRuns(programOf(m_problem)));
    makeSliders();
    emit questionChanged();
}

void PlannerView::makeSliders()
{
    if (m_sliders != nullptr) {
        m_sliders->setParent(nullptr); // it may be its own slider that is answered
        m_sliders->deleteLater();
    }
    m_sliders = new QWidget(m_form);
    auto* column = new QVBoxLayout(m_sliders);
    column->setContentsMargins(0, 6, 0, 0);
    column->setSpacing(2);
    for (const ProblemNumber& number : numbersOf(m_problem)) {
        const QString key = qtText(number.key);
        const Scale scale(number);
        auto* head = new QHBoxLayout;
        auto* value = makeLabel(numberText(number.value), "value", m_sliders);
        auto* name = makeLabel(key, "secondary", m_sliders);
        head->addWidget(name);
        head->addStretch();
        head->addWidget(value);
        column->addLayout(head);
        auto* slider = new QSlider(Qt::Horizontal, m_sliders);
        slider->setObjectName(key);
        slider->setAccessibleName(key);
        slider->setToolTip(u"Solves the problem again with another %1"_s.arg(key));
        slider->setRange(scale.least, scale.most);
        slider->setValue(scale.start);
        slider->setPageStep(scale.each > 1 ? 4 : 1);
        name->setBuddy(slider);
        column->addWidget(slider);
        connect(slider, &QSlider::valueChanged, this, [this, number, scale, value](int place) {
            value->setText(numberText(scale.at(place)));
            moved(number, scale.at(place));
        });
    }
    m_column->addWidget(m_sliders);
}

void PlannerView::moved(const ProblemNumber& number, double value)
{
    auto other = withNumber(m_problem, number.key, value);
    if (!other) return;
    m_problem = std::move(*other);
    const QSignalBlocker quiet(m_text);
    m_text->setPlainText(qtText(m_problem));
    emit questionChanged();
}

void PlannerView::setAnswer(const Result<PlannerAnswer>& answer)
{
    m_answer.reset();
    m_layout->setEnabled(answer && answer->fits);
    if (!answer) {
        const Error& error = answer.error();
        const QString text = qtText(error.remedy.empty() ? error.message : error.message + "; " + error.remedy);
        Plot plot;
        plot.nothing = "no plan";
        m_picture->setPlot(std::move(plot));
        m_said->setText(sentence(text.toStdString()));
        m_answerText->clear();
        return;
    }
    m_answer = *answer;
    m_picture->setPlot(answer->picture.plot);
    m_said->setText(qtText(answer->picture.sentence));
    m_answerText->setPlainText(qtText(answer->json));
}

QString PlannerView::said() const { return m_said->text(); }

QString PlannerView::caption() const { return m_programs->currentText(); }

void PlannerView::setTheme(const Theme& theme) { m_picture->setTheme(theme); }

void PlannerView::restore()
{
    const QString before = QSettings().value(u"explore/problem"_s).toString();
    if (!before.isEmpty()) setProblem(before);
}

void PlannerView::hideEvent(QHideEvent* event)
{
    QSettings().setValue(u"explore/problem"_s, qtText(m_problem));
    QWidget::hideEvent(event);
}

} // namespace stagewright
